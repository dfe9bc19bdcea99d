"""The scorecard as one HTML file without script or request: a click on a cell shows its causes, rules and commands."""

from __future__ import annotations

from functools import partial
from importlib import resources

from markupsafe import Markup

from ...core.escaping import escape_line
from ...report.page import finalize, hash_of, style_page
from ...report.rendering import environment
from .cells import Verdict, text
from .report import Board, commands, counted_text, opens


def to_html(board: Board) -> str:
    """``scorecard.html``."""
    template = environment(finalize, autoescape=True, package=__package__, folder=".").get_template("scorecard.html.j2")
    style = style_page(resources.files(__package__).joinpath("scorecard.css").read_text(encoding="utf-8"))
    return template.render(
        board=board,
        verdicts=[v for v in Verdict if any(board.sums(name, p)[v] for name in board.counters for p in board.passes)],
        cell=partial(_cell, board),
        style=Markup(style),
        style_hash=Markup(hash_of(style)),
    )


def _cell(board: Board, family: str, layer: str, pass_: str, counter: str) -> Markup:
    card = board.card(family, pass_, counter)
    cell = board.cell(family, layer, pass_, counter)
    if card is None or cell is None:
        return Markup("<td>not made yet</td>")
    kind = cell.verdict.name.lower()
    if not opens(cell):
        return Markup('<td class="{}">{}</td>').format(kind, text(cell))
    inside = Markup("<p>{}</p>").format(escape_line(counted_text(cell)))
    if cell.rules:
        inside += Markup("<p>{}</p>").format(escape_line("; ".join(cell.rules)))
    for line in commands(card, layer, cell):
        inside += Markup("<code>{}</code>").format(escape_line(line))
    opened = '<td class="{}"><details name="cell"><summary>{}</summary><div>{}</div></details></td>'
    return Markup(opened).format(kind, text(cell), inside)
