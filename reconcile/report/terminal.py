"""The terminal view: the answer first, then the statement, then each counter's differences layer by layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from ..core.causes import State
from ..core.records import CALLED_WITH
from ..core.results import LayerRow, RunResult, Statement
from ..core.text import clean, number, si, signed
from ..engine.breakdown import RESIDUAL, blocks, to_the_work
from ..engine.phases import PhaseRow, PhaseTable
from ..engine.phases import phases as by_phase
from ..verdict.verdict import CounterVerdict, Verdict, counters_of, verdict
from . import view
from .alignment import sentences

LABEL = 44
NARROW, WIDE = 72, 100
LAYERS = 40  # shown without --verbose; the files hold all of them
STYLE = {
    State.EQUAL: "green",
    State.EXPLAINED: "cyan",
    State.UNEXPLAINED: "bold red",
    State.NOT_COMPARABLE: "yellow",
    State.FAILED: "bold red",
    State.SKIPPED: "yellow",
}


def show(
    result: RunResult,
    console: Console,
    statement: Statement | None = None,
    files: Sequence[Path] = (),
    *,
    quiet: bool = False,
    verbose: bool = False,
) -> None:
    """Print a run. ``quiet`` keeps the summary and the problems; ``verbose`` adds every counter's own statement."""
    chosen = view.default_statement(result) if statement is None else statement
    layers = [row.layer for row in result.layers]
    limit = len(layers) + LAYERS if verbose else LAYERS
    if not quiet:
        _print(console, _headline(result, chosen), Text(), totals(result, console.width), Text())
        if chosen is not None:
            _print(console, *_section(f"From {chosen.from_} to {chosen.to}", statement_table(chosen, layers, limit)))
        for counter in counters_of(result) if verbose else ():
            own = counter.statement
            if own is not None and own is not chosen:
                _print(console, *_section(f"From {own.from_} to {own.to}", statement_table(own, layers, limit)))
        for framework, phased in view.phase_tables(result, result.convention):
            _print(console, *_section(f"Phase by phase ({framework})", phase_view(phased, limit)))
            if sentence := view.ratio_sentence(phased.total):
                _print(console, Text(f"{framework}: {sentence}."), Text())
        if result.layers:
            _print(
                console,
                *_section("Layer by layer: what to add to arrive at the work that ran", layer_table(result, limit)),
            )
        run_verdict = verdict(result)
        _print(console, *(_closing(v) for v in run_verdict.counters), *_notes(result, run_verdict), Text())
        if run_verdict.figures:
            _print(console, *_verdict(run_verdict), Text())
    _print(console, *_problems(result), _summary(result))
    if files and not quiet:
        _print(console, Text("wrote " + ", ".join(clean(str(f)) for f in files), style="dim"))


def _print(console: Console, *parts: RenderableType) -> None:
    console.print(Group(*parts), highlight=False, soft_wrap=False)


def _section(title: str, body: RenderableType) -> list[RenderableType]:
    return [Text(clean(title), style="bold"), body, Text()]


def _table(*columns: tuple[str, str], gap: int = 2) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim", border_style="dim",
        padding=(0, gap - 1, 0, 0),
    )  # fmt: skip
    for title, align in columns:
        right = align == "right"
        table.add_column(
            title, justify="right" if right else "left", no_wrap=right or align == "whole", overflow="fold"
        )
    return table


def _headline(result: RunResult, statement: Statement | None) -> Text:
    text = Text(f"{clean(result.model)}, {result.pass_}, convention {clean(result.convention.name)}: normalised totals")
    text.stylize("bold")
    if statement is not None:
        for name, total in ((statement.from_, statement.from_total), (statement.to, statement.to_total)):
            text.append("\n  " + view.origin(result, name, total), style="not bold")
            if total is not None and abs(total) >= 1000:
                text.append(f", {si(total)}", style="not bold dim")
    return text


def totals(result: RunResult, width: int = 80) -> Table:
    """Every counter's total as reported and normalised, and its distance from the work that ran.

    A wide terminal shows the normalised totals in SI units as well; a narrow one leaves out the reported totals.
    """
    titles = ("counter", "as reported", "normalised", "", "", "")
    aligned = ("whole", "right", "right", "right", "right", "left")
    left_out = {1, 3} if width < NARROW else {3} if width < WIDE else set()
    kept = [index for index in range(len(titles)) if index not in left_out]
    table = _table(*((titles[index], aligned[index]) for index in kept), gap=1 if width < WIDE else 2)
    for row in _totals(result):
        table.add_row(*(row[index] for index in kept))
    return table


def _totals(result: RunResult) -> Iterator[tuple[RenderableType, ...]]:
    for trace in result.traces:
        total = trace.totals.get(result.convention.name)
        shown = ("unknown", "") if total is None else (number(total), si(total))
        style = "dim" if trace.complete else STYLE[trace.state]
        yield trace.name, "", *shown, "", Text(view.trace_label(trace), style=style)
        for phase, flops in by_phase(trace, result.convention).items():
            yield f"  {clean(phase)}", "", number(flops), si(flops), "", Text("of it", style="dim")
    for counter in counters_of(result):
        ledger, total = counter.ledger, counter.ledger.normalised_total
        yield (
            ledger.counter,
            "" if ledger.total is None else f"{number(ledger.total)} {ledger.unit:<4}",
            *(("", "") if total is None else (number(total), si(total))),
            view.distance(counter),
            Text(counter.state.value.replace("_", " "), style=STYLE[counter.state]),
        )


def statement_table(statement: Statement, layers: Sequence[str] = (), limit: int = LAYERS) -> RenderableType:
    """A reconciliation statement: the opening total, each cause with its layers, the residual, the other total.

    Beyond ``limit`` layers, the rest of a cause is one line, so the sum stays right.
    """
    if statement.from_total is None or statement.to_total is None:
        return Text(
            f"{statement.state.value.replace('_', ' ')}: {clean(statement.reason)}", style=STYLE[statement.state]
        )
    table = _table(("", "left"), ("of which", "right"), ("FLOP", "right"))
    table.columns[0].min_width = LABEL
    table.add_row(Text(statement.from_, style="bold"), "", Text(number(statement.from_total), style="bold"))
    for block in blocks(statement, layers):
        style = STYLE[State.UNEXPLAINED] if block.cause == RESIDUAL else ""
        table.add_row(Text(block.cause, style=style), "", Text(signed(block.amount), style=style))
        for part in block.parts[:limit]:
            where = Text(clean(part.layer) or "(no layer)")
            where.append(": " + part.reason if part.reason else "  " + clean(", ".join(part.ops)), style="dim")
            table.add_row(Padding.indent(where, 2), Text(signed(part.amount), style="dim"), "")
        rest = block.parts[limit:]
        if rest:
            where = Text(f"  {number(len(rest))} more layers, see the files or --verbose", style="dim")
            table.add_row(where, Text(signed(block.rest(limit)), style="dim"), "")
    if not statement.residuals:
        table.add_row(RESIDUAL, "", signed(statement.residual or 0))
    table.add_row("", "", Rule(style="dim"))
    table.add_row(Text(statement.to, style="bold"), "", Text(number(statement.to_total), style="bold"))
    return table


SHORT = {"input-gradient": "input grad", "weight-gradient": "weight grad", "recomputation": "recomputed"}


def phase_view(table: PhaseTable, limit: int = LAYERS) -> Table:
    """A trace by layer and phase, in SI units; the files have every digit, and also the phases whose total is 0."""
    phases = [phase for phase in table.phases if table.total.flops[phase] or not table.total.known]
    shown = _table(("layer", "left"), *((SHORT.get(phase, phase), "right") for phase in phases), ("ratio", "right"))

    def add(name: Text, row: PhaseRow, style: str = "") -> None:
        cells = [view.phase_cell(row, phase, lambda n: si(n, "").strip()) for phase in phases]
        shown.add_row(name, *(Text(cell, style=style) for cell in [*cells, view.phase_ratio(row)]))

    for row in table.rows[:limit]:
        add(Text(clean(row.layer) or "(no layer)"), row)
    if len(table.rows) > limit:
        rest = f"{number(len(table.rows) - limit)} more layers, see the files or --verbose"
        shown.add_row(Text(rest, style="dim"))
    add(Text("total", style="bold"), table.total, "bold")
    return shown


def layer_table(result: RunResult, limit: int = LAYERS) -> Table:
    """Per layer the work that ran, and per counter its value and the causes that separate it from that work."""
    table = _table(("layer, counter", "left"), ("FLOP", "right"), ("to the work", "right"), ("cause", "left"))
    homes = {x.counter: x.framework for x in result.ledgers if x.normalised_total is not None}
    table.columns[0].min_width = max((len(counter) + 2 for counter in homes), default=0)
    holes = {(trace.framework, u.layer) for trace, u in view.unknown(result)}
    for row in result.layers[:limit]:
        known = {f: work for f, work in row.work.items() if (f, row.layer) not in holes}
        _layer(table, replace(row, work=known), homes)
    if len(result.layers) > limit:
        rest = f"{number(len(result.layers) - limit)} more layers, see the files or --verbose"
        table.add_row(Text(rest, style="dim"), "", "", "")
    return table


def _layer(table: Table, row: LayerRow, homes: dict[str, str]) -> None:
    exact: list[str] = []
    lines: list[tuple[str, int | None, str, str, str]] = []
    for counter, framework in homes.items():
        value = row.counters.get(counter, 0)
        amounts = to_the_work(row, counter).items()
        causes = [(cause, amount) for cause, amount in amounts if framework in row.work or cause == RESIDUAL]
        if not causes:
            if row.work.get(framework) == value:
                exact.append(counter)
            else:
                lines.append((counter, value, "", "not compared", ""))
        for index, (cause, amount) in enumerate(causes):
            style = STYLE[State.UNEXPLAINED] if cause == RESIDUAL else ""
            lines.append((counter if not index else "", value if not index else None, signed(amount), cause, style))
    name = clean(row.layer) or "(no layer)"
    note = Text("= " + ", ".join(exact) if exact else "", style="green")
    if len(set(row.work.values())) > 1:
        for framework, work in row.work.items():
            table.add_row(Text(name, style="bold"), Text(number(work), style="bold"), "", f"work in {framework}")
            name = ""
        if exact:
            table.add_row("", "", "", note)
    else:
        shown_work = next((number(w) for w in row.work.values()), "unknown")
        table.add_row(Text(name, style="bold"), Text(shown_work, style="bold"), "", note)
    for counter, shown, amount_text, cause, style in lines:
        table.add_row(
            Padding.indent(Text(counter), 2),
            "" if shown is None else number(shown),
            Text(amount_text, style=style),
            Text(cause, style=style),
        )


def _closing(counter: CounterVerdict) -> RenderableType:
    text = Text(f"{counter.ledger.counter}: ", style="bold")
    text.append(clean(view.closing(counter)), style=f"not bold {STYLE[counter.state]}")
    return text


def _notes(result: RunResult, run_verdict: Verdict) -> list[RenderableType]:
    """The notes on how each trace and ledger was taken, such as the device; the inputs of the model, if no figure names
    them; and the alignment of two models' layers."""
    shown = {framework for figure in run_verdict.figures for framework in figure.frameworks}
    lines = [
        f"{trace.name}: {note}."
        for trace in result.traces
        for note in trace.notes
        if trace.framework not in shown or not note.startswith(CALLED_WITH)
    ]
    lines += [f"{ledger.counter}: {note}." for ledger in result.ledgers for note in ledger.notes]
    lines += [f"Published: {sentence}" for sentence in view.published(result)]
    return [Text(clean(text), style="dim") for text in [*lines, *sentences(result.alignment)]]


def _verdict(run_verdict: Verdict) -> list[RenderableType]:
    """The numbers to publish, each as a sentence to cite."""
    lines: list[RenderableType] = [
        Text.assemble(("To publish: ", "bold"), clean(f.sentence)) for f in run_verdict.figures
    ]
    lines += [Text(sentence, style=STYLE[State.NOT_COMPARABLE]) for sentence in run_verdict.cautions]
    if run_verdict.difference:
        lines.append(Text(clean(run_verdict.difference)))
    return lines


def _problems(result: RunResult) -> list[RenderableType]:
    red = STYLE[State.UNEXPLAINED]
    lines: list[RenderableType] = [Text(clean(view.broken_sentence(*pair)), style=red) for pair in view.broken(result)]
    lines += [Text(clean(sentence), style=red) for sentence in view.traces_lost(result)]
    lines += [Text(clean(sentence), style=red) for sentence in view.unknown_sentences(result)]
    lines += [Text(clean(item.sentence)) for item in verdict(result).withheld]
    return lines


def _summary(result: RunResult) -> Text:
    return Text(view.summary(result), style="bold green" if result.exit_code == 0 else "bold red")
