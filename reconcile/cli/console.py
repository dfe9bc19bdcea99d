"""rich's console as this tool uses it: what it shows is text, never markup, and control characters in it are escaped.

What is laid out in columns is escaped before that (text.clean), so that it is as wide as it looks; this is the last door, where
nothing that was forgotten gets through.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from ..core.escapes import plain
from .streams import forget


class PlainConsole(Console):
    """A console on which names do nothing: neither ``[red]`` nor an escape sequence."""

    def __init__(self, file: TextIO | None = None, *, stderr: bool = False) -> None:
        super().__init__(file=file, stderr=stderr, markup=False, emoji=False, highlight=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """See Console.render; rich's own control codes, with which it draws lines again, pass."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(plain(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        """Send what is left nowhere, so that the run's own exit code stands."""
        self.quiet = True
        forget(self.file)  # type: ignore[arg-type]
