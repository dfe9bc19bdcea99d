"""The scorecard as an SVG picture: a row per counter, a column per layer, a colour per verdict; a panel for each pass.

All cells of one verdict in one row are a single shape, and adjacent cells are one rectangle of it, so that the file stays small.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...report.pictures import drawing
from .cells import Verdict
from .report import SHOWN, Board

COLOURS = {
    Verdict.EXACT: drawing.RIGHT,
    Verdict.PARTIAL: "#a9c8f0",
    Verdict.ZERO: drawing.MORE,
    Verdict.FACTOR: drawing.LESS,
    Verdict.FAILS: drawing.WRONG,
    Verdict.BLIND: "#c4c9cf",
    Verdict.OPEN: "#8250df",
    Verdict.ABSENT: "#e6e6e6",
    Verdict.NOTHING: drawing.GRID,
}
COLUMN_INCHES = 0.085
"""Inches of a column."""
ROW_INCHES = 0.24
"""Inches of a row."""
THIN_CELL = 0.12
"""Height of a cell that says nothing about the counter, as a part of its row."""


def to_svg(board: Board) -> str | bytes:
    """The picture of a board, as the text of ``scorecard.svg``."""
    return drawing.save_figure(draw_board(board), "svg")


def draw_board(board: Board) -> Any:
    """A figure of Matplotlib: a panel for each pass, with the legend between the title and the first."""
    places = [(family, layer) for family, layers in board.layers.items() for layer in layers]
    rows, panels = len(board.counters), len(board.passes)
    height = drawing.TITLE_INCHES + 0.3 + panels * (1.15 + ROW_INCHES * rows)
    with drawing.drawing_style():
        made, axes = drawing.empty_figure(2.2 + COLUMN_INCHES * len(places), height, panels, (1,))
        about = "multiply-adds of each layer that the counter counts, beside those that ran; a column per layer"
        drawing.draw_titles(made, "What the counters say of the layers of the zoo", about)
        for panel, pass_ in zip(axes, board.passes, strict=True):
            _draw_panel(panel, board, pass_, places)
        present = [v for v in (*SHOWN, Verdict.OPEN, Verdict.ABSENT) if any(
            board.sums(name, pass_)[v] for name in board.counters for pass_ in board.passes
        )]  # fmt: skip
        _draw_legend(made, present)
    return made


def _draw_panel(axes: Any, board: Board, pass_: str, places: Sequence[tuple[str, str]]) -> None:
    drawing.row_labels(axes, [(name, "") for name in board.counters])
    axes.set_xlim(-0.5, len(places) - 0.5)
    axes.set_xticks([])
    axes.text(0, 1, pass_, transform=axes.transAxes, ha="right", va="bottom", fontsize=9, fontweight="bold")
    for y, name in enumerate(board.counters):
        columns: dict[Verdict, list[int]] = {}
        for x, (family, layer) in enumerate(places):
            cell = board.cell(family, layer, pass_, name)
            if cell is not None:
                columns.setdefault(cell.verdict, []).append(x)
        for verdict, xs in columns.items():
            high = THIN_CELL if verdict is Verdict.NOTHING else 0.86
            boxes = [(start - 0.5, end - start + 1) for start, end in _find_runs(xs)]
            name = f"{pass_}-{y}-{verdict.value.replace(' ', '-')}-{len(xs)}"
            axes.broken_barh(boxes, (y - high / 2, high), facecolor=COLOURS[verdict], linewidth=0, gid=name)
    axes.vlines(
        [x + 0.5 for x in range(len(places) - 1)], -0.5, len(board.counters) - 0.5, color=drawing.PAPER, linewidth=0.7
    )
    _draw_families(axes, board)


def _draw_families(axes: Any, board: Board) -> None:
    """A line between the families, and their names above."""
    start = 0
    for family, layers in board.layers.items():
        if start:
            axes.axvline(start - 0.5, color=drawing.MUTED, linewidth=0.5)
        axes.text(
            start, 0.98, family.partition("_")[2], transform=axes.get_xaxis_transform(), rotation=35, ha="left", va="bottom",
            fontsize=7.5, color=drawing.INK,
        )  # fmt: skip
        start += len(layers)


def _find_runs(xs: Sequence[int]) -> list[tuple[int, int]]:
    """Runs of consecutive numbers: the first and the last of each."""
    starts = [x for x in xs if x - 1 not in xs]
    ends = [x for x in xs if x + 1 not in xs]
    return list(zip(starts, ends, strict=True))


def _draw_legend(figure: Any, verdicts: Sequence[Verdict]) -> None:
    from matplotlib.patches import Patch

    labels = {Verdict.FACTOR: "wrong number", Verdict.NOTHING: "no multiply-adds"}
    handles = [Patch(facecolor=COLOURS[v], label=labels.get(v, v.value), linewidth=0) for v in verdicts]
    figure.legend(
        handles=handles, loc="outside lower left", ncols=len(handles), frameon=False, fontsize=7.5, handlelength=1
    )
