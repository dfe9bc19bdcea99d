"""``reconcile run --ranks``: the ranks of a world in place of one device."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ..core.errors import UsageError

if TYPE_CHECKING:
    from ..launch.request import RunRequest

MOST = 1 << 20
"""The most ranks of a world."""
WITHOUT = (
    "--environment", "--environments", "--with", "--python", "--timeout", "--from", "--to", "--mapping", "--write-mapping",
    "--ncu", "--witness",
)  # fmt: skip
"""Options of ``run`` that it does not read for ranks."""


class _Ranks(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A list of ranks, such as 0,7."""

    name = "ranks"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """See click.ParamType.convert."""
        words = [word.strip() for word in value.split(",")]
        if not all(word.isdecimal() and word.isascii() and len(word) < 8 for word in words):
            self.fail(f"{value!r} is no list of ranks, such as 0,7.", param, ctx)
        return tuple(dict.fromkeys(map(int, words)))


def ranks(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate ``run`` with the options of ranks."""
    for option in (
        click.option(
            "--against", metavar="MODULE:FUNCTION", help="Compare the ranks with this model on one device. With --ranks."
        ),
        click.option("--rank", "chosen", metavar="LIST", type=_Ranks(), help="Run only these ranks, such as 0,7. With --ranks."),
        click.option(
            "--ranks", "world", type=click.IntRange(1, MOST), metavar="N",
            help="Run your model as each rank of a world of N (docs/ranks.md).",
        ),
    ):  # fmt: skip
        function = option(function)
    return function


def only_with_ranks(world: int | None, **given: object) -> None:
    """Refuse options that say something of ranks where there are none. Raises UsageError."""
    wrong = next((name for name, value in given.items() if value and world is None), None)
    if wrong is not None:
        raise UsageError(f"--{wrong} is about the ranks of a world: give their number with --ranks N.")


def refuse(ctx: click.Context) -> None:
    """Refuse the options that say nothing of ranks, so that none is ignored. Raises UsageError."""
    for parameter in ctx.command.params:
        given = ctx.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
        if given and parameter.opts[0] in WITHOUT:
            raise UsageError(
                f"--ranks takes no {parameter.opts[0]}: the ranks run in this Python, without a time limit, and each counter is "
                "held against the work of its rank."
            )


def words(world: int, chosen: tuple[int, ...], against: str | None) -> list[str]:
    """The options as typed."""
    rank = ["--rank", ",".join(map(str, chosen))] if chosen else []
    return ["--ranks", str(world), *rank, *(["--against", against] if against else [])]


def run(
    request: RunRequest,
    world: int,
    chosen: tuple[int, ...],
    against: str,
    out: Path,
    formats: tuple[str, ...],
    command: str,
    *,
    quiet: bool,
    verbose: bool,
) -> int:
    """Run the ranks, write their reports and print them. Returns the exit code."""
    from ..core import atomic
    from ..launch.user_models import factory
    from ..ranks import ranked, report, screen
    from ..report import reports
    from .screen import printing

    atomic.prepare(out)
    result = ranked.run(request, world, chosen, factory("", against, "--against") if against else "")
    stem = reports.stem(result.folds[0].answer.model, training=bool(request.training))
    kept = atomic.write(out, stem, report.render(result, formats, command))
    shown = [path for path in kept if ".ranks." in path.name]
    printing(lambda console: screen.show(result, console, shown, quiet=quiet, verbose=verbose))
    return result.exit_code
