"""Rows of the tables in Markdown reports and documents: equal layers share a row, and a long table keeps its largest rows.

``most`` is the number of its rows, and one more has the sum of the others; None means all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, TypeVar

from ..core.number_format import number
from ..core.results import Adjustment, LayerRow
from ..engine.answer import Answer
from ..engine.breakdown import Part, differing_components, sum_rows, to_the_work
from ..engine.phases import PhaseRow
from ..engine.phases import sum_phase_rows as summed_phases
from . import folds
from .folds import Fold, Share

Row = TypeVar("Row", LayerRow, PhaseRow)
Component = tuple[str, str, "list[int]"]
"""A layer, a component, and its counts by trace."""


def layers(result: Answer, most: int | None) -> dict[str, Any] | None:
    """The layer table: rows, and a last row of column sums. A long table shows equal columns once."""
    if not result.layers:
        return None
    frameworks = [t.framework for t in result.traces if t.complete]
    counters = [x.counter for x in result.ledgers if x.normalised_total is not None]
    work = {f: sum(row.work.get(f, 0) for row in result.layers) for f in frameworks}
    sums = {c: sum(row.counters.get(c, 0) for row in result.layers) for c in counters}
    long = len(result.layers) > folds.MAX_UNFOLDED
    rows, rest = folds.keep_largest(
        folds.fold_rows(result.layers),
        most,
        lambda each: each.count * _sum_amounts(each.one),
        lambda each: bool(each.one.residuals),
    )
    folded = any(row.count > 1 for row in rows)
    if rest:
        every = [row for each in rest for row in each.lines]
        rows = [*rows, _one(sum_rows(_rest(len(every), "layer"), every))]
    return {
        "frameworks": folds.group_same(frameworks, lambda f: tuple(row.work.get(f) for row in result.layers), long),
        "counters": folds.group_same(
            counters,
            lambda c: tuple((row.counters.get(c), tuple(to_the_work(row, c).items())) for row in result.layers),
            long,
        ),
        "rows": rows,
        "folded": folded,
        "work": work,
        "sums": sums,
    }


def between(adjustments: Sequence[Adjustment], most: int | None) -> tuple[Sequence[Fold[Adjustment]], str, int]:
    """The lines between two traces; for those that are not shown, their number and their sum."""
    alike = folds.fold_lines(
        adjustments,
        lambda line: line.layer,
        lambda line: (line.cause, line.op, line.amount, tuple((e.component, e.formula) for e in line.evidence)),
    )
    shown, rest = folds.keep_largest(alike, most, lambda each: abs(each.count * each.one.amount))
    every = [line.amount for each in rest for line in each.lines]
    return shown, _rest(len(every), "line") if every else "", sum(every)


def shares(parts: Sequence[Part], brief: bool, most: int | None = None) -> list[Share]:
    """The lines of a cause; with ``brief``, the layers of a block share one if they are many."""
    found = folds.list_shares(parts, folds.MAX_UNFOLDED if brief else math.inf)
    shown, rest = folds.keep_largest(found, most, lambda x: abs(x.count * x.amount), lambda x: bool(x.reason))
    if not rest:
        return found
    return [*shown, Share(_rest(len(rest), "line"), (), "", 1, sum(x.count * x.amount for x in rest))]


def phases(rows: Sequence[PhaseRow], most: int | None) -> list[Fold[PhaseRow]]:
    """The rows of a table by phase, folded."""
    shown, rest = folds.keep_largest(
        folds.fold_phases(rows),
        most,
        lambda each: each.count * sum(each.one.flops.values()),
        lambda each: not each.one.known,
    )
    every = [row for each in rest for row in each.lines]
    return [*shown, *([_one(summed_phases(_rest(len(every), "layer"), every))] if rest else [])]


def _rest(count: int, what: str) -> str:
    return f"{number(count)} more {what}s"


def _one(row: Row) -> Fold[Row]:
    """A row of its own."""
    return Fold((row.layer,), (), (row,), ())


def _sum_amounts(row: LayerRow) -> int:
    """The amounts in a row, without signs: its work, and the amounts to add to the counters."""
    to_add = sum(abs(amount) for causes in row.causes.values() for amount in causes.values())
    return max(row.work.values(), default=0) + to_add


def components(result: Answer, most: int | None) -> tuple[Sequence[Fold[Component]], Sequence[Fold[Component]]]:
    """The components in which two complete traces differ, by layer: those that are shown, and the others."""
    if len(result.traces) < 2 or not all(t.complete for t in result.traces):
        return (), ()
    rows = folds.fold_lines(differing_components(result.traces), itemgetter(0), lambda row: (row[1], tuple(row[2])))
    return folds.keep_largest(rows, most, lambda each: each.count * abs(each.one[2][-1] - each.one[2][0]))
