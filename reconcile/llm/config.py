"""A model from a HuggingFace config.json, on the meta device, with every formula beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..engine.settle import Collected
    from ..launch.request import RunRequest
    from ..launch.workers.supervisor import Event

SEQ = 2048
"""Tokens of a sequence, by default."""


def configured(
    file: Path, batch: int, seq: int, pass_: str = "training"
) -> tuple[RunRequest, str, Callable[[RunRequest, Callable[[Event], None]], Collected]]:
    """The request, the model's name, and how to run it in this process, which allocates nothing."""
    from ..adapters.pytorch.causal_lm import factory, name_of
    from ..core.registry import known_counters
    from ..launch.in_process import collect_live
    from ..launch.request import run_request
    from ..work import load

    load()
    framework = next(counter.framework for counter in known_counters().values() if counter.quoted)
    made: dict[str, Any] = {framework: factory(file, batch, seq)}
    request = run_request(counters=("formula:all",), pass_=pass_)

    def take(r: RunRequest, tell: Callable[[Event], None]) -> Collected:
        return collect_live(made, None, r.counters, r.device, tell, r.training, r.context)

    return request, name_of(file), take
