"""The terminal's table of layers: the work that ran, the value of each counter, and the causes of each difference.

For a large model, equal layers share a row, and those that do not fit the screen are summed or counted in a last one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from ...core.causes import State
from ...core.escaping import escape_line
from ...core.number_format import format_signed, number
from ...core.results import LayerRow
from ...engine.answer import Answer
from ...engine.breakdown import RESIDUAL, sum_rows, to_the_work
from .. import folds
from ..document import Column
from .columns import COLUMN_GAP, MIN_NAME_WIDTH, Line, lay_out_table, stack_lines
from .tables import STYLE_OF_STATE, and_more_text

NOT_COMPARED = "not compared: the work here is unknown"
"""Of a counter's value in a layer with an op of unknown work, or of a model without a trace."""


@dataclass(frozen=True, slots=True)
class LayerLine:
    """A line of the table of layers: a value, an amount to add to it, and the cause or a note. With ``noted``, the value
    belongs to the note."""

    label: Text
    value: Text = field(default_factory=Text)
    amount: Text = field(default_factory=Text)
    note: Text = field(default_factory=Text)
    indent: int = 0
    noted: bool = False


def layer_table(result: Answer, width: int = 80) -> RenderableType:
    """Per layer the work that ran, and per counter its value and the causes that separate it from that work."""
    homes = {x.counter: x.framework for x in result.ledgers if x.normalised_total is not None}
    return _detail_lines([line for row in _list_known(result) for line in _layer(row, homes)], homes, width)


def folded_table(result: Answer, limit: int, width: int = 80) -> RenderableType:
    """The same for a large model in at most ``limit`` rows: those with the largest amounts to add or else the most work, by their
    work, and one with the sums of the others. Layers that are alike share a row, as do the layers of a block if there are many.
    A row has one line with the amounts to add per counter; if the columns do not fit, a line per counter; with a residual or
    unknown work, one per cause."""
    homes = {x.counter: x.framework for x in result.ledgers if x.normalised_total is not None}
    every = _list_known(result)
    largest, rest = folds.keep_largest(_fold_rows(every), limit, lambda row: (_to_add(row, homes), _work(row)))
    shown = sorted(largest, key=_work, reverse=True)
    left = [sum_rows(f"{number(len(rest))} more (--verbose)", rest)] if rest else []
    whole = all(f in row.work for row in every for f in homes.values()) and not any(row.residuals for row in every)
    table = _amounts([*shown, *left, sum_rows("total", every)], homes, width) if whole else None
    if table is not None:
        return table
    lines = [line for row in shown for line in _layer(row, homes, together=True, netted=whole)]
    return Group(_detail_lines(_in_short(lines, width), homes, width), *([and_more_text(rest)] if rest else []))


def folded_rows(result: Answer) -> int:
    """How many rows the folded table has if none is cut."""
    return len(_fold_rows(result.layers))


def _list_known(result: Answer) -> list[LayerRow]:
    """The rows, without the work of layers that have an op of unknown work."""
    holes = {(trace.framework, u.layer) for trace in result.traces for u in trace.unknown}
    return [
        replace(row, work={f: work for f, work in row.work.items() if (f, row.layer) not in holes})
        for row in result.layers
    ]


def _amounts(rows: Sequence[LayerRow], homes: dict[str, str], width: int) -> RenderableType | None:
    """A line per row; None if it is too wide. The last row is the total."""

    def to_add(row: LayerRow, counter: str) -> int:
        return sum(to_the_work(row, counter).values())

    frameworks = list(dict.fromkeys(f for row in rows for f in row.work))
    works = folds.group_same(frameworks, lambda f: tuple(row.work.get(f, 0) for row in rows))
    counters = folds.group_same(list(homes), lambda c: tuple(to_add(row, c) for row in rows))
    off = [alike for alike in counters if any(to_add(row, alike[0]) for row in rows)]
    columns = [
        Column("layer"),
        *(Column("work that ran" if len(works) == 1 else f"work ({', '.join(alike)})", "right") for alike in works),
        *(Column("\n".join(folds.join_variants(alike, list(homes))), "right") for alike in off),
    ]
    cells: list[list[Text]] = []
    for row in rows:
        amounts = [number(row.work.get(alike[0], 0)) for alike in works]
        amounts += [format_signed(amount) if (amount := to_add(row, alike[0])) else "=" for alike in off]
        bold = "bold" if row is rows[-1] else ""
        cells.append([Text(text, style=bold) for text in (escape_line(row.layer) or "(no layer)", *amounts)])
    table = lay_out_table(columns, cells, width)
    exact = [counter for alike in counters if alike not in off for counter in alike]
    return table and Group(table, *([Text("= everywhere: " + ", ".join(exact), style="green")] if exact else []))


def _detail_lines(lines: Sequence[LayerLine], homes: dict[str, str], width: int) -> RenderableType:
    """A line per layer, and those of each counter below it."""
    columns = (
        Column("layer, counter", wide=max((len(counter) + 2 for counter in homes), default=0)),
        Column("FLOP", "right"),
        Column("to the work", "right"),
        Column("cause"),
    )
    cells = [(Padding.indent(x.label, x.indent), x.value, x.amount, x.note) for x in lines]
    return lay_out_table(columns, cells, width) or stack_lines((y for x in lines for y in _layer_stacked(x)), width)


def _fold_rows(every: Sequence[LayerRow]) -> list[LayerRow]:
    return [sum_rows(*named) for named in folds.name_lines(folds.fold_rows(every), folds.MAX_UNFOLDED)]


def _work(row: LayerRow) -> int:
    return max(row.work.values(), default=0)


def _to_add(row: LayerRow, homes: Mapping[str, str]) -> tuple[bool, int]:
    """The amounts to add to the counters, without signs; a residual comes before everything."""
    amounts = [pair for counter in homes for pair in to_the_work(row, counter).items()]
    return any(cause == RESIDUAL for cause, _ in amounts), sum(abs(amount) for _, amount in amounts)


def _layer_stacked(line: LayerLine) -> Iterator[Line]:
    if line.label.plain:
        yield Line(line.label, Text() if line.noted else line.value, line.indent)
    if line.note.plain:
        amount = line.value if line.noted else line.amount
        yield Line(line.note, amount, line.indent + 2)


def _layer(
    row: LayerRow, homes: dict[str, str], *, together: bool = False, netted: bool = False
) -> Iterator[LayerLine]:
    """The lines of a layer, one per counter and cause; with ``together``, counters that show the same share lines; with
    ``netted``, several causes are one line."""

    def amounts(counter: str) -> list[tuple[str, int]]:
        found = to_the_work(row, counter).items()
        return [(cause, amount) for cause, amount in found if homes[counter] in row.work or cause == RESIDUAL]

    def make_key(counter: str) -> tuple[object, ...]:
        return (row.work.get(homes[counter]), row.counters.get(counter, 0), tuple(amounts(counter)))

    exact: list[str] = []
    counters: list[LayerLine] = []
    for alike in folds.group_same(list(homes), make_key, together):
        value, causes = row.counters.get(alike[0], 0), amounts(alike[0])
        if netted and len(causes) > 1:
            named = ", ".join(cause for cause, _ in sorted(causes, key=lambda each: -abs(each[1])))
            causes = [(named, sum(amount for _, amount in causes))]
        name = ", ".join(folds.join_variants(alike, list(homes)))
        if not causes:
            if row.work.get(homes[alike[0]]) == value:
                exact += alike
            else:
                counters.append(LayerLine(Text(name), Text(number(value)), note=Text(NOT_COMPARED), indent=2))
        for index, (cause, amount) in enumerate(causes):
            style = STYLE_OF_STATE[State.UNEXPLAINED] if cause == RESIDUAL else ""
            label, counted = ("", "") if index else (name, number(value))
            to_add, why = Text(format_signed(amount), style=style), Text(cause, style=style)
            counters.append(LayerLine(Text(label), Text(counted), to_add, why, indent=2))
    title = Text(escape_line(row.layer) or "(no layer)", style="bold")
    note = Text(_equal(exact, len(homes), together), style="green")
    if len(set(row.work.values())) > 1:
        for framework, work in row.work.items():
            yield LayerLine(title, Text(number(work), style="bold"), note=Text(f"work in {framework}"), noted=True)
            title = Text()
        if exact:
            yield LayerLine(title, note=note)
    else:
        known = next((number(w) for w in row.work.values()), "unknown")
        yield LayerLine(title, Text(known, style="bold"), note=note)
    yield from counters


def _in_short(lines: Sequence[LayerLine], width: int) -> list[LayerLine]:
    """The lines, with the number of causes in place of those that have no room beside the columns of numbers."""
    label = min(MIN_NAME_WIDTH, max((x.indent + len(x.label) for x in lines), default=0))
    value, amount = (max((len(text) for text in texts), default=0) for texts in (
        [x.value for x in lines], [Text("to the work"), *(x.amount for x in lines)]
    ))  # fmt: skip
    room = width - label - value - amount - 3 * COLUMN_GAP

    def short(line: LayerLine) -> LayerLine:
        several = line.note.plain.count(", ") + 1 if line.amount.plain else 1
        return line if several == 1 or len(line.note) <= room else replace(line, note=Text(f"{several} causes"))

    return [short(line) for line in lines]


def _equal(exact: Sequence[str], all_: int, together: bool) -> str:
    """``= thop, fvcore``; ``= the other 2`` where there is one line for several."""
    if not exact or not together:
        return "= " + ", ".join(exact) if exact else ""
    return f"= all {all_}" if len(exact) == all_ else f"= the other {len(exact)}"
