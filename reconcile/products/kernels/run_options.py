"""The options --witness (run) and --ncu (run, watch): checks of the trace by logs of CPU libraries, and by Nsight Compute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...cli.run_options import RunCall, RunOptions
from ...core.errors import UsageError

if TYPE_CHECKING:
    from ...engine.answer import Answer
    from ...launch.request import RunRequest
    from .ncu import Counted

NO_OPERATOR_AROUND_KERNELS = (
    "no operator of this run is around the kernels of --ncu: give the model that you recorded, and its --pass or "
    "--steps."
)


WRITES_NO_LOG = "{} writes no log of its products on a CPU; --witness takes models of {} (docs/witness.md)."


def file(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of a command: adds --ncu, which takes a file of Nsight Compute."""
    text = "What ncu counted on a GPU (docs/kernels.md)."
    return click.option("--ncu", type=click.Path(path_type=Path), metavar="FILE.csv", help=text)(function)


def add_witnesses(request: RunRequest) -> RunRequest:
    """The request with the counters that bear witness beside those that it has. Raises UsageError as a run does."""
    from ...core.registry import choose_leading, known_counters, title
    from ...launch.choose import choose_counters

    every = {name: known_counters()[name].framework for name in choose_leading("witness")}
    able = [name for name, framework in every.items() if framework in request.factories or not request.factories]
    if not able:
        raise UsageError(
            WRITES_NO_LOG.format(" and ".join(map(title, request.factories)), " and ".join(map(title, every.values())))
        )
    return replace(request, counters=tuple(dict.fromkeys([*choose_counters(request), *able])))


class KernelOptions(RunOptions):
    """``--witness`` and ``--ncu``: the trace beside what a CPU's libraries log, and beside what Nsight Compute counts."""

    options = (
        file,
        click.option(
            "--witness",
            is_flag=True,
            help="Read the log of a CPU, too (docs/witness.md).",
        ),
    )
    watch_options = (file,)

    def prepare(self, call: RunCall) -> RunCall:
        """See RunOptions. Reads the file before anything runs, and adds the counters that bear witness."""
        ncu, witness = call.given["ncu"], call.given.get("witness")
        counted: tuple[Counted, ...] = ()
        if ncu is not None:
            from .ncu import read_launches

            counted = read_launches(ncu)
        request = add_witnesses(call.request) if witness else call.request
        return replace(call, request=request, given={**call.given, "counted": counted})

    def repeat_options(self, call: RunCall) -> list[str]:
        """See RunOptions. The file of ``--ncu`` changes no report of the run itself."""
        return ["--witness"] if call.given.get("witness") else []

    def follow(self, call: RunCall, answer: Answer, stem: str) -> int:
        """See RunOptions. Compare the kernels with the trace, write the reports and print them. Raises UsageError."""
        counted: tuple[Counted, ...] = call.given["counted"]
        if not counted:
            return 0
        from ...cli.options import again
        from ...cli.screen import print_safely
        from ...cli.streams import say
        from ...core import atomic
        from ...report.document.terminal import show
        from . import report
        from .witness import witness

        operators = {each.op for one in counted for each in one.launch.ranges}
        trace = next((trace for trace in answer.traces if operators & {row.op for row in trace.rows}), None)
        if trace is None:
            raise UsageError(NO_OPERATOR_AROUND_KERNELS)
        if not trace.complete:
            say(f"The kernels of --ncu are not compared: {trace.name} is incomplete.", err=True)
            return answer.exit_code
        found = witness(trace, counted)
        command = again(call.ctx, (), *call.words, "--ncu", call.given["ncu"].name, *call.program)
        kept = atomic.write(call.out, stem, report.render(found, call.formats, answer.model, command))
        page = report.describe_kernels(found, answer.model, verbose=call.verbose)
        print_safely(lambda console: show(page, console, kept, quiet=call.quiet))
        return found.exit_code


KERNELS = KernelOptions()
