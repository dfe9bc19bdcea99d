"""``reconcile upgrade``: the command that prints which layers' counts a new release of a package changes (run.py), and drafts
rules for a counter whose rules do not hold there."""

from __future__ import annotations

from typing import Any

import click

from ...cli.options import added_options, models, options
from ...cli.streams import say
from ...core.errors import EXIT_FAILED, EXIT_OK, EXIT_UNEXPLAINED
from ..scorecard.command import of_families


@click.command()
@click.argument("requirements", nargs=-1, required=True, metavar="REQUIREMENT...")
@click.option(
    "--since", "older", multiple=True, metavar="REQUIREMENT",
    help="Compare with this release, such as thop==0.0.31. Repeatable; default the installed one.",
)  # fmt: skip
@click.option("--python", metavar="X.Y", help="Python version of the new environments; default the running one.")
@click.option(
    "--pre", is_flag=True,
    help="Look at the newest release of each requirement that the index has, nightlies and release candidates among them.",
)  # fmt: skip
@options("model", models, "input", "args", *added_options("files"), "set", of_families, "counter", "verbose")
@click.pass_context
def upgrade(
    ctx: click.Context,
    /,
    requirements: tuple[str, ...],
    older: tuple[str, ...],
    python: str | None,
    pre: bool,
    families: tuple[str, ...],
    passes: tuple[str, ...],
    counters: tuple[str, ...],
    verbose: bool,
    **asked: Any,
) -> None:
    """Compare two releases layer by layer, before you upgrade.

    \b
    reconcile upgrade torch==2.12.0
    reconcile upgrade thop==0.1.1 --torch net:Net --input 1,1,32,32

    The layers of the zoo run, or your model in their place, under the installed release (or --since) and under the one that you
    name, which uv installs in its own environment. The command prints what changed, at which layer, and why; and a draft of new
    rules for a counter whose rules do not hold there.

    Exit codes: 0 nothing moved, 1 something moved, 2 bad usage, 3 a counter failed, 4 a defect of reconcile itself.
    """
    from ...core.causes import State
    from ...core.errors import UsageError, check_names
    from ...core.registry import known_counters
    from ...drift.report import details, verdict
    from ...launch import choose
    from ...launch.choose import checked_pair_path
    from ...launch.environments.definitions import CURRENT
    from ...launch.environments.interpreters import running_version
    from ...launch.environments.runs import collect_in, make_interpreter
    from ...launch.request import PASSES, models_of, run_request
    from ..authors.conform import families as all_families
    from ..authors.draft_rules import draft_of
    from . import run as upgrades
    from .newest import find_newest

    given = models_of(asked)
    own = any(asked.values())
    if own:
        if families:
            raise UsageError("--case names layers of the zoo, and your model takes their place: leave one of them out.")
        choose.check_one_model(asked["model"], given, asked["overrides"], asked["inputs"], example=asked["args"])
        if not given:
            checked_pair_path(asked["model"])
    wanted = run_request(counters=counters).counters if counters else ()
    check_names("counter", wanted, known_counters())
    check_names("family", families, all_families())
    if pre:
        requirements = tuple(find_newest(text, python or running_version()) for text in requirements)
    before, after, chosen = upgrades.sides(requirements, older, python or CURRENT, wanted, tuple(given))
    if pre and upgrades.is_there(before, requirements):
        say(f"nothing to compare: {', '.join(requirements)} is the newest release of the index, and what runs here")
        return
    for env in (before, after):
        try:
            make_interpreter(env, lambda text: say(text, err=True))
        except UsageError as error:
            if "does not satisfy Python" not in str(error):  # uv says so of the Python that it was given
                raise
            raise UsageError(f"{error}. Name such a Python of this machine: --python X.Y.") from error
    asked_for = wanted or upgrades.list_moved_counters(requirements)
    takes = [collect_in(env, lambda text: say(text, err=True)) for env in (before, after)]
    old, new = (lambda request, take=take: take(request, lambda _event: None) for take in takes)
    moved, failed, broken = 0, 0, dict[str, None]()
    if own:
        requests = [run_request(**asked, pass_=pass_, counters=chosen) for pass_ in passes or PASSES[:1]]
    else:
        requests = [*upgrades.of_families(families or all_families(), passes or PASSES, chosen)]
    for done in upgrades.compare_models(requests, old, new):
        step = f"{done.model}, {done.pass_}"
        if done.drift is None:
            failed += 1
            say(f"{step}: nothing to compare: {done.failed}")
            continue
        stopped = [missing for missing in done.drift.failed if missing.state is State.NOT_COMPARABLE]
        moved += done.drift.has_moved or bool(stopped)
        failed += len(stopped) < len(done.drift.failed)
        for missing in done.absent:
            failed += missing.state is not State.SKIPPED or missing.name in asked_for
            say(f"{step}: {missing.name} has nothing to compare with: {missing.reason}")
        broken |= dict.fromkeys(done.broken)
        if not (done.drift.counters or done.drift.traces or done.drift.failed):
            continue
        say(f"{done.pass_}: {verdict(done.drift, before.title)}")
        for line in details(done.drift, verbose=verbose):
            say(f"  {line}".rstrip())
    for name in broken:
        say(f"The rules of {name} do not hold at {after.title}. A draft of those that would:")
        try:
            say(draft_of(name, families or all_families(name), new), nl=False)
        except UsageError as error:
            say(str(error))
    say(f"{moved} of {len(requests)} moved from {before.title} to {after.title}")
    ctx.exit(EXIT_FAILED if failed else EXIT_UNEXPLAINED if moved else EXIT_OK)
