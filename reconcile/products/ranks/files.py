"""Reader of reports by rank (``torchrun ... -m reconcile watch`` writes them), and their sum, for ``reconcile ranks``."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ...core.errors import UsageError, brief

NAME = re.compile(r"(?P<stem>.+)\.rank-(?P<rank>\d+)-of-(?P<world>\d+)\.json")
HOW = "torchrun --nproc-per-node N -m reconcile watch --out DIR train.py"
LONGEST = 10  # ranks that are named


@dataclass(frozen=True)
class Together:
    """The reports of one step by rank: ``stem`` is their name, ``world`` how many ranks there are."""

    stem: str
    world: int
    reports: Mapping[int, Mapping[str, Any]]

    @property
    def missing(self) -> tuple[int, ...]:
        """The ranks that left no report."""
        return tuple(rank for rank in range(self.world) if rank not in self.reports)

    @cached_property
    def runs(self) -> dict[str, tuple[int, ...]]:
        """The ranks of each run, by the word that its processes share: '' for those that nothing tells from another run."""
        found: dict[str, list[int]] = {}
        for rank in sorted(self.reports):
            found.setdefault(str(self.reports[rank].get("run", "")), []).append(rank)
        return {run: tuple(ranks) for run, ranks in found.items()}

    @property
    def mixed(self) -> bool:
        """Whether the reports may be of several runs."""
        return len(self.runs) > 1 or "" in self.runs

    @property
    def convention(self) -> str:
        """That of all reports."""
        return str(next(iter(self.reports.values()))["convention"])

    def totals(self, rank: int) -> dict[str, int]:
        """What the rank ran, by convention; empty if its number is withheld."""
        traces = self.reports[rank]["traces"]
        return dict(traces[0]["totals"]) if len(traces) == 1 and traces[0]["complete"] else {}

    def counters(self, rank: int) -> list[dict[str, Any]]:
        """What each counter said on this rank."""
        names = ("counter", "total", "state", "reason")
        return [{name: ledger[name] for name in names} for ledger in self.reports[rank]["ledgers"]]

    @cached_property
    def folds(self) -> list[tuple[int, ...]]:
        """Ranks with equal numbers."""
        found: dict[str, list[int]] = {}
        for rank in sorted(self.reports):
            found.setdefault(json.dumps((self.totals(rank), self.counters(rank))), []).append(rank)
        return [tuple(ranks) for ranks in found.values()]

    @cached_property
    def sum(self) -> dict[str, int]:
        """What all ranks ran, without the conventions under which one is withheld; empty while one is missing or may be of
        another run."""
        if self.missing or self.mixed:
            return {}
        known = [self.totals(rank) for rank in self.reports]
        return {name: sum(each[name] for each in known) for name in known[0] if all(name in each for each in known)}

    @property
    def exit_code(self) -> int:
        """0 if every rank is there and reconciled; otherwise 1, or 3 where a counter failed."""
        codes = [int(report["exit_code"]) for report in self.reports.values()]
        return max(*codes, 1 if self.convention not in self.sum else 0)


def read_reports(folder: Path) -> Together:
    """The reports of ranks in a folder. Raises UsageError if there are none, or of several steps, and for damaged ones."""
    if not folder.is_dir():
        raise UsageError(f"{brief(folder)} is no folder: give the one that the ranks wrote to ({HOW}).")
    found = [(path, match) for path in sorted(folder.iterdir()) if (match := NAME.fullmatch(path.name))]
    if not found:
        raise UsageError(f"{brief(folder)} has no reports of ranks: write them with {HOW}.")
    kinds = sorted({(match["stem"], int(match["world"])) for _, match in found})
    if len(kinds) > 1:
        texts = " and ".join(f"{stem} ({world} ranks)" for stem, world in kinds[:2])
        raise UsageError(f"{brief(folder)} has reports of {texts}: give each step a folder of its own.")
    reports = {int(match["rank"]): _report(path) for path, match in found}
    ((stem, world),) = kinds
    conventions = sorted({str(report["convention"]) for report in reports.values()})
    if len(conventions) > 1:
        raise UsageError(
            f"the ranks in {brief(folder)} were counted by {' and '.join(conventions)}: use one convention."
        )
    wrong = next((rank for rank in reports if rank >= world), None)
    if wrong is not None:
        raise UsageError(f"{brief(folder)} has a report of rank {wrong} of {world}, and ranks count from 0.")
    return Together(stem, world, reports)


def _report(path: Path) -> dict[str, Any]:
    try:
        report = json.loads(path.read_text())
        kinds = {"convention": str, "traces": list, "ledgers": list, "exit_code": int}
        if all(isinstance(report[name], kind) for name, kind in kinds.items()):
            return dict(report)
    except (ValueError, LookupError, TypeError):
        pass
    raise UsageError(f"{brief(path)} is no report of a rank: let that rank write it again.")


def describe_missing(together: Together) -> str:
    """A sentence that names the ranks that are not there; ''."""
    ranks = together.missing
    if not ranks:
        return ""
    some = _some(ranks)
    return f"{some[0].upper()}{some[1:]} of {together.world} left no report, so there is no sum."


def _some(ranks: Sequence[int]) -> str:
    some = ", ".join(map(str, ranks[:LONGEST])) + (" and others" if len(ranks) > LONGEST else "")
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {some}"


def describe_mixed(together: Together) -> str:
    """A sentence that names the ranks whose reports are of another run, or may be; ''."""
    said = []
    known = [_some(ranks) for run, ranks in together.runs.items() if run]
    if len(known) > 1:
        texts = "; ".join(known[:LONGEST])
        said.append(
            f"The reports are of {len(known)} runs ({texts}), so there is no sum: give each run a folder of its own."
        )
    if ranks := together.runs.get(""):
        said.append(
            f"Nothing shows of which run {_some(ranks)} wrote, so there is no sum: start the processes with {HOW}."
        )
    return " ".join(said)


def to_dict(together: Together) -> dict[str, Any]:
    """As plain data, with the names that ``reconcile run --ranks`` uses."""
    return {
        "schema": 1,
        "model": together.stem,
        "convention": together.convention,
        "world": together.world,
        "exit_code": together.exit_code,
        "missing": list(together.missing),
        "runs": [list(ranks) for ranks in together.runs.values()],
        "ranks": [
            {"ranks": list(ranks), "totals": together.totals(ranks[0]), "counters": together.counters(ranks[0])}
            for ranks in together.folds
        ],
        "sum": together.sum,
    }
