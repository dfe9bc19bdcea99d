"""``reconcile zoo scorecard``: tests the counters on the layers of the zoo's families, and writes the pages of the verdicts.

It runs what is missing or stale (run.py), keeps the cards in ``scorecard.json``, and makes all pages of these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...cli.options import PATH, F, options
from ...cli.progress import CLEAN, bar
from ...cli.streams import say
from ...core.errors import EXIT_FAILED, EXIT_OK, EXIT_UNEXPLAINED
from ...launch.options import PASSES
from ..number_types import Jobs

if TYPE_CHECKING:
    from .cells import Card


def of_families(function: F) -> F:
    """Decorate a command of the zoo's families with --case and --pass, both repeatable."""
    look = "Run only this pass."
    function = click.option("--pass", "passes", type=click.Choice(PASSES), multiple=True, help=look)(function)
    look = "Run only this family. Repeatable; default all."
    return click.option("--case", "families", multiple=True, metavar="NAME", help=look)(function)


@click.command()
@click.option(
    "--counter",
    "counters",
    multiple=True,
    metavar="NAME",
    help="Run only this counter. Repeatable; default every counter that needs no environment of its own and "
    "builds no model in another way, and those with cells in --data.",
)
@of_families
@click.option("--jobs", type=Jobs(min=1), default=2, show_default=True, help="Number of runs at the same time.")
@click.option(
    "--data",
    type=PATH,
    metavar="FILE.json",
    help="File of the cells.  [default: scorecard.json in --out]",
)
@options("out", "quiet")
@click.pass_context
def scorecard(
    ctx: click.Context,
    counters: tuple[str, ...],
    families: tuple[str, ...],
    passes: tuple[str, ...],
    jobs: int,
    data: Path | None,
    out: Path,
    quiet: bool,
) -> None:
    """Test every counter on every layer of the zoo's families.

    A cell compares the multiply-adds that a counter counts in a layer with those that ran there: exact, partial, zero, wrong by
    a factor, fails or blind. It links to its causes and to a program that shows it. The command writes README.md, a page per
    family, scorecard.csv, scorecard.html and scorecard.svg to --out, and keeps the cells in --data. A cell runs again only if
    the counter's code, its version, the family or the framework's version has changed. --counter, --case and --pass leave the
    other cells as they are. A counter that needs its own environment runs there.

    Exit codes: 0 every number is explained, 1 something is not, 2 bad usage, 3 a counter is not installed,
    4 a defect of reconcile itself.
    """
    from ...core import atomic
    from ...core.errors import check_names
    from ...core.registry import every_counter, known_counters
    from ...launch.request import PASSES
    from ...report.pictures import charts as pictures
    from ..authors import reproduce
    from ..authors.conform import families as all_families
    from . import cells as cards_
    from . import run as scoring

    pictures.require()
    check_names("counter", counters, known_counters())
    for name in counters:
        reproduce.check_framework(known_counters()[name])
    check_names("family", families, all_families())
    path = data or out / cards_.FILE.name
    atomic.prepare(out)
    atomic.prepare(path.parent)
    kept = {name: card for name, card in cards_.read_cards(path).items() if card.family in all_families()}
    default = [*every_counter(), *(card.counter for card in kept.values() if card.counter in known_counters())]
    batches = scoring.stale(
        counters or tuple(dict.fromkeys(default)), families or all_families(), passes or PASSES, kept
    )
    with bar(len(batches), quiet) as (begun, tell):
        made = scoring.make(
            batches,
            jobs,
            lambda name, cards: tell(name, _verdict(cards)),
            begun,
            lambda text: say(text, err=True),
        )
    cards = {**kept, **made}
    if made or not path.exists():
        atomic.write(path.parent, path.stem, {"json": cards_.dump(cards.values())})
    written = write(out, cards)
    say(f"{len(made)} of {len(cards)} cards made, {len(cards) - len(made)} kept; wrote {written} and {path}")
    verdicts = {cell.verdict for card in cards.values() for cell in card.cells.values()}
    if cards_.Verdict.OPEN in verdicts:
        ctx.exit(EXIT_UNEXPLAINED)
    ctx.exit(EXIT_FAILED if cards_.Verdict.ABSENT in verdicts else EXIT_OK)


def write(out: Path, cards: Mapping[str, Card]) -> Path:
    """Write the pages of these cards, their CSV and their picture to ``out``; returns the path of README.md."""
    from ...core import atomic
    from ...report.document.markdown import to_markdown
    from . import page as scorecard_page
    from . import picture as scorecard_picture
    from . import report as pages

    board = pages.Board(cards)
    files = {"csv": pages.to_csv(board), "html": scorecard_page.to_html(board), "svg": scorecard_picture.to_svg(board)}
    atomic.write(out, pages.STEM, files)
    for family in board.layers:
        atomic.write(out, family, {"md": to_markdown(pages.describe_family(board, family))})
    return atomic.write(out, pages.PAGE, {"md": to_markdown(pages.describe_scorecard(board))})[0]


def _verdict(cards: Sequence[Card]) -> str:
    from .cells import Verdict

    open_ = [
        f"{card.counter} at {layer}: {cell.reason}"
        for card in cards
        for layer, cell in card.cells.items()
        if cell.verdict is Verdict.OPEN
    ]
    return open_[0] if open_ else CLEAN
