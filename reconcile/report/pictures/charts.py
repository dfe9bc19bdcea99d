"""Computes the charts of a run (``--format svg,png``): a waterfall of the statement, and every counter layer by layer.

A waterfall's bars lead from one total to the other, cause by cause; the bars by layer show each counter's value and the
work that ran. All numbers here are exact integers, in FLOPs. ``draw`` makes the files, with drawing.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...core.errors import UsageError
from ...core.results import Statement
from ...engine.answer import Answer
from ...engine.breakdown import RESIDUAL, Block, blocks
from . import drawing
from .drawing import Bar, Column, Layers

LAYERS = 24
"""Rows of a chart by layer; the smaller layers share one last row, so each column still adds up."""
NAMED = 4
"""The most layers that are named below a cause."""
PICTURES_NEED_MATPLOTLIB = "pictures need matplotlib: pip install 'flop-reconcile[plots]'"


def can_draw() -> bool:
    """Whether the charting library is installed."""
    from importlib.util import find_spec

    return find_spec("matplotlib") is not None


def require() -> None:
    """Raise UsageError if the charting library is not installed."""
    if not can_draw():
        raise UsageError(PICTURES_NEED_MATPLOTLIB)


def waterfall(statement: Statement, layers: Sequence[str] = ()) -> list[Bar]:
    """The bars of a statement; empty if it is not closed. The residual is always a bar, even if it is 0."""
    if statement.from_total is None or statement.to_total is None or statement.residual is None:
        return []
    bars = [Bar(statement.from_, "", 0, statement.from_total, "total")]
    steps = blocks(statement, layers)
    if not statement.residuals:
        steps.append(Block(RESIDUAL, statement.residual, []))
    for block in steps:
        kind = "residual" if block.cause == RESIDUAL else "cause"
        bars.append(Bar(block.cause, _where(block), bars[-1].end, block.amount, kind))
    bars.append(Bar(statement.to, "", 0, statement.to_total, "total"))
    return bars


def _where(block: Block) -> str:
    names = [part.layer or "(no layer)" for part in block.parts]
    return ", ".join(names) if len(names) <= NAMED else f"{names[0]} and {len(names) - 1:,} more layers"


def by_layer(result: Answer, limit: int = LAYERS) -> Layers:
    """Each counter's value per layer beside the work that ran there. Above ``limit`` rows, the smallest share one."""
    homes = {x.counter: x.framework for x in result.ledgers if x.normalised_total is not None}
    rows = list(result.layers)
    if not rows or not homes:
        return Layers((), ())
    sizes = {id(row): max((*row.work.values(), *row.counters.values()), default=0) for row in rows}
    largest = {
        id(row) for row in sorted(rows, key=lambda row: -sizes[id(row)])[: limit if len(rows) <= limit else limit - 1]
    }
    shown = [row for row in rows if id(row) in largest]
    rest = [row for row in rows if id(row) not in largest]
    labels = [row.layer or "(no layer)" for row in shown] + ([f"{len(rest)} more layers"] if rest else [])
    columns = []
    for counter, framework in homes.items():
        values = [row.counters.get(counter, 0) for row in shown]
        work = [row.work.get(framework) for row in shown]
        if rest:
            values.append(sum(row.counters.get(counter, 0) for row in rest))
            work.append(_sum(row.work.get(framework) for row in rest))
        columns.append(Column(counter, tuple(values), tuple(work)))
    return Layers(tuple(labels), tuple(columns))


def _sum(values: Iterable[int | None]) -> int | None:
    known = list(values)
    return None if None in known else sum(v for v in known if v is not None)


def draw(result: Answer, statement: Statement | None, formats: Sequence[str]) -> dict[str, str | bytes]:
    """The pictures of a run, by the part of their file names after the model's name: ``waterfall.svg``, ``layers.png``."""
    layers = [row.layer for row in result.layers]
    title = f"{result.model}, {result.pass_}, convention {result.convention.name}"
    bars = waterfall(statement, layers) if statement is not None else []
    chart = by_layer(result)
    drawn: dict[str, str | bytes] = {}
    for kind in formats:
        if bars and statement is not None:
            figure = drawing.draw_waterfall(bars, f"From {statement.from_} to {statement.to}", title)
            drawn[f"waterfall.{kind}"] = drawing.save_figure(figure, kind)
        if chart.columns:
            figure = drawing.draw_layers(chart, "Each counter, layer by layer", title)
            drawn[f"layers.{kind}"] = drawing.save_figure(figure, kind)
    return drawn


def list_embedded(stem: str, drawn: Iterable[str]) -> dict[str, str]:
    """The file that a report shows for each picture: the SVG if there is one."""
    files: dict[str, str] = {}
    for name in drawn:
        files.setdefault(name.partition(".")[0], f"{stem}.{name}")
    return files
