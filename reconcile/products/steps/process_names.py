"""What the reports of a process are called where several processes take one step (torchrun), and which run they are of."""

from __future__ import annotations

import os
from collections.abc import Mapping


def name_run(met: str, environment: Mapping[str, str] = os.environ) -> str:
    """A word that all processes of one run share: ``met`` is what they agreed on when they met. Without it, the run's id and
    the number of its attempt, as torchrun gives them to each process. '' if nothing tells this run from another."""
    id_, attempt = environment.get("TORCHELASTIC_RUN_ID", ""), environment.get("TORCHELASTIC_RESTART_COUNT", "0")
    return met or ("" if id_ in ("", "none") else f"{id_} {attempt}")


def name_reports(stem: str, environment: Mapping[str, str] = os.environ) -> str:
    """The beginning of the names of a process's reports: with its rank, if it is one of several (``RANK``, ``WORLD_SIZE``)."""
    rank, world = environment.get("RANK", ""), environment.get("WORLD_SIZE", "")
    if not (rank.isdecimal() and world.isdecimal() and int(world) > 1):
        return stem
    return f"{stem}.rank-{int(rank)}-of-{int(world)}"
