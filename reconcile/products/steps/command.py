"""``reconcile watch``: the command that runs a training script unchanged and counts a step of it, several, or a call."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from ...cli.options import TEXT, declare_option, options, pictures
from ...cli.run_options import WATCH, RunCall
from ...cli.streams import say

STEPS = "N[-M]"


def _steps(_ctx: click.Context, _param: click.Parameter, value: str) -> tuple[int, int]:
    """``2`` or ``2-4`` as the first and the last step. Raises BadParameter."""
    first, dash, last = value.partition("-")
    if not first.isdecimal() or (dash and not last.isdecimal()) or not 1 <= int(first) <= int(last or first):
        raise click.BadParameter(f"{value!r} is no step from 1 on, such as 2, and no range of steps, such as 2-4.")
    return int(first), int(last or first)


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--steps", default="1", show_default=True, metavar=STEPS, callback=_steps, help="Step to count, from 1.")
@click.option("--calls", type=click.IntRange(min=1), metavar="N", help="Count the N-th call of a model, not a step.")
@click.option("--continue", "go_on", is_flag=True, help="Let the script run to its end.")
@click.option("-m", "module", is_flag=True, help="SCRIPT is a module, as after python -m.")
@click.option("--device", type=TEXT, metavar="NAME", help="Device whose peak MFU divides by: 'H100 SXM'.")
@click.option("--dtype", type=TEXT, default="bf16", show_default=True, metavar="DTYPE", help="Dtype of its peak.")
@click.option("--mark", is_flag=True, help="Name the step's kernels for ncu.")
@WATCH.decorate
@options("convention", "convention-file", "counter", "from", "to", "formulas")
@options(
    declare_option("python", metavar="PATH", help="The interpreter of your environment."),
    "out", pictures, "quiet", "verbose",
)  # fmt: skip
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def watch(
    ctx: click.Context,
    /,
    steps: tuple[int, int],
    calls: int | None,
    go_on: bool,
    device: str | None,
    dtype: str,
    mark: bool,
    module: bool,
    from_: str | None,
    to: str | None,
    python: str | None,
    out: Path,
    formats: tuple[str, ...],
    quiet: bool,
    verbose: bool,
    script: str,
    arguments: tuple[str, ...],
    **asked: Any,
) -> None:
    """Run your training script and count the step that it takes.

    \b
    reconcile watch train.py --batch-size 8
    reconcile watch --steps 2 -m my_package.train

    The script runs as `python SCRIPT ARGUMENTS` would, unchanged, and ends after the step. Options come before SCRIPT: what
    follows is the script's. A step leads from the call of a model
    to the step of the optimizer, or to the next call after your code has changed the weights itself. Where nothing is trained,
    count calls (--calls 1). In Keras it is a train_step on one batch, in JAX a call of a jitted function that takes a gradient.

    Exit codes: 0 reconciled, 1 unexplained or incomplete, 2 bad usage, or the script ended before its step, 3 a counter failed,
    4 a defect of reconcile itself.
    """
    from dataclasses import replace
    from difflib import get_close_matches

    from ...cli.options import again
    from ...cli.screen import show
    from ...cli.statement_ends import choose, ends
    from ...core import atomic
    from ...core.errors import UsageError
    from ...launch.environments.interpreters import user_interpreter
    from ...launch.request import run_request
    from ...report import reports
    from .count import flops_of
    from .utilisation import at_peak, peak_of
    from .watch import Script, watch

    flags = [flag for parameter in ctx.command.params for flag in parameter.opts if flag.startswith("-")]
    if script.startswith("-") and not Path(script).exists():
        flag = script.partition("=")[0]
        raise click.NoSuchOption(flag, possibilities=get_close_matches(flag, flags), ctx=ctx)
    if device:
        peak_of(device, dtype)  # an unknown one is said before the script runs
    if calls and ctx.get_parameter_source("steps") is ParameterSource.COMMANDLINE:
        raise UsageError("--steps and --calls name two things to count: give one of them.")
    added = WATCH.take_values(asked)
    if mark and added.get("ncu"):
        raise UsageError("--mark is for ncu's own run, and --ncu reads what it wrote: give one of them.")
    call, additions = WATCH.prepare(
        RunCall(ctx, run_request(**asked, formats=formats), added, out, formats, quiet, verbose, (script, *arguments))
    )
    place, version = user_interpreter(python) if python else ("", "")
    misplaced = next((word for word in (each.partition("=")[0] for each in arguments) if word in flags), "")
    program = Script(script, arguments, module, *steps, calls or 0, go_on, str(place), version, mark, misplaced)
    atomic.prepare(out)
    result = watch(program, call.request)
    stem = name_reports(program.stem)
    if stem != program.stem:
        result = replace(result, run=name_run(result.run))
    statement = choose(
        result, ends([x.counter for x in result.ledgers], from_, to, tuple(t.framework for t in result.traces))
    )
    texts = reports.render(result, formats, statement, again(ctx, (), *call.words, *call.program), stem)
    kept = atomic.write(out, stem, texts)
    if said := reports.explain_missing_page(result, formats):
        say(said, err=True)
    show(result, statement, kept, quiet=quiet, verbose=verbose)
    if device and result.verdict.figures:
        say(at_peak(flops_of(result), program.wanted, device, dtype))
    ctx.exit(max([result.exit_code, *(addition.follow(own, result, stem) for addition, own in additions)]))


def name_run(met: str, environment: Mapping[str, str] = os.environ) -> str:
    """An id that all processes of one run share: ``met`` is what they agreed on when they met. Without it, the run's id and
    the number of its attempt, as torchrun gives them to each process. '' if nothing tells this run from another."""
    id_, attempt = environment.get("TORCHELASTIC_RUN_ID", ""), environment.get("TORCHELASTIC_RESTART_COUNT", "0")
    return met or ("" if id_ in ("", "none") else f"{id_} {attempt}")


def name_reports(stem: str, environment: Mapping[str, str] = os.environ) -> str:
    """The beginning of the names of a process's reports: with its rank, if it is one of several (``RANK``, ``WORLD_SIZE``)."""
    rank, world = environment.get("RANK", ""), environment.get("WORLD_SIZE", "")
    if not (rank.isdecimal() and world.isdecimal() and int(world) > 1):
        return stem
    return f"{stem}.rank-{int(rank)}-of-{int(world)}"
