"""``reconcile check A.json B.json``: what moved between two saved files."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any, NoReturn

import click

from ..core.errors import UsageError
from .streams import say

OPTIONS = frozenset(("convention", "convention_files", "formulas", "quiet", "verbose"))
"""The parameters that say something about two files; all others are those of a run."""


def compare(
    ctx: click.Context, older: Path, newer: Path, asked: dict[str, Any], *, quiet: bool, verbose: bool
) -> NoReturn:
    """Compare the files, print what moved, and exit. Raises UsageError for files that do not compare."""
    from ..core.errors import EXIT_OK, EXIT_UNEXPLAINED
    from ..drift.check import between
    from ..drift.words import details, verdict
    from ..launch.request import run_request

    _only(ctx, {*OPTIONS, "older", "newer"})
    drift = between(older, newer, run_request(**{name: value for name, value in asked.items() if name in OPTIONS}))
    say(verdict(drift, str(older)))
    if not quiet:
        for line in details(drift, verbose=verbose):
            say(line)
    ctx.exit(EXIT_UNEXPLAINED if drift.moved or drift.failed else EXIT_OK)


def _only(ctx: click.Context, allowed: Collection[str]) -> None:
    for parameter in ctx.command.params:
        name = parameter.name or ""
        if name not in allowed and ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            raise UsageError(f"{parameter.opts[0]} belongs to a run, and two saved files need none. Leave it out.")
