"""Prints a result to stdout with rich: names cannot act as markup or escape sequences, and a closed pipe is no error.

Text that is laid out in columns is escaped before that (core/escaping.py), so that its width is the one that shows; the
console escapes every text again, in case one was forgotten.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from ..core.errors import UsageError
from ..core.escaping import escape_line, escape_lines
from ..core.results import Statement
from ..engine.answer import Answer
from ..report import view
from ..report.terminal import screen as terminal
from .streams import describe_stdout_error, forget, say


class PlainConsole(Console):
    """A rich console that prints names as they are: neither ``[red]`` nor an escape sequence in one has an effect."""

    def __init__(self, file: TextIO | None = None, *, stderr: bool = False) -> None:
        super().__init__(file=file, stderr=stderr, markup=False, emoji=False, highlight=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """See Console.render; rich's own control codes, with which it draws lines again, pass."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(escape_lines(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        """Discard the remaining output, so that the exit code of the run is kept."""
        self.quiet = True
        forget(self.file)  # type: ignore[arg-type]


def show(result: Answer, statement: Statement | None, files: Sequence[Path], *, quiet: bool, verbose: bool) -> None:
    """Print the report of a run. With ``quiet``, what could not run and why goes to stderr as well."""
    for line in view.list_failed_counters(result) if quiet else ():
        say(escape_line(line), err=True)
    print_safely(lambda console: terminal.print_run(result, console, statement, files, quiet=quiet, verbose=verbose))


def print_safely(write: Callable[[PlainConsole], None]) -> None:
    """Let ``write`` print. A reader that has gone (``| head``) changes nothing: the files are written already. Raises
    UsageError where stdout cannot be written to."""
    stream = sys.stdout
    console = PlainConsole(stream)
    try:
        write(console)
        stream.flush()
    except BrokenPipeError:
        console.on_broken_pipe()
    except OSError as error:
        forget(stream)
        raise UsageError(describe_stdout_error(error)) from error
