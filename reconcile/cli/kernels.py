"""``reconcile run --witness``, the log of a CPU's math libraries, and ``--ncu``, what Nsight Compute counted on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..core.errors import UsageError

if TYPE_CHECKING:
    from ..engine.answer import Answer
    from ..kernels.ncu import Counted
    from ..launch.request import RunRequest

STRANGE = "no operator of this run is around the kernels of --ncu: give the model that you recorded, and its --pass or --steps."


UNHEARD = "{} writes no log of its products on a CPU; --witness takes models of {} (docs/witness.md)."


def option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate ``run`` with its witnesses: the log of a CPU's math libraries, and the file of Nsight Compute."""
    function = click.option(
        "--witness", is_flag=True, help="Hold the trace to the log of the CPU's math libraries, too (docs/witness.md)."
    )(function)
    return file(function)


def file(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a command with the file of Nsight Compute alone."""
    text = "What ncu counted on a GPU in your own run: compare its kernels with the trace (docs/kernels.md)."
    return click.option("--ncu", type=click.Path(path_type=Path), metavar="FILE.csv", help=text)(function)


def witnessed(request: RunRequest) -> RunRequest:
    """The request with the counters that bear witness beside those that it has. Raises UsageError as a run does."""
    from ..core.registry import known_counters, leading, title
    from ..launch.choose import choose_counters

    every = {name: known_counters()[name].framework for name in leading("witness")}
    able = [name for name, framework in every.items() if framework in request.factories or not request.factories]
    if not able:
        raise UsageError(
            UNHEARD.format(" and ".join(map(title, request.factories)), " and ".join(map(title, every.values())))
        )
    return replace(request, counters=tuple(dict.fromkeys([*choose_counters(request), *able])))


def read(path: Path) -> tuple[Counted, ...]:
    """The launches of the file, before anything runs. Raises UsageError."""
    from ..kernels import ncu

    return ncu.read(path)


def compare(
    answer: Answer,
    counted: tuple[Counted, ...],
    out: Path,
    stem: str,
    command: str,
    formats: tuple[str, ...],
    *,
    quiet: bool,
    verbose: bool,
) -> int:
    """Compare the kernels with the trace, write the reports and print them. Returns the exit code. Raises UsageError."""
    from ..core import atomic
    from ..kernels import report
    from ..kernels.witness import witness
    from .screen import printing
    from .streams import say

    operators = {each.op for one in counted for each in one.launch.ranges}
    trace = next((trace for trace in answer.traces if operators & {row.op for row in trace.rows}), None)
    if trace is None:
        raise UsageError(STRANGE)
    if not trace.complete:
        say(f"The kernels of --ncu are not compared: {trace.name} is incomplete.", err=True)
        return answer.exit_code
    found = witness(trace, counted)
    kept = atomic.write(out, stem, report.render(found, formats, answer.model, command))
    printing(lambda console: report.show(found, console, kept, quiet=quiet, verbose=verbose))
    return found.exit_code
