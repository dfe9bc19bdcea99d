"""``nearest``: how far an unexplained number is from the nearest reading, in words (decode and audit)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...core.number_format import si
from .grammar import Candidate
from .printed_figure import PrintedFigure

LEAST = 0.01
"""A smaller difference, in per cent, is printed as a number."""


def nearest(among: Sequence[Candidate], wanted: PrintedFigure) -> str:
    """How far the nearest reading is, in the unit of the claim; and in the other one, if that is nearer."""
    if not among:
        return "no reading of the model can be compared with it"
    target = wanted.value
    ranked = sorted(among, key=lambda c: (abs(c.value - target), c.rank))
    mine = [c for c in ranked if c.unit == wanted.counts] or ranked
    unit = f" in {mine[0].unit}s" if wanted.counts and mine is not ranked else ""
    text = f"{measure(target, mine[0])}, the nearest of {len(mine)} readings{unit}"
    if mine[0].unit != ranked[0].unit and ranked[0].unit:
        text += f"; read as {ranked[0].unit}s it is {measure(target, ranked[0])}"
    return text


def measure(target: int, near: Candidate) -> str:
    """``too small by 5.0 %: 3,857,973,248 (3.86 GMACs, ...)``."""
    off = 100 * abs(target - near.value) / near.value if near.value else math.inf
    size = f"{si(near.value, near.unit)}s, " if near.unit else ""
    share = f"{off:,.0f} %" if off >= 10 else f"{off:.2g} %" if off >= LEAST else f"{abs(target - near.value):,}"
    return f"too {'small' if target < near.value else 'large'} by {share}: {near.value:,} ({size}{near.what})"
