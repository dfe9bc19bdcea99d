"""Finds the period of a count that is not a polynomial of a size, and the strides or windows that may cause it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ...core.records import Trace
from ...engine.settle import Collected
from .polynomial import interpolate

PERIODS = (2, 3, 4, 5, 6, 7, 8, 16, 32)
"""The periods that are looked for, in steps of a variable's sizes."""
TIMES = 5
"""The points on one residue class: three for a parabola, and two that show whether it is one."""
CUTS = re.compile(r"stride|ksize|kernel|window|pad|ceil|dilation|output_size|scale")
"""Names of an op's arguments that cut a size into windows."""


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
