"""The result on the user's screen: rich on stdout, quiet when nobody reads any more."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import click
from rich.console import Console

from ..report import terminal, view
from ..report.text import clean
from ..results import RunResult, Statement
from .lazy import forget_stdout


def show(result: RunResult, statement: Statement | None, files: Sequence[Path], *, quiet: bool, verbose: bool) -> None:
    """Print the run. With ``quiet``, what could not run and why goes to stderr."""
    for line in view.lost(result) if quiet else ():
        click.echo(clean(line), err=True)
    printing(lambda console: terminal.show(result, console, statement, files, quiet=quiet, verbose=verbose))


def printing(write: Callable[[Console], None]) -> None:
    """Let ``write`` print. A reader that has gone (``| head``) changes nothing: the files are written already."""
    stream = sys.stdout
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")
    console = _Console(file=stream)
    try:
        write(console)
        stream.flush()
    except BrokenPipeError:
        console.on_broken_pipe()


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Send what is left nowhere, so that the run's own exit code stands."""
        self.quiet = True
        forget_stdout()
