"""Prints a run on the terminal: the totals, the statement, each counter's differences by layer, and the numbers to publish.

A large model is folded to a screen (see ``folds``); with ``verbose`` every layer has its own lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.text import Text

from ...core.causes import State
from ...core.escaping import escape_line
from ...core.number_format import format_count, si
from ...core.records import AS_WITH_THESE, CALLED_WITH
from ...core.results import Statement
from ...engine.answer import Answer
from ...engine.verdict import CounterVerdict, Verdict
from .. import view
from ..alignment import sentences
from ..folds import MAX_UNFOLDED, group_same, shorten_variants
from .columns import ensure_min_width
from .layers import folded_rows, folded_table, layer_table
from .tables import MAX_LAYERS_SHOWN, STYLE_OF_STATE, phase_view, statement_table, totals_table

LINES_PER_CAUSE = 8  # lines of a cause of a large model
MAX_SCREEN_LINES = 60  # lines that a large model may take
LAYER_LINES = 14  # of these, lines for its layers, before the notes get any
MIN_LAYER_ROWS = 3  # rows of its layers that are always shown


def print_run(
    result: Answer,
    console: Console,
    statement: Statement | None = None,
    files: Sequence[Path] = (),
    *,
    quiet: bool = False,
    verbose: bool = False,
) -> None:
    """Print a run. ``quiet`` keeps the summary and the problems; ``verbose`` opens every fold and
    adds every counter's own statement."""
    chosen = view.default_statement(result) if statement is None else statement
    layers = [row.layer for row in result.layers]
    ensure_min_width(console)
    width = console.width
    brief = not verbose and len(result.layers) > MAX_UNFOLDED
    limit = None if verbose else LINES_PER_CAUSE if brief else MAX_LAYERS_SHOWN
    above: list[RenderableType] = []
    said: list[RenderableType] = []
    notes: list[RenderableType] = []
    below: list[RenderableType] = []
    if not quiet:
        above += [_headline(result, None if brief else chosen), Text(), totals_table(result, width, brief), Text()]
        above += (
            [*(Text(escape_line(line), style="dim") for line in ways), Text()]
            if (ways := view.list_variants(result))
            else []
        )
        if chosen is not None:
            above += _section(
                f"From {chosen.from_} to {chosen.to}", statement_table(chosen, layers, limit, width, brief)
            )
        for counter in result.verdict.counters if verbose else ():
            own = counter.statement
            if own is not None and own is not chosen:
                above += _section(f"From {own.from_} to {own.to}", statement_table(own, layers, limit, width))
        for framework, phased in view.phase_tables(result, result.convention):
            above += _section(f"Phase by phase ({framework})", phase_view(phased, limit, width))
            for sentence in (view.ratio_sentence(phased.total), view.utilisation_sentence(phased.total, phased.steps)):
                above += [Text(f"{framework}: {sentence}."), Text()] if sentence else []
        run_verdict = result.verdict
        said, notes = _closing_sentences(run_verdict.counters, brief), _list_notes(result, run_verdict)
        below.append(Text())
        if run_verdict.figures:
            below += [*_list_figures(run_verdict), Text()]
    below += [*_list_problems(result), _summary(result)]
    if files and not quiet:
        below.append(Text("wrote " + ", ".join(map(escape_line, _short_file_names(files, brief))), style="dim"))
    _print_parts(console, *above)
    if result.layers and not quiet:
        title = "Layer by layer: what each counter missed (+) or counted too much (-)"
        rest = [*above, *_section(title, Text()), *said, *below]
        notes = (
            _few_notes(notes, MAX_SCREEN_LINES - _count_lines(console, rest) - LAYER_LINES, console) if brief else notes
        )
        room = MAX_SCREEN_LINES - _count_lines(console, [*rest, *notes])
        _print_parts(
            console, *_section(title, _fit_table(result, console, room) if brief else layer_table(result, width))
        )
    _print_parts(console, *said, *notes, *below)


def _short_file_names(files: Sequence[Path], brief: bool) -> list[str]:
    """The files; with ``brief``, only the ends of the names that begin like the first."""
    first = str(files[0])
    begun = first.removesuffix(files[0].suffix)
    return [first, *(str(f).removeprefix(begun) if brief else str(f) for f in files[1:])]


def _few_notes(notes: list[RenderableType], room: int, console: Console) -> list[RenderableType]:
    """The notes, or only their number if they take more lines than that."""
    if not notes or _count_lines(console, notes) <= max(room, 1):
        return notes
    return [
        Text(f"{format_count(len(notes), 'note')} on how this was counted: see the files or --verbose", style="dim")
    ]


def _fit_table(result: Answer, console: Console, room: int) -> RenderableType:
    """The table of layers, folded, with as many rows as the screen has room for, and at least a few."""
    rows = min(folded_rows(result), max(room, MIN_LAYER_ROWS))  # a row takes a line or more
    table = folded_table(result, rows, console.width)
    while rows > MIN_LAYER_ROWS and _count_lines(console, [table]) > room:
        rows -= 1
        table = folded_table(result, rows, console.width)
    return table


def _count_lines(console: Console, parts: Sequence[RenderableType]) -> int:
    """The lines that these take."""
    return len(console.render_lines(Group(*parts), pad=False))


def _print_parts(console: Console, *parts: RenderableType) -> None:
    console.print(Group(*parts), highlight=False, soft_wrap=False)


def _section(title: str, body: RenderableType) -> list[RenderableType]:
    return [Text(escape_line(title), style="bold"), body, Text()]


def _headline(result: Answer, statement: Statement | None) -> Text:
    ends = "" if statement is None else ": normalised totals"
    text = Text(f"{escape_line(result.model)}, {result.pass_}, convention {escape_line(result.convention.name)}{ends}")
    text.stylize("bold")
    if statement is not None:
        for name, total in ((statement.from_, statement.from_total), (statement.to, statement.to_total)):
            text.append("\n  " + view.describe_origin(result, name, total), style="not bold")
            if total is not None and abs(total) >= 1000:
                text.append(f", {si(total)}", style="not bold dim")
    return text


def _closing_sentences(counters: Sequence[CounterVerdict], brief: bool) -> list[RenderableType]:
    """A sentence per counter; with ``brief``, counters with the same sentence share it."""
    lines: list[RenderableType] = []
    for alike in group_same(counters, lambda c: (c.state, view.describe_closing(c, brief)), brief):
        text = Text(", ".join(shorten_variants([c.ledger.counter for c in alike])) + ": ", style="bold")
        text.append(
            escape_line(view.describe_closing(alike[0], brief)), style=f"not bold {STYLE_OF_STATE[alike[0].state]}"
        )
        lines.append(text)
    return lines


def _list_notes(result: Answer, run_verdict: Verdict) -> list[RenderableType]:
    """The notes on how each trace and ledger was taken, such as the device; the inputs of the model, and that its values matter,
    if no figure does; and the alignment of two models' layers."""
    shown = {framework for figure in run_verdict.figures for framework in figure.frameworks}
    lines = [
        f"{trace.name}: {view.as_sentence(note)}"
        for trace in result.traces
        for note in trace.notes
        if trace.framework not in shown or not (note.startswith(CALLED_WITH) or note.endswith(AS_WITH_THESE))
    ]
    lines += [f"{ledger.counter}: {view.as_sentence(note)}" for ledger in result.ledgers for note in ledger.notes]
    lines += [f"Published: {sentence}" for sentence in view.list_published(result)]
    lines += sentences(result.alignment) if result.alignment else []
    return [Text(escape_line(text), style="dim") for text in lines]


def _list_figures(run_verdict: Verdict) -> list[RenderableType]:
    """The numbers to publish, each as a sentence to cite."""
    lines: list[RenderableType] = [
        Text.assemble(("To publish: ", "bold"), escape_line(" ".join([f.sentence, *map(view.as_sentence, by_values)])))
        for f in run_verdict.figures
        for by_values in [[note for note in f.notes if note.endswith(AS_WITH_THESE)]]
    ]
    lines += [Text(sentence, style=STYLE_OF_STATE[State.NOT_COMPARABLE]) for sentence in run_verdict.cautions]
    if run_verdict.difference:
        lines.append(Text(escape_line(run_verdict.difference)))
    return lines


def _list_problems(result: Answer) -> list[RenderableType]:
    red = STYLE_OF_STATE[State.UNEXPLAINED]
    problems = (view.broken_sentences, view.list_missing_traces, view.unknown_sentences)
    lines: list[RenderableType] = [Text(escape_line(each), style=red) for find in problems for each in find(result)]
    return [*lines, *(Text(escape_line(item.sentence)) for item in result.verdict.withheld)]


def _summary(result: Answer) -> Text:
    return Text(view.summary(result), style="bold green" if result.exit_code == 0 else "bold red")
