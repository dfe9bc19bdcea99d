"""Draws charts with matplotlib as SVG or PNG: a waterfall, bars by layer, and parts for others; equal data give equal bytes.

An SVG has its letters as outlines, so it looks the same everywhere, and a style sheet for dark backgrounds. Scales are
linear and start at 0; steps that are too small beside the totals are drawn again, enlarged, on a second scale.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...core.escaping import escape_line
from ...core.number_format import format_signed, percent, si

INK, MUTED, GRID, PAPER = "#1f2328", "#59636e", "#d8dee4", "#ffffff"
DARK_COLOURS = {INK: "#e6edf3", MUTED: "#9198a1", GRID: "#3d444d", PAPER: "#0d1117"}
TOTAL, MORE, LESS, WRONG, RIGHT, WORK = "#6e7781", "#3a7bd5", "#db7b2b", "#d1242f", "#2da44e", "#b6c2cf"
MATPLOTLIB_STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "svg.hashsalt": "reconcile",
    "svg.fonttype": "path",
    "axes.edgecolor": GRID,
    "text.color": INK,
    "axes.labelcolor": INK,
    "text.parse_math": False,
}
MIN_VISIBLE_STEP = 0.04
"""If the largest step is smaller than this fraction of the scale, the steps are drawn again on their own."""
MAX_NAME_LENGTH = 44
CHARTS_PER_ROW = 3
"""Columns of a chart by layer that are side by side."""
PATH_BREAK = re.compile(r" ?\n(?=[A-Za-z\"])")
"""A break inside the data of a path, of which XML makes a space: thousands of lines of a file."""
GROUP_BREAK = re.compile(r"\n *(?=</|<path|<use)")
"""A break within a group of shapes, which then has one line. No shape holds text: letters are outlines."""
TITLE_INCHES = 0.58
"""Inches above the charts, for the title and the line below it."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One row of a waterfall: a bar from ``start``, ``amount`` long. ``kind`` is total, cause or residual."""

    label: str
    about: str
    start: int
    amount: int
    kind: str

    @property
    def end(self) -> int:
        """The value at which the next bar begins."""
        return self.start + self.amount


@dataclass(frozen=True, slots=True)
class Column:
    """One counter of a chart by layer: its values and the work that ran, row by row; None if that work is unknown."""

    counter: str
    values: tuple[int, ...]
    work: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Layers:
    """A chart by layer: row labels and a column per counter."""

    labels: tuple[str, ...]
    columns: tuple[Column, ...]


def save_figure(figure: Any, kind: str) -> str | bytes:
    """The figure as SVG text or PNG bytes, without a date and without the library's version."""
    out = io.BytesIO()
    with drawing_style():
        if kind == "png":
            figure.savefig(out, format="png", dpi=160, facecolor=PAPER, metadata={"Software": None})
            return out.getvalue()
        figure.savefig(out, format="svg", facecolor=PAPER, metadata={"Date": None, "Creator": None})
    rules = "".join(
        f'[style*="{part}: {light}"]{{{part}:{dark}!important}}'
        for light, dark in DARK_COLOURS.items()
        for part in ("fill", "stroke")
    )
    sheet = f'<style type="text/css">@media (prefers-color-scheme: dark){{{rules}}}</style>'
    text = GROUP_BREAK.sub("", PATH_BREAK.sub(" ", out.getvalue().decode()))
    return re.sub(r"(<svg [^>]*>)", lambda m: m.group(1) + "\n " + sheet, text, count=1)


def draw_waterfall(bars: Sequence[Bar], title: str, subtitle: str) -> Any:
    """Bars from one total to the other, a row each; each bar begins at the end of the bar above it."""
    steps = [b for b in bars if b.kind != "total"]
    low, high = min(0, *(min(b.start, b.end) for b in bars)), max(1, *(max(b.start, b.end) for b in bars))
    largest = max((abs(b.amount) for b in steps), default=0)
    enlarged = 0 < largest < MIN_VISIBLE_STEP * (high - low)
    with drawing_style():
        figure, panels = empty_figure(
            9.4, TITLE_INCHES + 0.4 + 0.42 * len(bars), 2 if enlarged else 1, (3, 2) if enlarged else (1,)
        )
        draw_titles(figure, title, subtitle)
        main = panels[0]
        row_labels(main, [(b.label, b.about) for b in bars])
        _set_scale(main, low, high, 0.34 if not enlarged else 0.5)
        for row, bar in enumerate(bars):
            _draw_bar(main, row, bar.start, bar.amount, _bar_colour(bar), f"bar-{row}")
            if row + 1 < len(bars):
                main.plot([bar.end, bar.end], [row, row + 1], color=MUTED, linewidth=0.6, zorder=1)
            right = max(bar.start, bar.end)
            value = f"{bar.amount:,}" if bar.kind == "total" else format_signed(bar.amount)
            text = main.annotate(value, (right, row), (5, 0), textcoords="offset points", va="center")
            text.set_color(WRONG if bar.kind == "residual" and bar.amount else INK)
            text.set_fontweight("bold" if bar.kind == "total" else "normal")
            if bar.kind == "total" and bar.amount >= 1000:
                main.annotate(
                    si(bar.amount),
                    (right, row),
                    (5, -10),
                    textcoords="offset points",
                    va="center",
                    fontsize=7.5,
                    color=MUTED,
                )
        if enlarged:
            _enlarge_axes(panels[1], bars)
    return figure


def _enlarge_axes(axes: Any, bars: Sequence[Bar]) -> None:
    steps = [b.amount for b in bars if b.kind != "total"]
    axes.set_yticks([])
    axes.set_ylim(len(bars) - 0.4, -0.6)
    _set_scale(axes, min(0, *steps), max(0, *steps), 0.1)
    axes.set_title("the steps alone, enlarged", fontsize=8, color=MUTED, loc="left")
    axes.axvline(0, color=MUTED, linewidth=0.8)
    for row, bar in enumerate(bars):
        if bar.kind != "total":
            _draw_bar(axes, row, 0, bar.amount, _bar_colour(bar), f"step-{row}")


def draw_layers(chart: Layers, title: str, subtitle: str) -> Any:
    """A column per counter: the work that ran as a pale bar, the counter's value on it, and their ratio."""
    count = len(chart.columns)
    across = count if count <= CHARTS_PER_ROW else -(-count // -(-count // CHARTS_PER_ROW))
    down = -(-count // across)
    high = max(1, *(v for c in chart.columns for v in (*c.values, *(w or 0 for w in c.work))))
    with drawing_style():
        figure, panels = empty_figure(
            2 + 2.5 * across, TITLE_INCHES + down * (0.65 + 0.25 * len(chart.labels)), count, (1,) * across
        )
        draw_titles(figure, title, subtitle + "; pale: the work that ran")
        for index, (axes, column) in enumerate(zip(panels, chart.columns, strict=True)):
            row_labels(axes, [("" if index % across else label, "") for label in chart.labels])
            _set_scale(axes, 0, high, 0.42, ticks=2)
            work = None if None in column.work else sum(w or 0 for w in column.work)
            axes.set_title(
                f"{_shorten_text(column.counter)}\n{_share_text(sum(column.values), work)}",
                fontsize=8,
                loc="left",
                color=INK,
            )
            for row, (value, ran) in enumerate(zip(column.values, column.work, strict=True)):
                if ran is not None:
                    _draw_bar(axes, row, 0, ran, WORK, f"work-{index}-{row}", 0.72)
                _draw_bar(axes, row, 0, value, _colour_by_ratio(value, ran), f"value-{index}-{row}", 0.36)
                axes.annotate(
                    _ratio_text(value, ran), (max(value, ran or 0), row), (4, 0), textcoords="offset points", va="center",
                    fontsize=7, color=_colour_by_ratio(value, ran) if value != ran else MUTED,
                )  # fmt: skip
    return figure


def drawing_style() -> Any:
    """The context in which a picture is made and saved."""
    import matplotlib

    return matplotlib.rc_context(MATPLOTLIB_STYLE)


def empty_figure(width: float, height: float, panels: int, ratios: Sequence[float]) -> tuple[Any, list[Any]]:
    """A figure of this size in inches and its empty panels, as many side by side as there are ``ratios``."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    engine = ConstrainedLayoutEngine(rect=(0, 0, 1, 1 - TITLE_INCHES / height))
    figure = Figure(figsize=(width, height), layout=engine, facecolor=PAPER)
    FigureCanvasAgg(figure)
    across = len(ratios)
    grid = figure.add_gridspec(-(-panels // across), across, width_ratios=list(ratios))
    axes = [figure.add_subplot(grid[divmod(index, across)]) for index in range(panels)]
    for panel in axes:
        panel.set_facecolor("none")
        for side in ("top", "right", "left", "bottom"):
            panel.spines[side].set_visible(False)
        panel.set_axisbelow(True)
    return figure, axes


def draw_titles(figure: Any, title: str, subtitle: str) -> None:
    """Write the title of a figure, and a line below it."""
    width, height = figure.get_size_inches()
    left = 0.08 / width
    figure.text(left, 1 - 0.1 / height, _shorten_text(title, 90), va="top", fontsize=12, fontweight="bold")
    figure.text(left, 1 - 0.34 / height, _shorten_text(subtitle, 120), va="top", fontsize=8.5, color=MUTED)


def row_labels(axes: Any, labels: Sequence[tuple[str, str]]) -> None:
    """Make a row for each label, the first at the top, with a small line below it."""
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.set_yticks([])
    for row, (label, about) in enumerate(labels):
        transform = axes.get_yaxis_transform()
        lift = 0.16 if about else 0
        if label:
            axes.text(-0.02, row - lift, _shorten_text(label), ha="right", va="center", fontsize=9, transform=transform)
        if about:
            axes.text(
                -0.02,
                row + 0.24,
                _shorten_text(about),
                ha="right",
                va="center",
                fontsize=7,
                color=MUTED,
                transform=transform,
            )


def _set_scale(axes: Any, low: int, high: int, margin: float, ticks: int = 5) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    width = (high - low) or 1
    axes.set_xlim(low - (0.02 if low == 0 else margin / 2) * width, high + margin * width)
    axes.xaxis.set_major_locator(MaxNLocator(ticks, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _tick_label(round(value))))
    axes.tick_params(length=0, labelsize=7.5, labelcolor=MUTED)
    axes.grid(axis="x", color=GRID, linewidth=0.6)


def _tick_label(value: int) -> str:
    """``50 M`` for 50,000,000: no zeros after the point."""
    digits, _, prefix = si(value, "").partition(" ")
    return f"{digits.rstrip('0').rstrip('.') if '.' in digits else digits} {prefix}".strip()


def _draw_bar(axes: Any, row: int, start: int, amount: int, colour: str, gid: str, height: float = 0.6) -> None:
    """A bar of the exact length, with a hairline at its end so that even a very short bar can be seen."""
    patch = axes.barh(row, amount, left=start, height=height, color=colour, linewidth=0, zorder=2)[0]
    patch.set_gid(gid)
    axes.plot([start + amount] * 2, [row - height / 2, row + height / 2], color=colour, linewidth=0.8, zorder=2,
              solid_capstyle="butt")  # fmt: skip


def _bar_colour(bar: Bar) -> str:
    if bar.kind == "total":
        return TOTAL
    if bar.kind == "residual":
        return WRONG if bar.amount else RIGHT
    return MORE if bar.amount > 0 else LESS


def _colour_by_ratio(value: int, work: int | None) -> str:
    if work is None:
        return TOTAL
    return RIGHT if value == work else MORE if value < work else LESS


def _ratio_text(value: int, work: int | None) -> str:
    if work is None:
        return f"{si(value)}, work unknown"
    if value == work:
        return "exact"
    if not value:
        return "0"
    ratio = f"{value / work:.3g}" if work else "1"
    return f"{ratio} ×" if ratio != "1" else f"{'+' if value > work else ''}{si(value - work)}"


def _share_text(total: int, work: int | None) -> str:
    if work is None:
        return si(total)
    if total == work:
        return f"{si(total)}, exact"
    off = percent(total - work, work) or si(abs(total - work))
    return f"{si(total)}, {off} {'below' if total < work else 'above'}"


def _shorten_text(text: str, limit: int = MAX_NAME_LENGTH) -> str:
    """A name on one line, shortened in the middle if it is too long, with a box for each letter that the font lacks."""
    from matplotlib.font_manager import fontManager, get_font

    glyphs = get_font(fontManager.findfont("DejaVu Sans")).get_charmap()
    text = "".join(c if ord(c) in glyphs else "\N{WHITE SQUARE}" for c in escape_line(text))
    half = (limit - 1) // 2
    return text if len(text) <= limit else f"{text[:half]}\N{HORIZONTAL ELLIPSIS}{text[-half:]}"
