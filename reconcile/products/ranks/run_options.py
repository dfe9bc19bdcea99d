"""The options --ranks, --rank and --against of "reconcile run", and the run that they start: the model as each rank of a
distributed world, in place of one device.
"""

from __future__ import annotations

from typing import Any

import click
from click.core import ParameterSource

from ...cli.run_options import RUN, RunCall, RunOptions
from ...core.errors import UsageError
from . import LARGEST_WORLD

WITHOUT = (
    "--environment", "--environments", "--with", "--python", "--timeout", "--from", "--to", "--mapping", "--write-mapping",
)  # fmt: skip
"""Options of ``run`` that it does not read for ranks, beside those of other products."""


class _Ranks(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A list of ranks, such as 0,7."""

    name = "ranks"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """See click.ParamType.convert."""
        words = [word.strip() for word in value.split(",")]
        if not all(word.isdecimal() and word.isascii() and len(word) < 8 for word in words):
            self.fail(f"{value!r} is no list of ranks, such as 0,7.", param, ctx)
        return tuple(dict.fromkeys(map(int, words)))


class RankOptions(RunOptions):
    """``--ranks``, ``--rank`` and ``--against``: the ranks of a world in place of one device."""

    options = (
        click.option(
            "--ranks", "world", type=click.IntRange(1, LARGEST_WORLD), metavar="N",
            help="Run each rank of a world of N (docs/ranks.md).",
        ),
        click.option("--rank", "chosen", metavar="LIST", type=_Ranks(), help="Run only these ranks, such as 0,7."),
        click.option(
            "--against", metavar="MODULE:FUNCTION", help="Model on one device, to compare ranks with."
        ),
    )  # fmt: skip

    def prepare(self, call: RunCall) -> RunCall:
        """See RunOptions. Refuses --rank and --against without --ranks, and with it the options that do not apply to ranks."""
        world = call.given["world"]
        if world is None:
            for flag, parameter in (("--rank", "chosen"), ("--against", "against")):
                if call.given[parameter]:
                    raise UsageError(f"{flag} is about the ranks of a world: give their number with --ranks N.")
        else:
            self._refuse_others(call.ctx)
        return call

    def _refuse_others(self, ctx: click.Context) -> None:
        """Refuse the options that do not apply to ranks, so that none is ignored. Raises UsageError."""
        others = {p.opts[0] for each, parameters in RUN.products if each is not self for p in parameters}
        for parameter in ctx.command.params:
            given = ctx.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
            if given and parameter.opts[0] in others.union(WITHOUT):
                raise UsageError(
                    f"--ranks takes no {parameter.opts[0]}: the ranks run in this Python, without a time limit, and each counter "
                    "is held against the work of its rank."
                )

    def run_instead(self, call: RunCall) -> int | None:
        """See RunOptions. Run the ranks, write their reports and print them."""
        world, chosen, against = (call.given[name] for name in ("world", "chosen", "against"))
        if world is None:
            return None
        from ...cli.options import again
        from ...cli.screen import print_safely
        from ...core import atomic
        from ...launch.user_models import factory
        from ...report import reports
        from ...report.document.terminal import show
        from . import ranked, report

        atomic.prepare(call.out)
        one = factory("", against, "--against") if against else ""
        result = ranked.run_ranks(call.request, world, chosen or (), one)
        stem = reports.stem(result.folds[0].answer.model, training=bool(call.request.training))
        command = again(call.ctx, (), *words(world, chosen or (), against))
        kept = atomic.write(call.out, stem, report.render(result, call.formats, command))
        shown = [path for path in kept if ".ranks." in path.name]
        page = report.describe_ranks(result, verbose=call.verbose)
        print_safely(lambda console: show(page, console, shown, quiet=call.quiet))
        return result.exit_code


def words(world: int, chosen: tuple[int, ...], against: str | None) -> list[str]:
    """The words of a command line that ask for these ranks."""
    rank = ["--rank", ",".join(map(str, chosen))] if chosen else []
    return ["--ranks", str(world), *rank, *(["--against", against] if against else [])]


RANKS = RankOptions()
