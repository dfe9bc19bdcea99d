"""Long tables are cut: the largest lines stay, in their order, and one line has the sum of the others, so a table adds up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from ..core.results import LayerRow
from ..engine.phases import PhaseRow

T = TypeVar("T")


def largest(
    lines: Sequence[T], limit: int | None, size: Callable[[T], Any], kept: Callable[[T], bool] = lambda _: False
) -> tuple[Sequence[T], Sequence[T]]:
    """The ``limit`` largest lines and all that are to be ``kept``, in their order, and the rest, which is never a single line.
    No limit: all."""
    if limit is None:
        return lines, ()
    by_size = sorted(range(len(lines)), key=lambda index: size(lines[index]), reverse=True)
    shown = {*by_size[:limit], *(i for i, x in enumerate(lines) if kept(x))}
    if len(lines) <= len(shown) + 1:
        return lines, ()
    return [x for i, x in enumerate(lines) if i in shown], [x for i, x in enumerate(lines) if i not in shown]


def summed(name: str, rows: Sequence[LayerRow]) -> LayerRow:
    """The sums of these rows. What is unknown in one is unknown in the sum."""
    work = {f: sum(row.work[f] for row in rows) for f in rows[0].work if all(f in row.work for row in rows)}
    causes = {
        counter: _sums([row.causes.get(counter, {}) for row in rows])
        for counter in dict.fromkeys(counter for row in rows for counter in row.causes)
    }
    return LayerRow(name, work, _sums([row.counters for row in rows]), causes, _sums([row.residuals for row in rows]))


def summed_phases(name: str, rows: Sequence[PhaseRow]) -> PhaseRow:
    """The sums of these rows by phase; a lower bound if one of them is."""
    return PhaseRow(name, _sums([row.flops for row in rows]), all(row.known for row in rows))


def _sums(amounts: Sequence[Mapping[Any, int]]) -> dict[Any, int]:
    return {
        key: sum(each.get(key, 0) for each in amounts) for key in dict.fromkeys(k for each in amounts for k in each)
    }
