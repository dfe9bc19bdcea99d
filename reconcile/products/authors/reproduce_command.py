"""``reconcile counter reproduce``: the command that prints the shortest program that shows a counter's error (reproduce.py)."""

from __future__ import annotations

from pathlib import Path

import click

from ...cli.options import options
from ...cli.streams import say


@click.command()
@click.argument("counter")
@click.argument("case", required=False)
@options("environment", "environments", "with", "python", "quiet")
def reproduce(
    counter: str,
    case: str | None,
    environment: str,
    file: Path | None,
    with_: tuple[str, ...],
    python: str | None,
    quiet: bool,
) -> None:
    """Print the shortest program that shows a counter's error.

    CASE is a layer of the zoo's families, such as family_transposed:transposed2d_stride. The program needs the counter and its
    framework, not this tool: it makes the layer, runs the counter, and prints the reported and the expected number. A comment
    names the cause and the line of the counter's source, so that you can paste it into a report to the counter's authors.

    Without CASE, the command lists the layers at which the counter differs under the convention matmul, with the causes.

    Exit codes: 0 printed, 2 bad usage (also if the counter is exact there), 4 a defect of reconcile itself.
    """
    from ...cli.environment import choose_environment
    from ...core.errors import check_names
    from ...core.number_format import number
    from ...core.registry import known_counters
    from ...launch.environments.runs import collect_in
    from ...work import load
    from . import reproduce as cases
    from .conform import families

    check_names("counter", (counter,), known_counters())
    there = collect_in(choose_environment(environment, file, with_, python), lambda text: say(text, err=True))
    load()

    if case is not None:
        say(cases.program(counter, case, lambda request: there(request, lambda _event: None)), nl=False)
        return
    unit = known_counters()[counter].unit
    differing = 0
    for difference in cases.differences(counter, families(), lambda request: there(request, lambda _event: None)):
        if isinstance(difference, str):
            say(difference, err=True)
            continue
        differing += 1
        causes = ", ".join(f"{cause.value} {amount:+,}" for cause, amount in difference.causes.items())
        say(
            f"{difference.case}  {number(difference.reported)} {unit}, {number(difference.ran)} ran; to add in FLOPs: {causes}"
        )
    if not quiet:
        say(
            f"{counter} differs from the work that ran at {differing} layers. See one: reconcile counter reproduce {counter} CASE"
        )
