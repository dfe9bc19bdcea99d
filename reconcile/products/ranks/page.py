"""HTML report of ``reconcile run --ranks``, a self-contained file: the balance as bar charts, and the statement to one device."""

from __future__ import annotations

from importlib import resources

from markupsafe import Markup

from ...core.text import format_signed, number
from ...engine.breakdown import blocks
from ...report.page import finalize, hash_of, style_page
from ...report.rendering import environment
from . import words
from .picture import pictures
from .ranked import Ranked


def to_html(result: Ranked, command: str = "") -> str:
    """The page."""
    template = environment(finalize, autoescape=True, package=__package__, folder=".").get_template("ranks.html.j2")
    style = style_page(resources.files(__package__).joinpath("ranks.css").read_text("utf-8"))
    name, statement = result.convention.name, result.statement
    totals = [(words.ranks(fold.ranks), fold.trace.totals.get(name)) for fold in result.folds]
    if result.whole:
        totals.append((f"sum of {number(result.world.size)} ranks", result.totals.get(name)))
    if result.one is not None:
        totals.append(("one device", result.one.traces[0].totals.get(name)))
    return template.render(
        headline=words.headline(result),
        summary=words.summary(result),
        totals=[(label, "unknown" if total is None else number(total)) for label, total in totals],
        pictures=tuple(pictures(result)),
        statement=statement if statement is not None and statement.closed else None,
        blocks=blocks(statement, ()) if statement is not None and statement.closed else [],
        number=number,
        signed=format_signed,
        said=(*words.counters(result), *words.balance(result)),
        columns=words.TRAFFIC,
        traffic=tuple(words.traffic(result)),
        notes=words.notes(result),
        command=command,
        style=Markup(style),
        style_hash=Markup(hash_of(style)),
    )
