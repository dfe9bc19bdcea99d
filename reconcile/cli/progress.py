"""Progress on stderr: of a run, while frameworks load and counters run, and of many models, as a bar."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..core.escaping import escape_line
from ..core.registry import title
from .streams import say

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

    from ..launch.workers.supervisor import Event

CLEAN = "reconciled"
"""How the verdict begins on a model whose counters are all reconciled."""


def can_redraw() -> bool:
    """Whether stderr is a terminal on which lines can be drawn again; a dumb one gets lines, as a file does."""
    return sys.stderr.isatty() and os.environ.get("TERM", "") not in ("dumb", "unknown")


@contextmanager
def progress(*, quiet: bool, verbose: bool) -> Iterator[Callable[[Event], None]]:
    """What to call with each event: on a terminal a live line per framework (on a dumb one a line for what matters), else
    nothing, or with --verbose a line each."""
    if quiet:
        yield lambda event: None
    elif can_redraw():
        with _live(verbose) as tell:
            yield tell
    else:
        shown = (
            ("confined", "loading", "started", "done", "failed")
            if verbose
            else ("loading", "failed")
            if sys.stderr.isatty()
            else ()
        )
        yield lambda event: say(sentence(event), err=True) if event.phase in shown else None


def sentence(event: Event) -> str:
    """An event as a line: ``TensorFlow: tf.profiler@frozen started``."""
    name = title(event.framework)
    if event.phase == "loading":
        return f"{name}: loading"
    if event.phase == "confined":
        return f"{name}: a process of its own loads the file; {event.task}"
    return f"{name}: {event.task} {event.phase}"


@dataclass(slots=True)
class _Line:
    """The live line of one framework: its running tasks, and how many are done."""

    name: str
    task: Any
    running: dict[str, None] = field(default_factory=dict)
    done: int = 0
    loading: bool = True

    def text(self) -> str:
        counted = f"{self.done} done" if self.done else ""
        doing = ", ".join(self.running) or ("loading" if self.loading else "")
        return escape_line(f"{self.name:<10}  " + ("; ".join(part for part in (doing, counted) if part) or "waiting"))


def _make_progress(*columns: ProgressColumn) -> Progress:
    """Lines on stderr that are drawn again: these columns, the time, and a description that is cut to the width."""
    from rich.progress import Progress, TextColumn, TimeElapsedColumn
    from rich.table import Column

    from .screen import PlainConsole

    description = Column(no_wrap=True, overflow="ellipsis", ratio=1)
    return Progress(
        *columns,
        TimeElapsedColumn(table_column=Column(min_width=7)),
        TextColumn("{task.description}", markup=False, table_column=description),
        console=PlainConsole(stderr=True),
        transient=True,
        expand=True,
    )


@contextmanager
def _live(verbose: bool) -> Iterator[Callable[[Event], None]]:
    from rich.progress import SpinnerColumn
    from rich.table import Column
    from rich.text import Text

    with _make_progress(SpinnerColumn(table_column=Column(min_width=1))) as bar:
        lines: dict[str, _Line] = {}

        def tell(event: Event) -> None:
            if event.framework not in lines:
                for line in lines.values():  # those that have nothing left to do make room
                    bar.update(line.task, visible=bool(line.running) or line.loading)
                name = title(event.framework)
                lines[event.framework] = _Line(name, bar.add_task(escape_line(f"{name:<10}  loading"), total=None))
            line = lines[event.framework]
            if event.phase in ("done", "failed"):
                line.running.pop(event.task, None)
                line.done += event.phase == "done"
            elif event.phase == "started":
                line.running[event.task] = None
            if event.phase == "failed" or (verbose and event.phase in ("done", "confined")):
                bar.console.print(Text(sentence(event)))
            line.loading = event.phase in ("confined", "loading")
            bar.update(line.task, description=line.text(), visible=True)

        yield tell


@contextmanager
def bar(total: int, quiet: bool) -> Iterator[tuple[Callable[[str], None], Callable[[str, str], None]]]:
    """Two functions to call: with a model that starts, and with one that is done and its verdict. On a terminal they show a bar
    that names what is running, elsewhere a line per model; with ``quiet``, a line per model that is not reconciled."""
    if quiet or not can_redraw():

        def line(model: str, verdict: str) -> None:
            if not (quiet and verdict.startswith(CLEAN)):
                say(f"{model}: {verdict}", err=True)

        yield lambda model: None, line
        return

    from rich.progress import BarColumn, MofNCompleteColumn
    from rich.table import Column
    from rich.text import Text

    columns = (
        BarColumn(bar_width=20, table_column=Column(min_width=20)),
        MofNCompleteColumn(table_column=Column(min_width=len(f"{total}/{total}"))),
    )
    with _make_progress(*columns) as shown:
        task = shown.add_task("", total=total)
        running: dict[str, None] = {}

        def start_model(model: str) -> None:
            running[model] = None
            shown.update(task, description=escape_line(", ".join(running)))

        def finish_model(model: str, verdict: str) -> None:
            running.pop(model, None)
            shown.console.print(Text(f"{model}: {verdict}", style="" if verdict.startswith(CLEAN) else "yellow"))
            shown.update(task, advance=1, description=escape_line(", ".join(running)))

        yield start_model, finish_model
