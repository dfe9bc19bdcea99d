"""The result on the user's screen: rich on stdout, quiet when the reader has gone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from ..core.errors import UsageError
from ..core.results import Statement
from ..core.text import clean
from ..engine.answer import Answer
from ..report import view
from ..report.terminal import screen as terminal
from .console import PlainConsole
from .streams import forget, of_stdout, say


def show(result: Answer, statement: Statement | None, files: Sequence[Path], *, quiet: bool, verbose: bool) -> None:
    """Print the run. With ``quiet``, what could not run and why goes to stderr."""
    for line in view.lost(result) if quiet else ():
        say(clean(line), err=True)
    printing(lambda console: terminal.show(result, console, statement, files, quiet=quiet, verbose=verbose))


def printing(write: Callable[[PlainConsole], None]) -> None:
    """Let ``write`` print. A reader that has gone (``| head``) changes nothing: the files are written already."""
    stream = sys.stdout
    console = PlainConsole(stream)
    try:
        write(console)
        stream.flush()
    except BrokenPipeError:
        console.on_broken_pipe()
    except OSError as error:
        forget(stream)
        raise UsageError(of_stdout(error)) from error
