"""The commands for authors: ``zoo new``, and ``counter`` with its ``new``, ``conform``, ``draft`` and ``reproduce``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...cli.options import PATH, options
from ...cli.streams import say
from ...core.errors import EXIT_OK, EXIT_UNEXPLAINED

if TYPE_CHECKING:
    from ...engine.settle import Collected
    from ...launch.request import RunRequest

COUNTER = {
    "pyproject.toml": "pyproject",
    "reconcile_THE_COUNTER/__init__.py": "init",
    "reconcile_THE_COUNTER/capture.py": "capture",
    "reconcile_THE_COUNTER/rules.py": "rules",
    "reconcile_THE_COUNTER/bridge.py": "bridge",
}
"""Files of a counter's package, each with the template that it is made from."""


@click.command("new")
@click.argument("folder", type=PATH, metavar="NAME")
def new_counter(folder: Path) -> None:
    """Write the package of a counter to start from.

    The folder ./reconcile-NAME gets the package reconcile_NAME, so that neither hides the library that you wrap. Install it with
    `pip install -e ./reconcile-NAME`, run the counter with `reconcile run --model gru_demo --counter NAME`, and test it with
    `reconcile counter conform NAME`.
    """
    from ...core import atomic
    from ...core.errors import UsageError
    from ...core.registry import known_counters

    name = folder.name
    if not name.isidentifier():
        raise UsageError(f"{name!r} cannot name a Python package. Use letters, digits and _.")
    if name in known_counters():
        raise UsageError(f"a counter named {name} is already registered. Choose another name.")
    folder = folder.parent / f"reconcile-{name}"
    if folder.exists() or folder.is_symlink():
        raise UsageError(f"{folder} already exists. Choose another name.")
    for path, template in COUNTER.items():
        target = folder / path.replace("THE_COUNTER", name)
        target.parent.mkdir(parents=True, exist_ok=True)
        atomic.write_file(target, _fill_template(f"counter/{template}", "THE_COUNTER", name), new=True)
    say(f"wrote {folder}. Install it with: pip install -e {folder if folder.is_absolute() else f'./{folder}'}")
    say(f"Then run it with: reconcile run --model gru_demo --counter {name}")


def _fill_template(template: str, word: str, name: str) -> str:
    path = Path(__file__).parent / "templates" / f"{template}.txt"
    return path.read_text(encoding="utf-8").replace(word, name)


@click.command("new")
@click.argument("file", type=PATH, metavar="NAME")
def new_pair(file: Path) -> None:
    """Write a pair file to start from.

    NAME becomes ./NAME.py: a small model in both frameworks, with every declaration that a pair can make. Replace the models
    with your own, step by step. One model in one framework needs no file: see `reconcile run --torch`.
    """
    from ...core import atomic
    from ...core.errors import UsageError

    target = file if file.suffix == ".py" else file.parent / f"{file.name}.py"
    if not target.stem.isidentifier():
        raise UsageError(f"{target.stem!r} cannot name a Python module. Use letters, digits and _.")
    try:
        atomic.write_file(target, _fill_template("pair", "THE_PAIR", target.stem), new=True)
    except FileExistsError:
        raise UsageError(f"{target} already exists. Choose another name.") from None
    say(f"wrote {target}. Run it with: reconcile run --model {target if target.is_absolute() else f'./{target}'}")


def _run_where_asked(
    counter: str,
    models: Sequence[str] = (),
    *,
    environment: str,
    file: Path | None,
    with_: tuple[str, ...],
    python: str | None,
) -> tuple[Callable[[RunRequest], Collected], str]:
    """What runs a request in the environment that the options name, and the name of that. Raises UsageError for a counter or a
    model that is not there."""
    from ...cli.environment import choose_environment
    from ...core.errors import check_names
    from ...core.registry import known_counters
    from ...launch.environments.runs import collect_in
    from ...model_zoo.loading import zoo_names
    from ...work import load

    check_names("counter", (counter,), known_counters())
    check_names("model", models, zoo_names())
    place = choose_environment(environment, file, with_, python)
    there = collect_in(place, lambda text: say(text, err=True))
    load()
    return lambda request: there(request, lambda _event: None), place.name


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
    /,
    counter: str,
    models: tuple[str, ...],
    passes: tuple[str, ...],
    quiet: bool,
    **where: Any,
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
    from ...core.number_format import format_count
    from ...launch.environments.definitions import CURRENT
    from ...launch.request import PASSES
    from . import conform as kit

    take, place = _run_where_asked(counter, models, **where)
    checks: list[kit.Check] = []
    cases = 0
    for names in (models,) if models else (kit.families(counter), kit.NETWORKS):
        if any(check.counted or check.problem for check in checks):
            break
        some = list(kit.cases(names, passes or PASSES))
        cases += len(some)
        for case, done in kit.checks(counter, some, take, elsewhere=place != CURRENT):
            checks += done
            if not quiet:
                marks = "".join("F" if check.problem else "s" if check.skipped else "." for check in done)
                say(f"{case.title} {marks}")
    wrong = [check for check in checks if check.problem]
    skipped = Counter(check.skipped for check in checks if check.skipped)
    failed: dict[str, dict[str, list[str]]] = {}
    for check in wrong:
        failed.setdefault(check.problem, {}).setdefault(check.case, []).append(check.name)
    for problem, where in failed.items():
        say(f"FAILED [{sum(map(len, where.values()))}] {problem}")
        for title, broken in where.items():
            say(f"  {title}: {', '.join(broken)}")
    for sentence, times in skipped.items():
        say(f"SKIPPED [{times}] {sentence}")
    number = skipped.total()
    passed = len(checks) - len(wrong) - number
    say(f"{counter}: {passed} passed, {len(wrong)} failed, {number} skipped in {format_count(cases, 'case')}")
    chosen = bool(models or passes)
    nothing = "" if wrong else kit.explain_nothing_counted(counter, checks, chosen)
    if nothing:
        say(nothing)
    ctx.exit(EXIT_UNEXPLAINED if wrong or (nothing and not chosen) else EXIT_OK)


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
def draft_rules(counter: str, models: tuple[str, ...], **where: Any) -> None:
    """Draft the rules of a counter that has none.

    The counter needs only its capture. The tool fits sums of the components of work (mac, add, mul, ...), biases and sizes of
    tensors to the counter's numbers, class by class of the layers of the zoo's families. The arithmetic is exact, and one case
    is held out to confirm the others. The draft says how many readings fit, and how many cases support them.

    A draft explains nothing: a run refuses its rules until you have read the counter's source and cite it.

    Exit codes: 0 printed, 2 bad usage, or no reading fits, 4 a defect of reconcile itself.
    """
    from . import draft_rules as drafts
    from .conform import families

    take, _ = _run_where_asked(counter, models, **where)
    say(drafts.draft_of(counter, models or families(), take), nl=False)


@click.command()
@click.argument("counter")
@click.argument("case", required=False)
@options("environment", "environments", "with", "python", "quiet")
def reproduce(counter: str, case: str | None, quiet: bool, **where: Any) -> None:
    """Print the shortest program that shows a counter's error.

    CASE is a layer of the zoo's families, such as family_transposed:transposed2d_stride. The program needs the counter and its
    framework, not this tool: it makes the layer, runs the counter, and prints the reported and the expected number. A comment
    names the cause and the line of the counter's source, so that you can paste it into a report to the counter's authors.

    Without CASE, the command lists the layers at which the counter differs under the convention matmul, with the causes.

    Exit codes: 0 printed, 2 bad usage (also if the counter is exact there), 4 a defect of reconcile itself.
    """
    from ...core.number_format import format_count, number
    from ...core.registry import known_counters
    from . import reproduce as cases
    from .conform import families

    take, _ = _run_where_asked(counter, **where)
    if case is not None:
        say(cases.program(counter, case, take), nl=False)
        return
    unit = known_counters()[counter].unit
    differing = 0
    for difference in cases.differences(counter, families(), take):
        if isinstance(difference, str):
            say(difference, err=True)
            continue
        differing += 1
        causes = ", ".join(f"{cause.value} {amount:+,}" for cause, amount in difference.causes.items())
        say(
            f"{difference.case}  {number(difference.reported)} {unit}, {number(difference.ran)} ran; to add in FLOPs: {causes}"
        )
    if not quiet:
        layers = format_count(differing, "layer")
        say(
            f"{counter} differs from the work that ran at {layers}. See one: reconcile counter reproduce {counter} CASE"
        )
