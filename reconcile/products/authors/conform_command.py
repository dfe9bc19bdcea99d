"""``reconcile counter conform``: the command that runs the conformance tests of a counter (conform.py) and prints each."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from ...cli.options import options
from ...cli.streams import say
from ...core.errors import EXIT_OK, EXIT_UNEXPLAINED


@click.command()
@click.argument("counter")
@click.option(
    "--case",
    "models",
    multiple=True,
    metavar="NAME",
    help="Run only this pair. Repeatable; default all families.",
)
@click.option("--pass", "passes", type=click.Choice(["forward", "training"]), multiple=True, help="Run only this pass.")
@options("environment", "environments", "with", "python", "quiet")
@click.pass_context
def conform(
    ctx: click.Context,
    counter: str,
    models: tuple[str, ...],
    passes: tuple[str, ...],
    environment: str,
    file: Path | None,
    with_: tuple[str, ...],
    python: str | None,
    quiet: bool,
) -> None:
    """Run the conformance tests on a counter.

    The cases are the zoo's families of layers, each at its own batch and at twice that, in a call and in a training step. A
    counter that counts none of them gets whole networks.

    A counter conforms if its entries add up to its total, if its statement closes with residual 0 under every convention, if a
    number added to an entry is the residual at that layer and changes nothing else, and if every amount follows from its
    evidence. A counter may say that it cannot count a case. If it counts nothing in the cases that you choose with --case or
    --pass, the last line says that they show nothing.

    Exit codes: 0 the counter conforms, or counts nothing in the cases that you chose, 1 it does not conform, 2 bad usage,
    4 a defect of reconcile itself.
    """
    from ...cli.environment import choose_environment
    from ...core.errors import check_names
    from ...core.registry import known_counters
    from ...launch.environments.definitions import CURRENT
    from ...launch.environments.runs import collect_in
    from ...launch.request import PASSES
    from ...model_zoo.loading import zoo_names
    from ...work import load
    from . import conform as kit

    check_names("counter", (counter,), known_counters())
    check_names("model", models, zoo_names())
    place = choose_environment(environment, file, with_, python)
    there = collect_in(place, lambda text: say(text, err=True))
    load()
    checks: list[kit.Check] = []
    cases = 0
    for names in (models,) if models else (kit.families(counter), kit.NETWORKS):
        if any(check.counted or check.problem for check in checks):
            break
        some = list(kit.cases(names, passes or PASSES))
        cases += len(some)
        each = kit.checks(
            counter, some, lambda request: there(request, lambda _event: None), elsewhere=place.name != CURRENT
        )
        for case, done in each:
            checks += done
            if not quiet:
                marks = "".join("F" if check.problem else "s" if check.skipped else "." for check in done)
                say(f"{case.title} {marks}")
    wrong = [check for check in checks if check.problem]
    skipped = Counter(check.skipped for check in checks if check.skipped)
    for check in wrong:
        say(f"FAILED {check.case}: {check.name}: {check.problem}")
    for sentence, times in skipped.items():
        say(f"SKIPPED [{times}] {sentence}")
    number = skipped.total()
    passed = len(checks) - len(wrong) - number
    say(f"{counter}: {passed} passed, {len(wrong)} failed, {number} skipped in {cases} cases")
    chosen = bool(models or passes)
    nothing = "" if wrong else kit.cannot(counter, checks, chosen)
    if nothing:
        say(nothing)
    ctx.exit(EXIT_UNEXPLAINED if wrong or (nothing and not chosen) else EXIT_OK)
