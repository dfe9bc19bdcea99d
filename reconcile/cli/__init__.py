"""The command line. This file loads click and nothing else; a command's file is loaded when the command is called."""

from __future__ import annotations

import warnings
from typing import TextIO

import click

from .lazy import LazyGroup
from .streams import say

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

COMMANDS = {
    "run": ("reconcile.cli.run:run", "Run the counters on a model and reconcile them."),
    "new": ("reconcile.cli.new:new", "Write a pair file, or a counter, that runs, to start from."),
    "matrix": ("reconcile.cli.matrix:matrix", "Run a model in several environments and reconcile neighbours."),
    "check": ("reconcile.cli.check:check", "Hold a fresh run against a baseline."),
    "diff": ("reconcile.cli.diff:diff", "Hold one saved baseline or ledger against another."),
    "upgrade": (
        "reconcile.cli.upgrade:upgrade",
        "Say what a release moves: every layer of the zoo's families under both.",
    ),
    "decode": ("reconcile.cli.decode:decode", "Say what a published number is for a model."),
    "gallery": ("reconcile.cli.gallery:gallery", "Run every pair of the zoo and write the gallery."),
    "scorecard": (
        "reconcile.cli.scorecard:scorecard",
        "Judge every counter on every layer of the zoo's families.",
    ),
    "sweep": ("reconcile.cli.sweep:sweep", "Run every model of a package or a list, and write a page that shows them."),
    "audit": (
        "reconcile.cli.audit:audit",
        "Say of every published figure in a table what it counts, or why nobody can say.",
    ),
    "formula": ("reconcile.cli.formula:formula", "Find the counts of a model as polynomials of its sizes."),
    "llm": (
        "reconcile.cli.llm:llm",
        "Print the page that a training needs: each formula beside what ran, and the numbers for MFU and HFU.",
    ),
    "list": ("reconcile.cli.list:list_", "List models, counters, causes or conventions."),
    "explain": (
        "reconcile.cli.explain:explain",
        "Say what a cause, a convention or a counter is, show it, and how to avoid it.",
    ),
    "conform": ("reconcile.cli.conform:conform", "Test whether a counter holds what every counter of this tool holds."),
    "draft-rules": (
        "reconcile.cli.draft_rules:draft_rules",
        "Print a draft of the rules of a counter that has none.",
    ),
    "reproduce": (
        "reconcile.cli.reproduce:reproduce",
        "Print the shortest program that shows where a counter is wrong.",
    ),
    "completion": ("reconcile.cli.completion:completion", "Print what makes a shell complete this tool's words."),
}


def _version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if not value or ctx.resilient_parsing:
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        say(f"reconcile {version('flop-reconcile')}")
    except PackageNotFoundError:
        say("reconcile (not installed: running from its source)")
    ctx.exit()


@click.group(cls=LazyGroup, commands_at=COMMANDS, context_settings=CONTEXT)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version and exit."
)
def cli() -> None:
    """Why do two FLOP counters disagree about a model, down to the last unit?

    \b
    Start with:  reconcile run --model gru_demo
    Your own:    reconcile run --torch package.module:function --input 1,3,224,224

    Exit codes: 0 reconciled, 1 unexplained or incomplete, 2 bad usage or input, or a file that the system refuses, 3 a
    counter failed, 4 a defect of reconcile itself.
    """


def _warn(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """A warning shows the line it is about, which may be somebody's."""
    say(warnings.formatwarning(message, category, filename, lineno, line), err=True, nl=False)


def main() -> None:
    """The console script."""
    warnings.showwarning = _warn
    cli(prog_name="reconcile")
