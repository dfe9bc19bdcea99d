"""``reconcile llm``: the formulas that people quote for a language model, beside what a training step takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...core.errors import EXIT_FAILED
from ...launch.request import PASSES
from ...llm.config import SEQ
from ..options import options
from ..streams import say

if TYPE_CHECKING:
    from ...engine.settle import Collected
    from ...launch.request import RunRequest
    from ...launch.workers.supervisor import Event

FORMATS = ("text", "md", "json")


@click.command()
@click.argument("model")
@click.option("--seq", type=click.IntRange(min=1), help=f"Tokens per sequence of a configuration.  [default: {SEQ}]")
@click.option("--batch", type=click.IntRange(min=1), help="Sequences of a configuration.  [default: 1]")
@click.option(
    "--pass",
    "pass_",
    type=click.Choice(PASSES),
    default="training",
    show_default=True,
    help="Count a call or a training step.",
)
@click.option(
    "--format", "formats", type=click.Choice(FORMATS), default="text", show_default=True, help="Format of the output."
)
@options("quiet", "verbose")
@click.pass_context
def llm(
    ctx: click.Context,
    model: str,
    seq: int | None,
    batch: int | None,
    pass_: str,
    formats: str,
    quiet: bool,
    verbose: bool,
) -> None:
    """Report a training step beside the published formulas.

    MODEL is a HuggingFace config.json or its folder, a function that returns a model with its inputs
    (package.module:function), or a pair of the zoo. A configuration is made on the meta device, which allocates nothing, and
    called with --batch sequences of --seq tokens. A function or a pair has its own inputs. The tool records the pass op by op
    and explains how each formula differs from it, to the unit.

    \b
    reconcile llm config.json --seq 8192
    reconcile llm config.json --pass forward
    reconcile llm package.module:function --format md

    Exit codes: 0 every number is explained, 1 something is not, 2 bad usage or input, 3 the model failed,
    4 a defect of reconcile itself.
    """
    from ...core.conventions import MATMUL, NAMED, Conventions
    from ...core.errors import UsageError
    from ...engine.settle import settle
    from ...llm import page as report
    from ..progress import progress

    request, name, take = _asked(model, batch, seq, pass_)
    with progress(quiet=quiet or formats != "text", verbose=verbose) as tell:
        collected = take(request, tell)
    result = settle(collected, Conventions(MATMUL, NAMED))
    (trace,) = result.traces
    if MATMUL.name not in trace.totals:
        say(f"Error: {name} has no number: {trace.reason}", err=True)
        ctx.exit(EXIT_FAILED)
    size = report.size_of(collected)
    if size is None:
        raise UsageError(f"no formula has a number for {name}: {result.ledgers[0].reason}.")
    page = report.page(result, size, name)
    if formats == "text":
        say(report.text(page, verbose=verbose), nl=False)
    else:
        say({"md": report.markdown, "json": report.data}[formats](page), nl=False)
    ctx.exit(result.exit_code)


def _asked(
    model: str, batch: int | None, seq: int | None, pass_: str
) -> tuple[RunRequest, str, Callable[[RunRequest, Callable[[Event], None]], Collected]]:
    """The request, the model's name, and how to run it: a configuration's model in this process, others in a worker.

    Raises UsageError for sizes of a model that has inputs of its own.
    """
    from ...core.errors import UsageError
    from ...core.registry import known_counters
    from ...launch import runner
    from ...launch.request import run_request
    from ...llm.config import configured
    from ...work import load

    load()
    framework = next(counter.framework for counter in known_counters().values() if counter.quoted)
    asked: dict[str, Any] = {"counters": ("formula:all",), "pass_": pass_}
    within = Path(model, "config.json")
    if not model.endswith(".json") and not within.is_file():
        if batch or seq:
            raise UsageError(f"{model} has inputs of its own: leave --seq and --batch out; they size a configuration.")
        request = run_request(**asked, **{framework if ":" in model else "model": model})
        return request, model, runner.collect
    file = Path(model) if model.endswith(".json") else within
    request, name, take = configured(file, batch or 1, seq or SEQ, pass_)
    return request, name, take
