"""A run as a notebook shows it, as a Document: the verdict, every counter as a ratio to the work that ran, and the statement of
the counter that is furthest off."""

from __future__ import annotations

from ..core.causes import State
from ..core.number_format import format_signed, number, ratio
from ..engine.answer import Answer
from ..engine.verdict import CounterVerdict, Verdict
from . import document, view
from .document import Column, Document, Heading, Inline, Span, Table, Text, strong, tabulate

LAYERS = 12
"""Layers of a cause that are shown; the rest is one line, so the sum stays right."""
BAR = 16
"""Characters of a bar that is as long as the work that ran, or as the largest total if that is more."""
COUNTERS = (
    *tabulate("counter|as reported>|FLOP>|of the work>", ()).columns, Column("", "whole"), Column("to the work")
)  # fmt: skip


def describe_run(result: Answer) -> Document:
    """Make the page of a run. Notes on a figure stand below it."""
    said = result.verdict
    most = max([1.0, *(c.ratio for c in said.counters if c.ratio is not None)])
    figures = (
        (Text((strong("To publish:"), f" {f.sentence}")), *(Text(note, "dim") for note in f.notes))
        for f in said.figures
    )
    others = (*said.cautions, *([said.difference] if said.difference else []))
    return Document(
        f"{result.model}, {result.pass_}, convention {result.convention.name}",
        view.summary(result),
        (
            *(block for blocks in figures for block in blocks),
            *map(Text, others),
            *(Text(item.sentence, "bad") for item in said.withheld),
            *([Table(COUNTERS, tuple(_counter_cells(c, most) for c in said.counters))] if said.counters else []),
            *_describe_furthest(result, find_furthest(said)),
        ),
        result.exit_code == 0,
    )


def _counter_cells(counter: CounterVerdict, most: float) -> tuple[Inline, ...]:
    ledger, total = counter.ledger, counter.ledger.normalised_total
    reported = "" if ledger.total is None else f"{number(ledger.total)} {ledger.unit}"
    first = (ledger.counter, reported, "" if total is None else number(total))
    if counter.off is None:
        return (
            *first,
            Span(view.state_word(counter.state.value), counter.state.value),
            "",
            view.describe_reason(counter),
        )
    work = counter.work or 0
    state = State.EQUAL if counter.exact else State.EXPLAINED if counter.state is State.EQUAL else counter.state
    causes = ", ".join(f"{cause} {format_signed(amount)}" for cause, amount in counter.causes)
    bar = Span("█" * round(BAR * (counter.ratio or 0) / most), state.value)
    return (*first, ratio(work + counter.off, work), bar, "exact" if counter.exact else causes)


def _describe_furthest(result: Answer, counter: CounterVerdict | None) -> tuple[document.Block, ...]:
    if counter is None or counter.statement is None:
        return ()
    title = f"The largest difference: {counter.ledger.counter}, {view.describe_distance(counter)} the work that ran"
    layers = tuple(row.layer for row in result.layers)
    return Heading(title), document.Statement(counter.statement, layers, LAYERS, most=LAYERS)


def find_furthest(run_verdict: Verdict) -> CounterVerdict | None:
    """The counter that is furthest off the work that ran; None if every counter that can be compared is exact."""
    off = [c for c in run_verdict.counters if c.off is not None and not c.exact]
    return max(off, key=lambda c: (abs(c.off or 0), bool(c.causes)), default=None)
