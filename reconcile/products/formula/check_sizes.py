"""Checks the polynomials of fit.py: traces the model at the other sizes of its ranges, where a branch may change the work.

The counters do not run again at each of them. They run where an op of the trace, in any component of its work, is not on
its own polynomial: a branch, a stride, a remainder.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from ...core.registry import frameworks
from ...core.work import MASKED
from ...engine.answer import Answer
from .amounts import CAUSE
from .counts_table import Key, Table
from .fit import RAISES, Fit, Runs, polynomial
from .polynomial import box, interpolate
from .variables import At, Variable

MOST = 256
"""The most points at which the model runs: all points, if the ranges have no more."""
CALLS, UNKNOWN = "calls", "unknown"

Part = tuple[str, str, str]
"""Layer, op, and a component of the work of these, CALLS or UNKNOWN. The layer of an op that does no arithmetic is ''."""


def scan(runs: Runs, done: Fit) -> Fit:
    """The fit, checked at the other points, too: a count that misses its polynomial there has none. Raises UsageError if the
    model does not run at one."""
    traced = runs.trace_points(dict.fromkeys([*done.table.points, *points(runs.variables, done.table.points)]))
    ran = Table(traced)
    missed = [
        at
        for key, found in done.polynomials.items()
        if found is not None and is_of_traces(key.of)
        for at, value in ran.values(key).items()
        if found.at(at) != value
    ]
    counted = [key for key, found in done.polynomials.items() if found is not None and not is_of_traces(key.of)]
    kept = [key for key in counted if key.layer is None or any(done.table.values(key).values())]
    table = runs.at([*missed, *_branches(runs.variables, done, traced, kept)])
    polynomials = {key: polynomial(runs.variables, done.axes, done.fitted, table, key) for key in table.counts()}
    return replace(done, table=table, ran=ran, polynomials=polynomials)


def is_of_traces(name: str) -> bool:
    """Whether a count is of the work that ran, without any counter."""
    return (name.split(":", 2)[2] if name.startswith(CAUSE) else name) in {f.trace for f in frameworks().values()}


def points(variables: Sequence[Variable], first: Collection[At]) -> list[At]:
    """The points at which the model runs: all of the ranges, if these are at most MOST.

    Otherwise ``first``, sizes along each axis, at the smallest and at the largest sizes of the others, and points drawn from all,
    so that no stride of theirs hides a pattern.
    """
    if size(variables) <= MOST:
        return list(itertools.product(*(v.values for v in variables)))
    chosen = dict.fromkeys(first)
    drawn = _draw_points(variables, random.Random(0))
    ends = [tuple(v.values[k] for v in variables) for k in (0, -1)][: len(variables)]
    for index, variable in enumerate(variables):
        for end in ends:
            for value in _thin_values(variable.values, MOST // (2 * len(variables) * len(ends))):
                at = (*end[:index], value, *end[index + 1 :])
                chosen[at] = None
    for at in itertools.islice(drawn, MOST * MOST):
        if len(chosen) >= MOST:
            break
        chosen[at] = None
    return list(chosen)


def size(variables: Sequence[Variable]) -> int:
    """The number of points of these ranges."""
    return math.prod(len(v.values) for v in variables)


def _thin_values(values: Sequence[int], most: int) -> list[int]:
    """All values, or about this many drawn from them."""
    if len(values) <= most:
        return list(values)
    dice = random.Random(len(values))
    return sorted({values[dice.randrange(len(values))] for _ in range(most)})


def _draw_points(variables: Sequence[Variable], dice: random.Random) -> Iterator[At]:
    while True:
        yield tuple(v.values[dice.randrange(len(v.values))] for v in variables)


def _branches(
    variables: Sequence[Variable], done: Fit, traced: Mapping[At, Answer], counted: Sequence[Key]
) -> list[At]:
    """The points at which these counts of counters have to be checked: there an op of their layer, or any op if no op of
    the layer ran, is on no polynomial."""
    by_point = {at: _parts(result) for at, result in traced.items()}
    names = dict.fromkeys(part for parts in by_point.values() for part in parts)
    layers = {layer for layer, _, _ in names}
    asked = {key.layer for key in counted}
    every = not asked <= layers  # a total, whose layer is None, or a layer of the counter's own
    known: dict[tuple[int, ...], list[At]] = {}
    needed: dict[At, None] = {}
    for part in names:
        if asked and (every or part[0] in asked):
            values = tuple(parts.get(part, 0) for parts in by_point.values())
            if values not in known:
                known[values] = _beside(variables, done, dict(zip(by_point, values, strict=True)))
            needed |= dict.fromkeys(known[values])
    return list(needed)


def _beside(variables: Sequence[Variable], done: Fit, values: Mapping[At, int]) -> list[At]:
    """The points at which these values miss a polynomial: the one, of the degrees of the fit or of higher degrees, on which most
    of them lie."""
    fewest = list(values)
    degrees = [max(powers[index] for powers in done.fitted) for index in range(len(variables))]
    for raised in range(RAISES + 1):
        exponents = box([min(d + raised, len(axis) - 1) for d, axis in zip(degrees, done.axes, strict=True)])
        fitted = {powers: tuple(axis[k] for k, axis in zip(powers, done.axes, strict=True)) for powers in exponents}
        if not values.keys() >= set(fitted.values()) or len(fitted) == len(values):
            break
        through = interpolate([v.name for v in variables], done.axes, {p: values[at] for p, at in fitted.items()})
        fewest = min(fewest, [at for at, value in values.items() if through.at(at) != value], key=len)
        if not fewest:
            break
    return fewest


def _parts(result: Answer) -> dict[Part, int]:
    """The work that ran: how often each op of each layer was called, and each component of its work."""
    made: dict[Part, int] = {}

    def add(layer: str, op: str, name: str, amount: int) -> None:
        if amount:
            made[layer, op, name] = made.get((layer, op, name), 0) + amount

    for trace in result.traces:
        for row in trace.rows:
            for name, amount in ((CALLS, row.calls), (MASKED, row.work.masked), *row.work.items()):
                add(row.layer, f"{trace.name} {row.op}", name, amount)
        for unknown in trace.unknown:
            add(unknown.layer, f"{trace.name} {unknown.op}", UNKNOWN, 1)
        for op, calls in (*trace.no_arithmetic.items(), *trace.integer_ops.items()):
            add("", f"{trace.name} {op}", CALLS, calls)
    return made
