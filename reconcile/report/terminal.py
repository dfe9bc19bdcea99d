"""The terminal view: the answer first, then the statement, then each counter's differences layer by layer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.text import Text

from ..core.causes import State
from ..core.records import CALLED_WITH
from ..core.results import RunResult, Statement
from ..core.text import clean, si
from ..verdict.verdict import CounterVerdict, Verdict, counters_of, verdict
from . import view
from .alignment import sentences
from .columns import widen
from .terminal_tables import LAYERS, STYLE, layer_table, phase_view, statement_table, totals


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
    widen(console)
    width = console.width
    limit = None if verbose else LAYERS
    if not quiet:
        _print(console, _headline(result, chosen), Text(), totals(result, width), Text())
        if chosen is not None:
            _print(
                console, *_section(f"From {chosen.from_} to {chosen.to}", statement_table(chosen, layers, limit, width))
            )
        for counter in counters_of(result) if verbose else ():
            own = counter.statement
            if own is not None and own is not chosen:
                _print(console, *_section(f"From {own.from_} to {own.to}", statement_table(own, layers, limit, width)))
        for framework, phased in view.phase_tables(result, result.convention):
            _print(console, *_section(f"Phase by phase ({framework})", phase_view(phased, limit, width)))
            if sentence := view.ratio_sentence(phased.total):
                _print(console, Text(f"{framework}: {sentence}."), Text())
        if result.layers:
            _print(
                console,
                *_section(
                    "Layer by layer: what to add to arrive at the work that ran", layer_table(result, limit, width)
                ),
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


def _headline(result: RunResult, statement: Statement | None) -> Text:
    text = Text(f"{clean(result.model)}, {result.pass_}, convention {clean(result.convention.name)}: normalised totals")
    text.stylize("bold")
    if statement is not None:
        for name, total in ((statement.from_, statement.from_total), (statement.to, statement.to_total)):
            text.append("\n  " + view.origin(result, name, total), style="not bold")
            if total is not None and abs(total) >= 1000:
                text.append(f", {si(total)}", style="not bold dim")
    return text


def _closing(counter: CounterVerdict) -> RenderableType:
    text = Text(f"{counter.ledger.counter}: ", style="bold")
    text.append(clean(view.closing(counter)), style=f"not bold {STYLE[counter.state]}")
    return text


def _notes(result: RunResult, run_verdict: Verdict) -> list[RenderableType]:
    """The notes on how each trace and ledger was taken, such as the device; the inputs of the model, if no figure names
    them; and the alignment of two models' layers."""
    shown = {framework for figure in run_verdict.figures for framework in figure.frameworks}
    lines = [
        f"{trace.name}: {view.as_sentence(note)}"
        for trace in result.traces
        for note in trace.notes
        if trace.framework not in shown or not note.startswith(CALLED_WITH)
    ]
    lines += [f"{ledger.counter}: {view.as_sentence(note)}" for ledger in result.ledgers for note in ledger.notes]
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
