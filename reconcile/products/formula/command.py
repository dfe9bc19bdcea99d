"""``reconcile formula``, its command line: formula.py finds the counts of a model as polynomials of its sizes."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from ...cli.options import chosen_formats, declare_option, models, options
from ...cli.streams import say

FORMATS = ("json", "txt", "tex", "py")


@click.command()
@options(
    "model", models,
    declare_option("input", metavar="[NAME=]SHAPE[:DTYPE]",
             help="Input with names for its sizes: ids=B,T:int64."),
    declare_option("set", help="Set a parameter to a number or to a name."),
)  # fmt: skip
@click.option(
    "--at", "ranges", multiple=True, metavar="NAME=LO..HI[/STEP]",
    help="Values of a name: T=16..96, T=16,32,64,128. Repeatable.",
)  # fmt: skip
@options(
    "convention", "convention-file", "counter", "pass", "context", "optimizer",
    "environment", "environments", "with", "python", "out",
)  # fmt: skip
@options(
    declare_option("format", default=[",".join(FORMATS)], callback=partial(chosen_formats, allowed=FORMATS),
             help="Formats; py is a Python module."),
    "device", "timeout", "formulas", "quiet", "verbose",
)  # fmt: skip
@click.pass_context
def formula(
    ctx: click.Context,
    /,
    inputs: tuple[str, ...],
    overrides: dict[str, str],
    ranges: tuple[str, ...],
    environment: str,
    file: Path | None,
    with_: tuple[str, ...],
    python: str | None,
    out: Path,
    formats: tuple[str, ...],
    quiet: bool,
    verbose: bool,
    **asked: Any,
) -> None:
    """Find the counts of a model as polynomials of its sizes.

    \b
    reconcile formula --torch package.module:function \\
        --input ids=B,T:int64 --at B=1..3 --at T=16..96
    reconcile formula --model gru_demo --set frames=T --at T=10..40

    The model runs at these sizes, or at 256 of them. Interpolation gives exact polynomials of the work that ran, of every
    counter and every cause, which are checked at sizes that they were not fitted to (docs/formula.md).

    Exit codes: 0 every count is a polynomial, 1 some are not, or unexplained or incomplete, 2 bad usage or input,
    3 a counter failed, 4 a defect of reconcile itself.
    """
    from ...cli.environment import choose_environment
    from ...cli.progress import progress
    from ...cli.screen import print_safely
    from ...core import atomic
    from ...core.errors import UsageError
    from ...launch import choose
    from ...launch.environments.definitions import CURRENT
    from ...launch.environments.runs import collect_at_in
    from ...launch.request import models_of, run_request
    from ...report.document.terminal import show
    from . import report
    from .formula import formula as found
    from .run_points import in_workers
    from .variables import Template, read_variables

    choose.check_one_model(asked["model"], models_of(asked), overrides, inputs)
    request = run_request(**asked)
    if request.files:
        raise UsageError("a model file has the sizes that it was saved with: name a function that makes the model.")
    template = Template(read_variables(ranges), inputs, overrides)
    place = choose_environment(environment, file, with_, python, request.factories)
    there = collect_at_in(place, lambda text: say(text, err=True)) if place.name != CURRENT else None
    atomic.prepare(out)
    with progress(quiet=quiet, verbose=verbose) as tell:
        result = found(template, in_workers(request, tell, there))
    files = atomic.write(out, report.stem(result), report.render(result, formats))
    page = report.describe_formula(result, layers=verbose)
    print_safely(lambda console: show(page, console, () if quiet else files))
    ctx.exit(result.exit_code)
