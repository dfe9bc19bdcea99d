"""``reconcile diff``: what moved between two saved files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .options import PATH, options
from .streams import say


@click.command()
@click.argument("older", type=PATH, metavar="A.json")
@click.argument("newer", type=PATH, metavar="B.json")
@options("convention", "convention-file", "formulas", "quiet", "verbose")
@click.pass_context
def diff(
    ctx: click.Context,
    /,
    older: Path,
    newer: Path,
    quiet: bool,
    verbose: bool,
    **asked: Any,
) -> None:
    """Compare two saved baselines or ledgers.

    A.json is the older one. Nothing is run. A ledger by itself has no trace beside it, so what moved is shown without
    causes.

    \b
    Exit codes: 0 nothing moved, 1 something did, 2 bad usage or files, 4 a defect of reconcile itself.
    """
    from ..core.errors import EXIT_OK, EXIT_UNEXPLAINED
    from ..drift.check import between
    from ..launch.request import run_request
    from ..report.drift import details, verdict

    drift = between(older, newer, run_request(**asked))
    say(verdict(drift, str(older)))
    if not quiet:
        for line in details(drift, verbose=verbose):
            say(line)
    ctx.exit(EXIT_UNEXPLAINED if drift.moved or drift.failed else EXIT_OK)
