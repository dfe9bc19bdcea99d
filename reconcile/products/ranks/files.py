"""Reader of reports by rank (``torchrun ... -m reconcile watch`` writes them), and their sum, for ``reconcile ranks``."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ...core.causes import State
from ...core.errors import EXIT_FAILED, EXIT_OK, EXIT_UNEXPLAINED, UsageError, brief
from ...report.folds import group_same
from ..shapes import AMOUNT, COUNT, FLAG, TEXT, Shape, list_of, or_null, record, table
from . import LARGEST_WORLD

NAME = re.compile(r"(?P<stem>.+)\.rank-(?P<rank>0|[1-9][0-9]*)-of-(?P<world>[1-9][0-9]*)\.json")
_TRACE = record({"complete": FLAG, "totals": table(COUNT), "reason": TEXT})
_STATE = {"enum": [state.value for state in State]}
_LEDGER = record({"counter": TEXT, "total": or_null(AMOUNT), "state": _STATE, "reason": TEXT})
_COUNTER = record({"counter": TEXT, "reason": TEXT, "causes": list_of(record({"cause": TEXT, "amount": AMOUNT}))})
REPORT = Shape(
    record(
        {
            "convention": TEXT,
            "traces": list_of(_TRACE),
            "ledgers": list_of(_LEDGER),
            "verdict": record({"counters": list_of(_COUNTER)}),
            "exit_code": {"enum": [EXIT_OK, EXIT_UNEXPLAINED, EXIT_FAILED]},
        },
        run=TEXT,
    )
)
"""What is read of the report of a rank."""
HOW = "torchrun --nproc-per-node N -m reconcile watch --out DIR train.py"
LONGEST = 10  # ranks that are named


@dataclass(frozen=True)
class Together:
    """The reports of one step by rank: ``stem`` is their name, ``world`` how many ranks there are."""

    stem: str
    world: int
    reports: Mapping[int, Mapping[str, Any]]

    @property
    def missing_ranks(self) -> tuple[int, ...]:
        """The ranks that left no report."""
        return tuple(rank for rank in range(self.world) if rank not in self.reports)

    @cached_property
    def runs(self) -> dict[str, tuple[int, ...]]:
        """The ranks of each run, by the word that its processes share: '' for those that nothing tells from another run."""
        run_of = {rank: report.get("run", "") for rank, report in self.reports.items()}
        return {run_of[ranks[0]]: tuple(ranks) for ranks in group_same(sorted(run_of), run_of.get)}

    @property
    def is_mixed(self) -> bool:
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
        alike = group_same(sorted(self.reports), lambda rank: json.dumps((self.totals(rank), self.counters(rank))))
        return list(map(tuple, alike))

    @cached_property
    def sum(self) -> dict[str, int]:
        """What all ranks ran, without the conventions under which one is withheld; empty while one is missing or may be of
        another run."""
        if self.missing_ranks or self.is_mixed:
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
    ((stem, world),) = kinds
    if world > LARGEST_WORLD:
        raise UsageError(f"{brief(folder)} has reports of {world:,} ranks, and a world has at most {LARGEST_WORLD:,}.")
    wrong = next((int(match["rank"]) for _, match in found if int(match["rank"]) >= world), None)
    if wrong is not None:
        raise UsageError(f"{brief(folder)} has a report of rank {wrong} of {world}, and ranks count from 0.")
    remedy = "Let that rank write it again."
    reports = {int(match["rank"]): REPORT.read(path, "the report of a rank", remedy) for path, match in found}
    conventions = sorted({report["convention"] for report in reports.values()})
    if len(conventions) > 1:
        raise UsageError(
            f"the ranks in {brief(folder)} were counted by {' and '.join(conventions)}: use one convention."
        )
    return Together(stem, world, reports)


def describe_missing(together: Together) -> str:
    """A sentence that names the ranks that are not there; ''."""
    ranks = together.missing_ranks
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
        "missing": list(together.missing_ranks),
        "runs": [list(ranks) for ranks in together.runs.values()],
        "ranks": [
            {"ranks": list(ranks), "totals": together.totals(ranks[0]), "counters": together.counters(ranks[0])}
            for ranks in together.folds
        ],
        "sum": together.sum,
    }
