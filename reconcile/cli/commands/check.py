"""``reconcile check``: compare a new run with a baseline, or accept it as the new one; or compare two saved files."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from ...core.errors import EXIT_OK, EXIT_UNEXPLAINED, UsageError
from ...core.option import CHECK, Group
from ...core.registry import product_function, products
from ..options import BASELINES, PATH, options_taken_by, pass_of_a_pair
from ..streams import say

if TYPE_CHECKING:
    from ...drift.changes import Drift

FORMATS = ("text", *(name for product in products().values() for name, _ in product.check_formats))
"""What ``--format`` takes."""


@click.command()
@click.argument("older", type=PATH, metavar="[A.json]", required=False)
@click.argument("newer", type=PATH, metavar="[B.json]", required=False)
@options_taken_by(CHECK, Group.MODEL, Group.COUNT, pass_=pass_of_a_pair)
@click.option(
    "--baselines", type=PATH, default=BASELINES, show_default=True, metavar="DIR",
    help="Folder: DIR/MODEL/ENVIRONMENT.json.",
)  # fmt: skip
@options_taken_by(CHECK, Group.PLACE)
@click.option("--against", type=PATH, metavar="FILE", help="Compare with this baseline file.")
@click.option(
    "--total", type=click.FloatRange(min=0), metavar="PERCENT",
    help="Compare the totals alone, within this tolerance.",
)  # fmt: skip
@click.option("--update", is_flag=True, help="Save this run as the new baseline.")
@click.option(
    "--format", "formats", type=click.Choice(FORMATS), default="text", show_default=True,
    help="As text, or for a service: a comment on a pull request, or the totals.",
)  # fmt: skip
@options_taken_by(CHECK, Group.CONVENTION, Group.MANNER, Group.PRINT)
@click.pass_context
def check(
    ctx: click.Context,
    /,
    older: Path | None,
    newer: Path | None,
    baselines: Path,
    environment: str,
    file: Path | None,
    with_: tuple[str, ...],
    python: str | None,
    against: Path | None,
    total: float | None,
    update: bool,
    formats: str,
    quiet: bool,
    verbose: bool,
    **asked: Any,
) -> None:
    """Compare a run with a baseline, or two saved files.

    \b
    reconcile check --torch package.module:Net --input 1,3,224,224 --update
    reconcile check A.json B.json    two saved baselines or ledgers, A the older

    Every entry of every counter is compared with the baseline: same layer, same kind of op, same occurrence. The command prints
    what moved, at which layer, from which version to which, and why. New names alone are no change.

    Exit codes: 0 unchanged (or accepted), 1 moved, 2 bad usage, baseline or files, 3 a counter failed,
    4 a defect of reconcile itself.
    """
    from ...core.conventions import conventions_of
    from ...core.errors import UsageError
    from ...drift.baselines import baseline_path
    from ...drift.check import NoBaseline
    from ...drift.check import check as hold
    from ...drift.report import describe_check
    from ...launch import choose, user_models
    from ...launch.environments.definitions import CURRENT
    from ...launch.options import flags
    from ...launch.request import models_of, run_request
    from ..environment import choose_environment, collect_there
    from ..options import again
    from ..progress import progress

    if older and newer:
        compare(ctx, older, newer, asked, total=total, quiet=quiet, verbose=verbose)
    if older:
        raise UsageError(
            f"a second file is missing: reconcile check {older} B.json. A baseline to compare a run with goes to --against."
        )
    given = models_of(asked)
    if not given and asked["model"] is None:
        raise UsageError("name a model as in `reconcile run`, or give two saved files: A.json B.json.")
    choose.check_one_model(asked["model"], given, asked["overrides"], asked["inputs"], example=asked["args"])
    if against and update:
        raise UsageError("--update writes below --baselines; it does not go with --against.")
    if total is not None and (update or formats != "text"):
        raise UsageError(f"--total compares totals alone: leave {'--update' if update else '--format'} out.")
    request = run_request(**asked)
    chosen = choose_environment(environment, file, with_, python, given)
    name = request.model or user_models.name_of(request.factories)
    path = against or baseline_path(baselines, name, chosen.name, request.training)
    accept = again(ctx, flags(lambda option: option.baseline) | {"--baselines"}, "--update", bare=False)
    meant = CURRENT if against else chosen.name  # a file that is named is the one that is meant
    take, format_check = collect_there(chosen), product_function(formats, "check_formats")
    convention = conventions_of(request.convention, request.convention_files).chosen
    with progress(quiet=quiet, verbose=verbose) as tell:
        try:
            done = hold(request, path, remedy=accept, environment=meant, update=update, progress=tell, take=take)
        except NoBaseline:
            if format_check is not None and (text := format_check(name, None, convention, (), accept)[0]):
                say(text.rstrip("\n"))
            raise
    remedy = "" if against else accept
    if total is not None and done.drift is not None and not done.failed and not done.drift.failed:
        exit_on_totals(ctx, done.drift, done.path, total, remedy)
    if format_check is not None:
        remarks = describe_check(done, str(path), "", update=update, quiet=True)[1 if done.drift is not None else 0 :]
        with choose.formulas_of(request):
            text, lines = format_check(name, done, convention, remarks, remedy)
        say(text.rstrip("\n"))
        for line in lines:
            say(line, err=True, styled=True)  # a command, and what it holds is escaped
        ctx.exit(done.exit_code)
    for line in describe_check(done, str(done.path), remedy, update=update, quiet=quiet, verbose=verbose):
        say(line)
    ctx.exit(done.exit_code)


def exit_on_totals(ctx: click.Context, drift: Drift, path: Path, total: float, remedy: str = "") -> NoReturn:
    """Print whether the totals are those of the baseline at ``path``, within so many percent, else what moved, and exit."""
    from ...drift.report import describe_totals, details

    said, moved = describe_totals(drift, str(path), total)
    why = details(drift, verbose=True) if moved and ctx.params["verbose"] else []
    remedies = [f"accept it with: {remedy}"] if moved and remedy else []
    for line in (*(said[:1] if ctx.params["quiet"] else said), *why, *remedies):
        say(line)
    ctx.exit(EXIT_UNEXPLAINED if moved else EXIT_OK)


OPTIONS_OF_FILES = frozenset(("convention", "convention_files", "formulas", "quiet", "verbose"))
"""The parameters that say something about two files; all others are those of a run."""


def compare(
    ctx: click.Context,
    older: Path,
    newer: Path,
    asked: dict[str, Any],
    *,
    total: float | None,
    quiet: bool,
    verbose: bool,
) -> NoReturn:
    """``reconcile check A.json B.json``: compare the files, print what moved, and exit.

    Raises UsageError for files that do not compare.
    """
    from ...drift.check import compare_files
    from ...drift.report import details, verdict
    from ...launch.request import run_request

    _only(ctx, {*OPTIONS_OF_FILES, "older", "newer", "total"})
    drift = compare_files(
        older, newer, run_request(**{name: value for name, value in asked.items() if name in OPTIONS_OF_FILES})
    )
    if total is not None and not drift.failed:
        exit_on_totals(ctx, drift, older, total)
    say(verdict(drift, str(older)))
    if not quiet:
        for line in details(drift, verbose=verbose):
            say(line)
    ctx.exit(EXIT_UNEXPLAINED if drift.has_moved or drift.failed else EXIT_OK)


def _only(ctx: click.Context, allowed: Collection[str]) -> None:
    for parameter in ctx.command.params:
        name = parameter.name or ""
        if name not in allowed and ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            raise UsageError(f"{parameter.opts[0]} belongs to a run, and two saved files need none. Leave it out.")
