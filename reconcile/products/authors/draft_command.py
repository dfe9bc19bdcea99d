"""``reconcile counter draft``: the command that prints draft rules for a counter that has none (draft_rules.py)."""

from __future__ import annotations

from pathlib import Path

import click

from ...cli.options import options
from ...cli.streams import say


@click.command("draft")
@click.argument("counter")
@click.option(
    "--case",
    "models",
    multiple=True,
    metavar="NAME",
    help="Read only the layers of this pair. Repeatable; default all families.",
)
@options("environment", "environments", "with", "python")
def draft_rules(
    counter: str,
    models: tuple[str, ...],
    environment: str,
    file: Path | None,
    with_: tuple[str, ...],
    python: str | None,
) -> None:
    """Draft the rules of a counter that has none.

    The counter needs only its capture. The tool fits sums of the components of work (mac, add, mul, ...), biases and sizes of
    tensors to the counter's numbers, class by class of the layers of the zoo's families. The arithmetic is exact, and one case
    is held out to confirm the others. The draft says how many readings fit, and how many cases support them.

    A draft explains nothing: a run refuses its rules until you have read the counter's source and cite it.

    Exit codes: 0 printed, 2 bad usage, or no reading fits, 4 a defect of reconcile itself.
    """
    from ...cli.environment import choose_environment
    from ...core.errors import check_names
    from ...core.registry import known_counters
    from ...launch.environments.runs import collect_in
    from ...model_zoo.loading import zoo_names
    from . import draft_rules as drafts
    from .conform import families

    check_names("counter", (counter,), known_counters())
    check_names("model", models, zoo_names())
    there = collect_in(choose_environment(environment, file, with_, python), lambda text: say(text, err=True))
    text = drafts.draft_of(counter, models or families(), lambda request: there(request, lambda _event: None))
    say(text, nl=False)
