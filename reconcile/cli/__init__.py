"""The command line. This file loads click and nothing else; a command's file is loaded when the command is called."""

from __future__ import annotations

import warnings
from typing import TextIO

import click

from .lazy import LazyGroup
from .streams import say

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

GROUPS = {
    "Count a model": {
        "run": "Run the counters on a model and reconcile them.",
        "watch": "Run your training script and count the step that it takes.",
        "ranks": "Add up the reports that several processes wrote of one step.",
        "matrix": "Run a model in several environments and compare them.",
        "formula": "Find the counts of a model as polynomials of its sizes.",
        "llm": "Report a training step beside the published formulas.",
        "explain": "Explain a name in a report, or list all names.",
    },
    "Many models": {
        "sweep": "Run every model of a package or a list.",
        "zoo": "Run the models of this tool and write their pages.",
    },
    "A number that you were given": {
        "decode": "Explain a published number of a model.",
        "audit": "Explain what each published figure in a table counts.",
        "mfu": "Explain a published MFU as a product of factors.",
    },
    "Releases": {
        "check": "Compare a run with a baseline, or two saved files.",
        "upgrade": "Compare two releases layer by layer, before you upgrade.",
    },
    "For authors of counters": {
        "counter": "Write, test and draft a counter, and show its errors.",
    },
}
"""The commands by what you want to do, each with the first line of its own help."""
FUNCTIONS = {"zoo": "groups.zoo", "counter": "groups.counter", "ranks": "watch.ranks"}


def _version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if not value or ctx.resilient_parsing:
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        say(f"reconcile {version('flop-reconcile')}")
    except PackageNotFoundError:
        say("reconcile (not installed: running from its source)")
    ctx.exit()


@click.group(cls=LazyGroup, groups=GROUPS, functions=FUNCTIONS, context_settings=CONTEXT)
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
    """The console script."""
    warnings.showwarning = _warn
    cli(prog_name="reconcile")
