"""Rows and widths of the load-balance charts in ranks.html.j2: FLOPs of each rank and each mesh coordinate, against the mean."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from ...core.text import number, percent
from . import words
from .ranked import Ranked

LABEL, BAR, TAIL = 170.0, 320.0, 310.0
"""Widths of a label, of the longest bar and of its number. (No integers: a page writes these with separators.)"""
HEAD, ROW = 22.0, 26.0
"""Heights of the mean's label and of a row."""
EACH = "Each rank"


@dataclass(frozen=True, slots=True)
class Bar:
    """A row: FLOPs, and how far they are from the mean (``+8.3 %``)."""

    label: str
    total: int
    width: float
    off: str


@dataclass(frozen=True, slots=True)
class Picture:
    """Rows, and where the mean stands: ``mean`` in units from the left."""

    title: str
    bars: tuple[Bar, ...]
    mean: float
    mean_flops: str
    label, head, row, tail = LABEL, HEAD, ROW, LABEL + BAR + 12
    width = LABEL + BAR + TAIL

    @property
    def height(self) -> float:
        """In units."""
        return HEAD + ROW * len(self.bars)

    @property
    def text(self) -> str:
        """What it shows, for those who do not see it."""
        rows = "; ".join(f"{bar.label}: {number(bar.total)} FLOPs, {bar.off}" for bar in self.bars)
        return f"{self.title}. Mean {self.mean_flops} FLOPs. {rows}"


def pictures(result: Ranked) -> Iterator[Picture]:
    """One of each rank, and one for each dimension of the mesh in which places differ, such as the stages of a pipeline; none
    if the work of a rank is unknown."""
    name = result.convention.name
    if name not in result.totals or not result.totals[name]:
        return
    by_rank = {rank: fold.trace.totals[name] for fold in result.folds for rank in fold.ranks}
    folds = [(words.ranks(fold.ranks), fold.trace.totals[name]) for fold in result.folds]
    yield _picture(EACH, folds, Fraction(result.totals[name], result.world.size))
    mesh = result.world.mesh
    for dim, size in enumerate(mesh.sizes):
        sums = dict.fromkeys(range(size), 0)
        for rank, total in by_rank.items():
            sums[mesh.places[rank][dim]] += total
        if len(mesh.sizes) > 1 and len(set(sums.values())) > 1:
            title = f"All ranks at each place of {mesh.names[dim]}"
            yield _picture(title, _fold_places(sums), Fraction(result.totals[name], size))


def _fold_places(sums: dict[int, int]) -> list[tuple[str, int]]:
    """Places with equal work share a row."""
    found: dict[int, list[int]] = {}
    for place, total in sums.items():
        found.setdefault(total, []).append(place)
    return [(words.ranks(places), total) for total, places in found.items()]


def _picture(title: str, rows: list[tuple[str, int]], mean: Fraction) -> Picture:
    most = max(total for _, total in rows)
    bars = [Bar(label, total, round(BAR * total / most, 1), _off(total, mean)) for label, total in rows]
    return Picture(title, tuple(bars), round(LABEL + BAR * float(mean) / most, 1), number(round(mean)))


def _off(total: int, mean: Fraction) -> str:
    more = Fraction(total) - mean
    if not more:
        return "the mean"
    ratio = more / mean
    return f"{percent(abs(ratio.numerator), ratio.denominator)} {'above' if more > 0 else 'below'} the mean"
