"""What a result shows of itself in a notebook: one piece of HTML or Markdown, nothing loaded from anywhere.

The verdict, every counter as a ratio to the work that ran, and the statement of the counter that is furthest off. Names
nobody chose for us show as written and do nothing else. Colours follow the notebook's theme, else the system's.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jinja2

from ..core.causes import State
from ..core.results import RunResult, Statement
from ..core.text import clean, markdown, number, ratio, signed
from ..verdict.verdict import CounterVerdict, Verdict, verdict
from . import view
from .rendering import environment

LAYERS = 12
"""Layers of a cause that are shown; the rest is one line, so that it still adds up."""


def to_html(result: RunResult) -> str:
    """A ``<div>`` with its own style."""
    said = verdict(result)
    worst = furthest(said)
    most = max([1.0, *(c.ratio for c in said.counters if c.ratio is not None)])
    return _template().render(
        result=result,
        said=said,
        summary=view.summary(result),
        worst=None if worst is None else worst.statement,
        distance=None if worst is None else view.distance(worst),
        blocks=_blocks(result, None if worst is None else worst.statement),
        limit=LAYERS,
        most=most,
        one=f"{100 / most:.1f}",
    )


def to_markdown(result: RunResult) -> str:
    """The same in brief, for what shows no HTML: the verdict and a table of the counters."""
    said = verdict(result)
    lines = [f"**{markdown(result.model)}**, {result.pass_}, convention {markdown(result.convention.name)}", ""]
    for figure in said.figures:
        lines += [f"> **To publish:** {markdown(figure.sentence)}", ""]
    for sentence in (*said.cautions, said.difference, *(item.sentence for item in said.withheld)):
        lines += [f"> {markdown(sentence)}", ""] if sentence else []
    if said.counters:
        lines += ["| counter | FLOP | of the work | to the work |", "|:--|--:|--:|:--|"]
        lines += [f"| {' | '.join(_row(counter))} |" for counter in said.counters]
        lines.append("")
    return "\n".join([*lines, markdown(view.summary(result)), ""])


def _row(counter: CounterVerdict) -> tuple[str, str, str, str]:
    total = counter.ledger.normalised_total
    causes = ", ".join(f"{cause} {signed(amount)}" for cause, amount in counter.causes)
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


def furthest(said: Verdict) -> CounterVerdict | None:
    """The counter that is furthest off the work that ran; None where every one that can be compared is exact."""
    off = [c for c in said.counters if c.off is not None and not c.exact]
    return max(off, key=lambda c: (abs(c.off or 0), bool(c.causes)), default=None)


def _blocks(result: RunResult, statement: Statement | None) -> list[view.Block]:
    return [] if statement is None else view.blocks(statement, [row.layer for row in result.layers])


def _times(counter: CounterVerdict) -> str:
    work = counter.work or 0
    return ratio(work + (counter.off or 0), work)


def _tone(counter: CounterVerdict) -> str:
    """The class of its colour: exact, else its state; the right total by offsetting errors is as off as any other."""
    return "exact" if counter.exact else counter.state.value if counter.state is not State.EQUAL else "explained"


@lru_cache(maxsize=1)
def _template() -> jinja2.Template:
    made = environment(_finalize, autoescape=True)
    made.filters.update(
        signed=signed,
        reason=view.reason,
        names=", ".join,  # of text, so that what comes out is cleaned and escaped like any other
        words=lambda name: name.replace("_", " "),
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
