"""``reconcile llm``: compares FLOP formulas of a language model, published ones and your own, with the work of its step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ...cli.options import options
from ...cli.streams import say
from ...core.errors import EXIT_FAILED
from ...launch.request import PASSES
from .request import SEQ

FORMATS = ("text", "md", "json")
COUNT = click.IntRange(min=1)


@click.command()
@click.argument("model")
@click.option("--seq", type=COUNT, help=f"Tokens per sequence of a configuration.  [default: {SEQ}]")
@click.option("--batch", type=COUNT, help="Sequences of a configuration.  [default: 1]")
@click.option(
    "--lengths", metavar="N,N,...", default="",
    help="Documents packed into a sequence in place of --seq; a token sees its own alone.",
)  # fmt: skip
@click.option("--images", type=COUNT, help="Images in each sequence of a model that reads them beside text.")
@click.option("--image-size", metavar="HxW", default="", help="Pixels of an image where the configuration states none.")
@click.option(
    "--lora", metavar="R[:NAME,...]", default="",
    help="Train adapters of rank R alone, on all nn.Linear or on these modules.",
)  # fmt: skip
@click.option(
    "--pass", "pass_", type=click.Choice(PASSES), default="training", show_default=True,
    help="Count a call or a training step.",
)  # fmt: skip
@click.option(
    "--formula", "functions", multiple=True, metavar="MODULE:FUNCTION",
    help="Your own function of (config, batch, seq), of a module or of file.py.",
)  # fmt: skip
@click.option(
    "--per", type=click.Choice(("step", "token")), default="step", show_default=True,
    help="What such a function returns FLOPs of.",
)  # fmt: skip
@click.option(
    "--format", "formats", type=click.Choice(FORMATS), default="text", show_default=True, help="Format of the output."
)
@options("input", "environment", "environments", "with", "python", "quiet", "verbose")
@click.pass_context
def llm(
    ctx: click.Context,
    /,
    model: str,
    functions: tuple[str, ...],
    per: str,
    formats: str,
    environment: str,
    file: Path | None,
    with_: tuple[str, ...],
    python: str | None,
    quiet: bool,
    verbose: bool,
    **asked: Any,
) -> None:
    """Report a training step beside the published formulas.

    \b
    reconcile llm config.json --seq 8192
    reconcile llm config.json --formula flops.py:train_flops

    MODEL is a config.json of transformers or diffusers, or its folder, a function that returns a model with its inputs
    (package.module:function), or a pair of the zoo. A configuration takes no memory: it is made on the meta device, and called
    with --batch sequences of --seq tokens, or with --batch images. The tool records the pass op by op and explains how each
    formula differs from it, to the unit.

    Exit codes: 0 every number is explained, 1 something is not, 2 bad usage or input, 3 the model failed,
    4 a defect of reconcile itself.
    """
    from ...cli.environment import choose_environment, collect_there
    from ...cli.progress import progress
    from ...cli.screen import print_safely
    from ...core.errors import NotInResult, UsageError
    from ...report.document.terminal import show
    from . import report
    from .request import formula_framework, make_comparison, read_functions, read_request

    sizes = {name: asked[name] for name in ("batch", "seq", "pass_")}
    others = [value for name, value in asked.items() if name not in sizes]
    asked["inputs"] = asked["inputs"] or None
    there = collect_there(choose_environment(environment, file, with_, python, (formula_framework(),)))
    if functions and there is not None:
        raise UsageError("--formula is called here, beside the model: leave --python, --with and --environment out.")
    own = read_functions(model, functions, **sizes, per=per, others=others)
    try:
        with progress(quiet=quiet or formats != "text", verbose=verbose) as tell:
            page = make_comparison(*read_request(model, **asked, there=there), tell, own)
    except NotInResult as error:
        say(f"Error: {error}", err=True)
        ctx.exit(EXIT_FAILED)
    if formats == "text":
        shown = report.describe_comparison(page, brief=True, verbose=verbose)
        print_safely(lambda console: show(shown, console))
    else:
        say(report.FORMATS[formats](page), nl=False)
    ctx.exit(page.exit_code)
