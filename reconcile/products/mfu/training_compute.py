"""The training compute that a row of ``reconcile mfu --table`` states enough for: 6 N D, what its devices do, or both."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

from .claims import Row
from .conventions import denominators
from .printed_number import Printed, exact

SECONDS = 3600
BASE = ", and the base model"


class Compute(NamedTuple):
    """FLOPs of a whole training: the way in which they are counted, the figures, and the amount."""

    way: str
    figures: str
    flops: Printed


def list_computes(row: Row) -> list[Compute]:
    """What the training took, the simplest way first: N is every parameter, or those that are active for a token."""
    stated = row.training
    found: list[Compute] = []
    every = Printed(row["params"], Fraction(row.shape.params), Fraction(0)) if row.shape.params else None
    for name, size in (("active parameters", stated.active), ("every parameter" if stated.active else "", every)):
        if size is not None and stated.tokens is not None:
            way = "6ND" + (f" of {name}" if name else "")
            found.append(Compute(way, f"6 x {size.text} x {stated.tokens.text}", _multiply(size, stated.tokens, 6)))
    counted = list(found)
    for peak in denominators(row):
        if stated.hours is None or stated.utilisation is None:
            continue
        flops = stated.hours.over(1 / (SECONDS * peak.flops * stated.utilisation))
        text = f"{stated.hours.text} h x {peak.label} x {float(stated.utilisation):g}"
        found.append(Compute("hardware x utilisation", text, flops))
        found += [
            Compute(
                f"geometric mean of {one.way} and hardware x utilisation",
                f"{one.figures}; {text}",
                _mean(one.flops, flops),
            )
            for one in counted
        ]
    if stated.base is not None:
        found += [
            Compute(one.way + BASE, f"{one.figures} + {stated.base.text}", _add(one.flops, stated.base.value))
            for one in found
        ]
        found.append(Compute("the base model alone", stated.base.text, exact(stated.base.value)))
    return found


def _multiply(one: Printed, other: Printed, factor: int) -> Printed:
    low, high = factor * one.low * other.low, factor * one.high * other.high
    return Printed("", factor * one.value * other.value, (high - low) / 2)


def _add(one: Printed, other: Fraction) -> Printed:
    """The sum with the base model's figure, which is added as it is printed."""
    return Printed("", one.value + other, one.half)


def _mean(one: Printed, other: Printed) -> Printed:
    """The geometric mean, its middle to a float's digits."""
    value = Fraction(math.sqrt(one.value * other.value))
    return Printed("", value, value * (one.half / one.value + other.half / other.value) / 2)
