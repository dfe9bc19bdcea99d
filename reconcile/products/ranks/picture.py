"""The load-balance charts of ``ranks.html``: FLOPs of each rank and of each mesh coordinate, against the mean."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from markupsafe import Markup

from ...core.escaping import escape_line
from ...core.number_format import number, percent
from ...report.document import Picture
from ...report.folds import group_same
from . import words
from .ranked import Ranked

LABEL, BAR, TAIL = 170.0, 320.0, 310.0
"""Widths of a label, of the longest bar and of its number."""
HEAD, ROW = 22.0, 26.0
"""Heights of the mean's label and of a row."""
EACH = "Each rank"


STYLE = """
svg { display: block; width: 100%; max-width: 800px; min-width: 560px; height: auto; background: var(--sheet); }
svg text { fill: var(--ink); font: 13px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
svg .bar { fill: light-dark(#3a7bd5, #4f8fe6); }
svg .mean { stroke: light-dark(#b3541e, #f0a36b); stroke-width: 1.5; stroke-dasharray: 4 3; }
svg text.mean { fill: light-dark(#b3541e, #f0a36b); stroke: none; }
"""
"""CSS rules of the pictures."""
SVG = Markup(
    '<svg role="img" aria-label="{text}" viewBox="0 0 {width} {height}">{bars}'
    '<line class="mean" x1="{mean}" x2="{mean}" y1="{above}" y2="{height}"/>'
    '<text class="mean" x="{mean}" y="13" text-anchor="middle">mean {flops}</text></svg>'
)
SVG_BAR = Markup(
    '<text x="{left}" y="{line}" text-anchor="end">{label}</text>'
    '<rect class="bar" x="{start}" y="{top}" width="{width}" height="{height}"/><text x="{tail}" y="{line}">{amount}</text>'
)


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
    return [(words.ranks(places), sums[places[0]]) for places in group_same(list(sums), sums.get)]


def _picture(title: str, rows: list[tuple[str, int]], mean: Fraction) -> Picture:
    """A bar per row, and a line where the mean stands."""
    most = max(total for _, total in rows)
    flops = number(round(mean))
    amounts = [f"{number(total)}, {_off(total, mean)}" for _, total in rows]
    bars = Markup().join(
        SVG_BAR.format(
            left=LABEL - 8, line=HEAD + ROW * place + 17, label=escape_line(label), start=LABEL, top=HEAD + ROW * place + 4,
            width=round(BAR * total / most, 1), height=ROW - 8, tail=LABEL + BAR + 12, amount=amount,
        )
        for place, ((label, total), amount) in enumerate(zip(rows, amounts, strict=True))
    )  # fmt: skip
    said = "; ".join(f"{label}: {amount}" for (label, _), amount in zip(rows, amounts, strict=True))
    text = f"{title}. Mean {flops} FLOPs. {said}"
    svg = SVG.format(
        text=escape_line(text), width=LABEL + BAR + TAIL, height=HEAD + ROW * len(rows), bars=bars,
        mean=round(LABEL + BAR * float(mean) / most, 1), above=HEAD - 4, flops=flops,
    )  # fmt: skip
    return Picture(title, text, svg)


def _off(total: int, mean: Fraction) -> str:
    more = Fraction(total) - mean
    if not more:
        return "the mean"
    ratio = more / mean
    return f"{percent(abs(ratio.numerator), ratio.denominator)} {'above' if more > 0 else 'below'} the mean"
