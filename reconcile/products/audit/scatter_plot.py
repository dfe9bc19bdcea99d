"""A scatter plot of an audit, as SVG for its HTML page: the ratio of each published number to the MACs that ran.

The ratio is on the y axis, the MACs on the x axis, both logarithmic; lines mark 1 (MACs) and 2 (FLOPs), and a short line at a
model the MACs without fused attention. The plot is static: no script, nothing is loaded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup, escape

from ...core.number_format import multiple, si
from ..decode.printed_figure import figure
from .verdict import State, Verdict

WIDTH, HEIGHT = 960, 400
LEFT, RIGHT, TOP, BOTTOM = 84, 92, 16, 52
FURTHEST = 30
"""A figure of more than this times the multiply-adds, or of less than one in this, is drawn at the edge."""
LINES = ((1.0, "MACs"), (2.0, "FLOPs"))
TICKS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 10.0, 20.0)


def picture(verdicts: Sequence[Verdict]) -> Markup:
    """The plot as SVG; '' if no model ran. y axis: the ratio of the figure to the multiply-adds that ran; x axis: these."""
    ran = [(v, figure(v.claim.printed).value) for v in verdicts if v.macs]
    dots = [(v, claimed, claimed / v.macs) for v, claimed in ran if claimed]
    if not dots:
        return Markup("")
    ratios = [min(FURTHEST, max(1 / FURTHEST, ratio)) for _, _, ratio in dots]
    low, high = math.log(min(0.4, *ratios) / 1.1), math.log(max(3, *ratios) * 1.1)
    least, most = math.log10(min(v.macs for v, *_ in dots)) - 0.1, math.log10(max(v.macs for v, *_ in dots)) + 0.1

    def across(macs: int) -> str:
        return f"{LEFT + (WIDTH - LEFT - RIGHT) * (math.log10(macs) - least) / (most - least):.1f}"

    def up(ratio: float) -> str:
        held = min(high, max(low, math.log(ratio)))
        return f"{TOP + (HEIGHT - TOP - BOTTOM) * (high - held) / (high - low):.1f}"

    shapes = [
        f'<text x="{LEFT - 8}" y="{up(tick)}" class="tick up">{tick:g} ×</text>'
        for tick in TICKS
        if low < math.log(tick) < high
    ]
    shapes += [
        f'<text x="{across(10**power)}" y="{HEIGHT - BOTTOM + 22}" class="tick">{si(10**power, "MAC")}</text>'
        for power in range(math.ceil(least), math.floor(most) + 1)
    ]
    for ratio, name in LINES:
        y = up(ratio)
        shapes.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>')
        shapes.append(f'<text x="{WIDTH - RIGHT + 8}" y="{y}" class="name">{name}</text>')
    for macs, lost in sorted({(v.macs, v.lost) for v, *_ in dots if v.lost}):
        x, y = float(across(macs)), up(lost / macs)
        shapes.append(f'<line class="lost" x1="{x - 6:.1f}" x2="{x + 6:.1f}" y1="{y}" y2="{y}"/>')
    # what is not explained lies on top: it is what a reader looks for
    for v, claimed, ratio in sorted(dots, key=lambda dot: dot[0].state is not State.EXPLAINED):
        said = f"{v.claim.model}: {v.claim.printed}, {multiple(claimed, v.macs)} × the MACs that ran, {v.state.value}"
        shapes.append(
            f'<a href="#row-{v.claim.row}" tabindex="-1" class="{v.state.name.lower()}"><circle cx="{across(v.macs)}" '
            f'cy="{up(ratio)}"><title>{escape(said)}</title></circle></a>'
        )
    label = "The figures over the multiply-adds that ran; the table below has them all"
    return Markup(
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="group" aria-label="{label}">{"".join(shapes)}</svg>'
    )  # every text of the table is escaped above
