"""``Reasons``: why a count is not a polynomial: it repeats a pattern, it misses a point, or a point has no count.

A reason also names the sizes for ``--at`` at which the count lies on one polynomial, where they are found.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

from ...core.number_format import number
from ...core.records import Trace
from ...core.registry import frameworks, known_counters
from ...engine.settle import Collected
from .amounts import CAUSE
from .check_sizes import MOST, is_of_traces, size
from .counts_table import Key, Table
from .fit import Fit, Runs, highest, known_counts, name_point, polynomial
from .polynomial import Polynomial, Powers, box, eliminate, format_fraction, interpolate
from .variables import FEWEST, HELD_OUT, NODES, At, Variable

SHOWN = 5
"""The layers that the reason of a total names."""
PERIODS = (2, 3, 4, 5, 6, 7, 8, 16, 32)
"""The periods that are looked for, in steps of a variable's sizes."""
TIMES = 5
"""The points on one residue class: three for a parabola, and two that show whether it is one."""
CUTS = re.compile(r"stride|ksize|kernel|window|pad|ceil|dilation|output_size|scale")
"""Names of an op's arguments that cut a size into windows."""


class Reasons:
    """The reasons for the counts of one model. If a layer is not a polynomial, run the model along the axes once more."""

    def __init__(self, runs: Runs, done: Fit, layers: Sequence[Key]) -> None:
        self.runs = runs
        self.done = done
        self.layers = layers

    def of(self, key: Key) -> Iterable[tuple[str, str]]:
        """The ops of a count that are not polynomials ('' for all of them), each with the reason."""
        without = self.done.table.reason(key.of) if key.layer is None else ""
        lacking = [at for at, value in self.done.table.values(key).items() if value is None]
        below = [layer.layer for layer in self.layers if layer.of == key.of and layer.layer]
        if without:
            return [("", without)]
        if key.layer is None and below:
            others = f" and {len(below) - SHOWN} others" if len(below) > SHOWN else ""
            return [("", f"it is the sum of its layers, among them {', '.join(below[:SHOWN])}{others}")]
        if lacking:
            return [("", f"there is no count at {name_point(self.runs.variables, lacking[0])}")]
        return self._patterns(key) or [("", self._miss(key))]

    def _patterns(self, key: Key) -> list[tuple[str, str]]:
        """The ops of a layer that repeat a pattern along some axis: those of its trace, which every counter counts."""
        if key.layer is None:
            return []
        found = []
        layer = Key(_trace(key.of), key.layer)
        for op in self.done.table.ops(layer):
            if known_counts(self.done.table, op) is None or self._fits(op):
                continue
            for index, variable in enumerate(self.runs.variables):
                repeats = self._period(index, op)
                if repeats is not None:
                    found.append((op.op or "", self._repeats(variable, repeats, op)))
        return found

    def _fits(self, key: Key) -> bool:
        done = self.done
        return polynomial(self.runs.variables, done.axes, done.fitted, done.table, key) is not None

    def _repeats(self, variable: Variable, repeats: int, op: Key) -> str:
        """The sentence for a count that repeats a pattern, with the sizes at which it does not."""
        first = next(iter(self.runs.by_point.values()))
        ids = {row.id for trace in first[1].traces for row in trace.rows if (row.layer, row.op) == (op.layer, op.op)}
        windows = cuts(first[0], ids)
        sizes = ", ".join(str(size) for size in variable.values[: 3 * repeats : repeats])
        gives = f"{variable.name}={sizes}, ..."
        if isinstance(variable.values, range):
            low, high = variable.text.partition("/")[0].split("..")
            gives = f"{variable.name}={low.strip()}..{high.strip()}/{repeats * variable.values.step}"
        return (
            f"it repeats a pattern every {repeats} sizes of {variable.name}{f' ({windows})' if windows else ''}; at "
            f"{variable.name} = {sizes}, ... it lies on one polynomial: give --at {gives}"
        )

    def _miss(self, key: Key) -> str:
        """The sentence for a count that differs from the polynomial through the fitted points."""
        values = known_counts(self.done.table, key)
        assert values is not None
        through = self._interpolate(values)
        at = next(at for at, value in values.items() if through.at(at) != value)
        edge = after_the_first(self.runs.variables, values)
        ran = known_counts(self.done.ran, Key(_trace(key.of), key.layer))
        if edge is not None and (ran is None or without_the_first(self.runs.variables, edge, ran)):
            name, sizes = self.runs.variables[edge].name, self.runs.variables[edge].values
            few = [f"; without {name}={sizes[0]} it lies on one polynomial: give sizes of {name} from {sizes[1]} on"]
        else:
            few = self._fitting_sizes(key) or self._few()
        return (
            f"the polynomial through {len(self.done.fitted)} points gives {format_fraction(through.at(at))} at "
            f"{name_point(self.runs.variables, at)}, where it is {number(values[at])}{''.join(few)}"
        )

    def _fitting_sizes(self, key: Key) -> list[str]:
        """The sizes of a variable up to which the count, and what ran there, lies on the polynomial through the fitted points."""
        variables, done = self.runs.variables, self.done
        missed = [at for one in (key, Key(_trace(key.of), key.layer)) for at in self._missed_points(one)]
        least = FEWEST if len(variables) > 1 else HELD_OUT + 2
        for index, variable in enumerate(variables):
            first = min((at[index] for at in missed), default=variable.values[0])
            sizes = [size for size in variable.values if size < first]
            used = {at[index] for at in done.fitted.values()}
            if len(sizes) >= max(least, len(used) + 1) and used <= set(sizes):
                gives = ",".join(map(str, sizes))
                if isinstance(variable.values, range):
                    step = f"/{variable.values.step}" if variable.values.step > 1 else ""
                    gives = f"{sizes[0]}..{sizes[-1]}{step}"
                return [
                    f"; up to {variable.name}={sizes[-1]} it lies on one polynomial: give --at {variable.name}={gives}"
                ]
        return []

    def _missed_points(self, key: Key) -> list[At]:
        """The points at which a count is missing or differs from the polynomial through the fitted points."""
        values = (self.done.ran if is_of_traces(key.of) else self.done.table).values(key)
        known = {at: value for at, value in values.items() if value is not None}
        if not known.keys() >= set(self.done.fitted.values()):
            return list(values)
        through = self._interpolate(known)
        return [at for at, value in values.items() if through.at(at) != value]

    def _interpolate(self, values: Mapping[At, int]) -> Polynomial:
        """The polynomial through the fitted points."""
        fitted = {powers: values[at] for powers, at in self.done.fitted.items()}
        return interpolate([v.name for v in self.runs.variables], self.done.axes, fitted)

    def _few(self) -> list[str]:
        """The variables with too few sizes for a higher degree."""
        return [
            f"; the sizes of {v.name} allow a degree of {most}, so give more"
            for v, most in zip(self.runs.variables, highest(self.runs.variables, self.done.axes), strict=True)
            if most < NODES - 2
        ]

    def _period(self, index: int, op: Key) -> int | None:
        table = self._axes[index]
        values = {table_at: value for table_at, value in table.values(op).items() if value is not None}
        steps = {self.runs.variables[index].values.index(at[index]): value for at, value in values.items()}
        return period(steps) if len(values) == len(table.points) else None

    @cached_property
    def _axes(self) -> list[Table]:
        """The traces of the model along each axis, at the sizes at which a period shows."""
        base = tuple(v.values[0] for v in self.runs.variables)
        lines = [
            [(*base[:i], v.values[step], *base[i + 1 :]) for step in self._steps(len(v.values))]
            for i, v in enumerate(self.runs.variables)
        ]
        runs = self.runs.trace_points(at for line in lines for at in line)
        return [Table({at: runs[at] for at in line}) for line in lines]

    def _steps(self, count: int) -> Sequence[int]:
        """The steps along an axis at which a pattern is looked for: all, if the model ran at each of them."""
        return range(count) if size(self.runs.variables) <= MOST else offsets(count)


def _trace(of: str) -> str:
    """The trace of a counter or of a cause; a trace is its own."""
    name = of.split(":", 2)[2] if of.startswith(CAUSE) else of
    counter = known_counters().get(name)
    return frameworks()[counter.framework].trace if counter is not None else name


MOST_EXPONENTS = 40
"""The most exponents that are tried: beyond them, exact elimination is slow."""


def after_the_first(variables: Sequence[Variable], values: Mapping[At, int]) -> int | None:
    """The index of a variable such that, without its smallest size, all counts lie on one polynomial, with HELD_OUT counts to
    check it; None if there is no such variable."""
    return next((index for index in range(len(variables)) if without_the_first(variables, index, values)), None)


def without_the_first(variables: Sequence[Variable], index: int, values: Mapping[At, int]) -> bool:
    """Whether all counts except those at the smallest size of this variable lie on one polynomial."""
    rest = {at: value for at, value in values.items() if at[index] != variables[index].values[0]}
    return len({at[index] for at in rest}) >= FEWEST and _smooth(rest)


def _smooth(values: Mapping[At, int]) -> bool:
    """Whether a polynomial, of a degree that leaves one size of each variable for checking, has all these values."""
    sizes = [len({at[axis] for at in values}) for axis in range(len(next(iter(values))))]
    degrees = itertools.product(*(range(min(size - 1, NODES - 1)) for size in sizes))
    fitting = (d for d in degrees if math.prod(k + 1 for k in d) <= min(MOST_EXPONENTS, len(values) - HELD_OUT))
    return any(_lie_on(box(d), values) for d in sorted(fitting, key=sum))


def _lie_on(exponents: Sequence[Powers], values: Mapping[At, int]) -> bool:
    """Whether exactly one polynomial with these exponents takes all values: by elimination in exact fractions."""
    rows = [
        [Fraction(math.prod(x**p for x, p in zip(at, powers, strict=True))) for powers in exponents] + [Fraction(value)]
        for at, value in values.items()
    ]
    return eliminate(rows, len(exponents)) and not any(row[-1] for row in rows[len(exponents) :])


def offsets(count: int) -> list[int]:
    """The steps from a variable's first size at which a period shows, if it has ``count`` sizes: for each period the first
    ones on a residue class, and the last."""
    first = {k * m for m in PERIODS for k in range(TIMES) if k * m < count}
    return sorted(first | {(count - 1) // m * m for m in PERIODS})


def period(values: Mapping[int, int]) -> int | None:
    """The shortest period, of those looked for, with which these counts lie on a parabola; None if there is none, or if all of
    them lie on one. No count contradicts it: the counts of every other residue class lie on their own parabola.

    The counts are by the number of steps from the first size. If there is one for every step, every period is looked for.
    """
    dense = len(values) == max(values, default=-1) + 1
    for m in (1, *(range(2, len(values) // TIMES + 1) if dense else PERIODS)):
        classes = [sorted(step for step in values if step % m == rest) for rest in range(m)]
        if len(classes[0]) >= TIMES and all(_on_parabola(c, [values[step] for step in c]) for c in classes if c):
            return m if m > 1 else None
    return None


def _on_parabola(steps: Sequence[int], values: Sequence[int]) -> bool:
    """Whether these counts lie on a parabola, as any three or fewer do."""
    nodes = steps[: TIMES - 2]
    line = interpolate(("x",), (nodes,), {(k,): values[k] for k in range(len(nodes))})
    return all(line.at((step,)) == value for step, value in zip(steps, values, strict=True))


def cuts(collected: Collected, ids: Collection[str]) -> str:
    """The arguments of these ops of a trace that cut sizes into windows, as in its record: ``stride=[2, 2]``."""
    ops = [op for trace in collected.traces if isinstance(trace, Trace) for op in trace.ops if op.id in ids]
    sizes = {name: value for op in ops for name, value in op.attrs.items() if CUTS.search(name) and _cuts(value)}
    return ", ".join(f"{name}={value}" for name, value in sizes.items())


def _cuts(value: Any) -> bool:
    """Whether an argument is anything but a stride of 1, a pad of 0, or none."""
    if isinstance(value, (list, tuple)):
        return any(map(_cuts, value))
    return value not in (None, False, 0, 1)
