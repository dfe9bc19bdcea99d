"""The command line: ``reconcile`` and its console script. It loads click alone of other packages, and the called command."""

from __future__ import annotations

import warnings
from typing import TextIO

import click

from .command_group import LazyGroup
from .streams import say

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def _version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if not value or ctx.resilient_parsing:
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        say(f"reconcile {version('flop-reconcile')}")
    except PackageNotFoundError:
        say("reconcile (not installed: running from its source)")
    ctx.exit()


@click.group(cls=LazyGroup, context_settings=CONTEXT)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version and exit."
)
def cli() -> None:
    """Why do two FLOP counters disagree about a model, down to the last unit?

    \b
    Start with:  reconcile run --model gru_demo
    Your own:    reconcile run --torch package.module:function --input 1,3,224,224

    Exit codes: 0 reconciled, 1 unexplained or incomplete, 2 bad usage or input, 3 a counter failed, 4 a defect of
    reconcile itself.
    """


def _warn(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """A warning shows the line that it is about, which may be a user's."""
    say(warnings.formatwarning(message, category, filename, lineno, line), err=True, nl=False)


def main() -> None:
    """Run the command line, as the console script ``reconcile`` does, and exit."""
    warnings.showwarning = _warn
    cli(prog_name="reconcile")
