"""``reconcile matrix``: run one model in several environments, and explain how each counter differs from one to the next."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...core.option import MATRIX, Group
from ...core.registry import title
from ..options import options_taken_by
from ..streams import say

if TYPE_CHECKING:
    from ...launch.environments.definitions import Environment
    from ...launch.workers.supervisor import Event


@click.command()
@options_taken_by(
    MATRIX, Group.MODEL, Group.PLACE,
    environment=click.option(
        "--environment", "names", multiple=True, metavar="NAME",
        help="Run only these, in the given order. Repeatable.",
    ),
    with_=click.option(
        "--with", "with_", multiple=True, metavar="REQUIREMENT",
        help="Add one with this package. Repeatable.",
    ),
)  # fmt: skip
@options_taken_by(MATRIX, Group.CONVENTION, Group.OUTPUT, Group.MANNER, Group.PRINT)
@click.pass_context
def matrix(
    ctx: click.Context,
    /,
    names: tuple[str, ...],
    file: Path | None,
    with_: tuple[str, ...],
    python: str | None,
    out: Path,
    formats: tuple[str, ...],
    quiet: bool,
    verbose: bool,
    **asked: Any,
) -> None:
    """Run a model in several environments and compare them.

    \b
    reconcile matrix --model gru_demo
    reconcile matrix --torch net:Net --input 1,3,8,8 --with torch==2.8.0

    Each environment is made once and kept. If one cannot be made, the others still report. Every counter is compared with the
    work that ran, and with the same family's counter in the environment before. The old counters see no training step.

    Exit codes: 0 reconciled, 1 unexplained or incomplete, 2 bad usage or input, 3 an environment or a counter failed,
    4 a defect of reconcile itself.
    """
    from ...core import atomic
    from ...core.conventions import conventions_of
    from ...launch import choose
    from ...launch.request import models_of, run_request
    from ...matrix import report
    from ...matrix.run import run_matrix
    from ...report.document.terminal import show
    from ..options import again
    from ..progress import progress
    from ..screen import print_safely

    given = models_of(asked)
    choose.check_one_model(asked["model"], given, asked["overrides"], asked["inputs"], example=asked["args"])
    chosen = environments(names, file, with_, python, given)
    request = run_request(**asked)
    if not given:
        choose.checked_pair_path(request.model)  # before minutes go into environments
    conventions_of(request.convention, request.convention_files)
    atomic.prepare(out)

    def say_slow(message: str) -> None:  # making an environment takes minutes, so it is told even without progress
        if not quiet:
            say(message, err=True)

    with progress(quiet=quiet, verbose=verbose) as tell:
        result = run_matrix(request, chosen, name_environment(tell), say_slow)
    texts = report.render(result, formats, again(ctx))
    files = atomic.write(out, report.STEM.format(result.model), texts)
    page = report.describe_matrix(result, verbose=verbose)
    print_safely(lambda console: show(page, console, files, quiet=quiet))
    ctx.exit(result.exit_code)


def environments(
    names: tuple[str, ...],
    file: Path | None,
    with_: tuple[str, ...],
    python: str | None,
    frameworks: Collection[str] = (),
) -> list[Environment]:
    """The environments to run: those named or, if none is, those that run unasked and have one of the ``frameworks``; the one
    that --with makes comes last. Raises UsageError for an unknown name, and for one that is taken."""
    from ...core.errors import UsageError, check_names
    from ...launch.environments.definitions import load
    from ..environment import describe_environment

    there = load(file)
    check_names("environment", names, there)
    found = [there[name] for name in dict.fromkeys(names)] if names else [env for env in there.values() if env.unasked]
    if not names and frameworks:
        found = [env for env in found if set(frameworks) & set(env.frameworks)]
    if with_ or python:
        extra = describe_environment(with_, python, frameworks)
        if any(env.name == extra.name for env in found):
            raise UsageError(f"--with or --python: an environment of the file is named {extra.name} already.")
        found.append(extra)
    return found


def name_environment(tell: Callable[[Event], None]) -> Callable[[str, Event], None]:
    """Make a progress callback that names the environment of each event: ``tf-1.12, TensorFlow``."""

    def tell_event(name: str, event: Event) -> None:
        tell(replace(event, framework=f"{name}, {title(event.framework)}"))

    return tell_event
