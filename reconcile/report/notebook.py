"""A result as a Jupyter notebook shows it: HTML that loads nothing, or Markdown where a viewer has no HTML.

It has the verdict, every counter as a ratio to the work that ran, and the statement of the counter that is furthest off.
Names of layers and files are escaped, so they cannot act as HTML. Colours follow the notebook's theme, else the system's.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jinja2

from ..core.causes import State
from ..core.results import Statement
from ..core.text import clean, format_signed, markdown, number, ratio
from ..engine.answer import Answer
from ..engine.breakdown import Block, blocks
from ..engine.verdict import CounterVerdict, Verdict
from . import view
from .rendering import environment

LAYERS = 12
"""Layers of a cause that are shown; the rest is one line, so the sum stays right."""


def to_html(result: Answer) -> str:
    """The result as a ``<div>`` with its own style."""
    run_verdict = result.verdict
    worst = furthest(run_verdict)
    most = max([1.0, *(c.ratio for c in run_verdict.counters if c.ratio is not None)])
    return _template().render(
        result=result,
        said=run_verdict,
        summary=view.summary(result),
        worst=None if worst is None else worst.statement,
        distance=None if worst is None else view.distance(worst),
        blocks=_blocks(result, None if worst is None else worst.statement),
        limit=LAYERS,
        most=most,
        one=f"{100 / most:.1f}",
    )


def to_markdown(result: Answer) -> str:
    """A short form for viewers without HTML: the verdict and a table of the counters."""
    run_verdict = result.verdict
    lines = [f"**{markdown(result.model)}**, {result.pass_}, convention {markdown(result.convention.name)}", ""]
    for figure in run_verdict.figures:
        lines += [f"> **To publish:** {markdown(figure.sentence)}", ""]
    for sentence in (*run_verdict.cautions, run_verdict.difference, *(item.sentence for item in run_verdict.withheld)):
        lines += [f"> {markdown(sentence)}", ""] if sentence else []
    if run_verdict.counters:
        lines += ["| counter | FLOP | of the work | to the work |", "|:--|--:|--:|:--|"]
        lines += [f"| {' | '.join(_row(counter))} |" for counter in run_verdict.counters]
        lines.append("")
    return "\n".join([*lines, markdown(view.summary(result)), ""])


def _row(counter: CounterVerdict) -> tuple[str, str, str, str]:
    total = counter.ledger.normalised_total
    causes = ", ".join(f"{cause} {format_signed(amount)}" for cause, amount in counter.causes)
    if counter.off is None:
        return (
            markdown(counter.ledger.counter),
            "",
            counter.state.value.replace("_", " "),
            markdown(view.reason(counter)),
        )
    return (
        markdown(counter.ledger.counter),
        "" if total is None else number(total),
        _times(counter),
        "exact" if counter.exact else causes,
    )


def furthest(run_verdict: Verdict) -> CounterVerdict | None:
    """The counter that is furthest off the work that ran; None if every counter that can be compared is exact."""
    off = [c for c in run_verdict.counters if c.off is not None and not c.exact]
    return max(off, key=lambda c: (abs(c.off or 0), bool(c.causes)), default=None)


def _blocks(result: Answer, statement: Statement | None) -> list[Block]:
    return [] if statement is None else blocks(statement, [row.layer for row in result.layers])


def _times(counter: CounterVerdict) -> str:
    work = counter.work or 0
    return ratio(work + (counter.off or 0), work)


def _tone(counter: CounterVerdict) -> str:
    """The CSS class of a counter: exact, else its state; a right total by offsetting errors is not exact."""
    return "exact" if counter.exact else counter.state.value if counter.state is not State.EQUAL else "explained"


@lru_cache(maxsize=1)
def _template() -> jinja2.Template:
    made = environment(_finalize, autoescape=True)
    made.filters.update(
        signed=format_signed,
        reason=view.reason,
        names=", ".join,  # of text, so that its output is cleaned and escaped like any other
        words=view.word,
        times=_times,
        tone=_tone,
        width=lambda counter, most: f"{100 * (counter.ratio or 0) / most:.1f}",
    )
    return made.get_template("notebook.html.j2")


def _finalize(value: Any) -> Any:
    """Numbers with separators; text as one line that shows as written (autoescape does the rest)."""
    if isinstance(value, int) and not isinstance(value, bool):
        return number(value)
    return clean(value) if isinstance(value, str) and not hasattr(value, "__html__") else value
