"""Runs a model at a few values of its sizes (points), and interpolates each count by a polynomial through them.

The degree in each variable is the largest that any count has along that variable's axis. If polynomials of these degrees
miss a point that they were not fitted to, the degrees are raised; a count that still misses one is not a polynomial.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ...core.causes import State
from ...core.errors import UsageError
from ...engine.answer import Answer
from ...engine.settle import Collected
from ...launch.request import Point
from .counts_table import Key, Table
from .polynomial import Polynomial, Powers, box, degree, interpolate
from .variables import NODES, At, Template, Variable, held_out, nodes

Run = tuple[Collected, Answer]
Take = Callable[[Sequence[Point], bool], Sequence[Run]]
"""Runs a model at these points; with False, it only takes traces."""

MOST = 150
"""The most points that one fit runs."""
RAISES = 2
"""How often the degrees are raised."""


@dataclass(slots=True)
class Runs:
    """Runs a model at points and keeps each run, so that no point runs twice: ``at`` with counters, ``traced`` without."""

    template: Template
    take: Take
    by_point: dict[At, Run] = field(default_factory=dict)
    without_counters: dict[At, Answer] = field(default_factory=dict)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The model's variables."""
        return self.template.variables

    def at(self, points: Iterable[At]) -> Table:
        """Run the model at these points, unless it has run there, and return the counts at all points.

        Raises UsageError if it does not run.
        """
        new = [at for at in dict.fromkeys(points) if at not in self.by_point]
        if new:
            self.by_point.update(zip(new, self.run(new, True), strict=True))
        return Table({at: result for at, (_, result) in self.by_point.items()})

    def trace_points(self, points: Iterable[At]) -> dict[At, Answer]:
        """What runs at these points, without any counter. Raises UsageError if the model does not run."""
        wanted = list(dict.fromkeys(points))
        new = [at for at in wanted if at not in self.by_point and at not in self.without_counters]
        if new:
            self.without_counters.update(zip(new, (result for _, result in self.run(new, False)), strict=True))
        return {at: self.by_point[at][1] if at in self.by_point else self.without_counters[at] for at in wanted}

    def run(self, points: Sequence[At], counting: bool) -> Sequence[Run]:
        """The model's runs at these points. Raises UsageError if it does not run."""
        runs = self.take([self.template.point(at) for at in points], counting)
        for at, (_, result) in zip(points, runs, strict=True):
            failed = next((trace for trace in result.traces if trace.state is State.FAILED), None)
            if failed is not None:
                raise UsageError(
                    f"the model does not run at {name_point(self.variables, at)}: {failed.reason.rstrip('.')}. Name the sizes at "
                    "which it runs: --at takes NAME=LO..HI/STEP, and lists such as T=16,32,64,128,256."
                )
        return runs


@dataclass(frozen=True, slots=True)
class Fit:
    """Every count with its polynomial, None if it has none. ``fitted`` are the points that the polynomials were fitted to, by
    the exponents that they determine, and ``held_out`` some that they were not; ``table`` has the counts at all points at which
    the counters ran, and ``ran`` the counts of the work that ran, at these points and at those with only a trace."""

    axes: tuple[tuple[int, ...], ...]
    fitted: Mapping[Powers, At]
    held_out: tuple[At, ...]
    table: Table
    polynomials: dict[Key, Polynomial | None]
    ran: Table


def name_point(variables: Sequence[Variable], at: At) -> str:
    """A point as text: ``B=1, T=16``."""
    return ", ".join(f"{v.name}={value}" for v, value in zip(variables, at, strict=True))


def fit(runs: Runs) -> Fit:
    """Fit a polynomial to every count. Raises UsageError if the model does not run at a point, or has too few points."""
    variables = runs.variables
    axes = nodes(variables)
    base = tuple(axis[0] for axis in axes)
    lines = [[(*base[:i], x, *base[i + 1 :]) for x in axis] for i, axis in enumerate(axes)]
    on_lines = list(dict.fromkeys(at for line in lines for at in line))
    table = runs.at([*on_lines, *(held_out(variables, on_lines) if len(variables) == 1 else ())])
    most = highest(variables, axes)
    lowest = [_highest_degree(table, axis, line) for axis, line in zip(axes, lines, strict=True)]
    for raised in range(RAISES + 1):
        degrees = [min(d + raised, m) for d, m in zip(lowest, most, strict=True)]
        if math.prod(d + 1 for d in degrees) > MOST:
            raise UsageError(f"with these variables the counts take more than {MOST} points: name fewer with --at.")
        fitted = {powers: tuple(axis[k] for k, axis in zip(powers, axes, strict=True)) for powers in box(degrees)}
        outside = held_out(variables, {*fitted.values(), *on_lines})
        table = runs.at([*fitted.values(), *outside])
        polynomials = {key: polynomial(variables, axes, fitted, table, key) for key in table.counts()}
        missed = [key for key, found in polynomials.items() if found is None and _is_smooth(table, key, axes, lines)]
        if not missed or degrees == most:
            break
    return Fit(axes, fitted, tuple(outside), table, polynomials, table)


def highest(variables: Sequence[Variable], axes: Sequence[Sequence[int]]) -> list[int]:
    """The highest degree in each variable that can be checked: one size or more is left to which the polynomial is not fitted."""
    sizes = [
        len(axis) - 1 if len(axis) < len(v.values) else len(axis) - 2 for v, axis in zip(variables, axes, strict=True)
    ]
    return [min(size, NODES - 2) for size in sizes]


def polynomial(
    variables: Sequence[Variable], axes: Sequence[Sequence[int]], fitted: Mapping[Powers, At], table: Table, key: Key
) -> Polynomial | None:
    """The polynomial of a count through the fitted points, None if a point has no count or the polynomial misses one."""
    values = known_counts(table, key)
    if values is None:
        return None
    through = interpolate([v.name for v in variables], axes, {powers: values[at] for powers, at in fitted.items()})
    return through if all(through.at(at) == value for at, value in values.items()) else None


def known_counts(table: Table, key: Key) -> dict[At, int] | None:
    """The count at every point, None if a point has none."""
    values = {at: value for at, value in table.values(key).items() if value is not None}
    return values if len(values) == len(table.points) else None


def _highest_degree(table: Table, axis: Sequence[int], line: Sequence[At]) -> int:
    """The highest degree of any count along an axis, of those that are polynomials there."""
    degrees = [_degree(table, key, axis, line) for key in table.counts()]
    return max((d for d in degrees if d is not None and d < NODES - 1), default=0)


def _degree(table: Table, key: Key, axis: Sequence[int], line: Sequence[At]) -> int | None:
    values = [value for value in table.values(key, line).values() if value is not None]
    return degree(axis, values) if len(values) == len(line) else None


def _is_smooth(table: Table, key: Key, axes: Sequence[Sequence[int]], lines: Sequence[Sequence[At]]) -> bool:
    """Whether a count is a polynomial along every axis."""
    degrees = [_degree(table, key, axis, line) for axis, line in zip(axes, lines, strict=True)]
    return None not in degrees and NODES - 1 not in degrees
