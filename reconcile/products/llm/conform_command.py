"""``reconcile formula conform``: holds functions of one's own to what runs of many configurations."""

from __future__ import annotations

import click

from ...cli.options import options
from ...cli.streams import say
from ...launch.request import PASSES

COUNT = click.IntRange(min=1)


@click.command("formula conform")
@click.argument("functions", metavar="MODULE:FUNCTION...", nargs=-1, required=True)
@click.option(
    "--config", "named", multiple=True, metavar="CONFIG",
    help="A config.json, or a type of model of transformers, such as llama, with the default of its class. Repeatable.",
)  # fmt: skip
@click.option(
    "--most", type=click.IntRange(min=0), default=40, show_default=True,
    help="Without --config: so many types for which a function has a number, evenly spread; 0 for all.",
)  # fmt: skip
@click.option(
    "--seq", "lengths", metavar="N,N,...", default="512,1024,2048,4096", show_default=True, help="Tokens per sequence."
)
@click.option("--batch", type=COUNT, default=1, show_default=True, help="Sequences of a step.")
@click.option(
    "--pass", "pass_", type=click.Choice(PASSES), default="training", show_default=True,
    help="Count a call or a training step.",
)  # fmt: skip
@click.option(
    "--per", type=click.Choice(("step", "token")), default="step", show_default=True,
    help="What the functions return FLOPs of.",
)  # fmt: skip
@click.option(
    "--timeout", type=COUNT, default=300, show_default=True,
    help="Seconds that a configuration may take, all lengths together.",
)  # fmt: skip
@click.option(
    "--format", "formats", type=click.Choice(("text", "md")), default="text", show_default=True,
    help="Format of the output.",
)  # fmt: skip
@options("quiet")
@click.pass_context
def conform(
    ctx: click.Context,
    /,
    functions: tuple[str, ...],
    named: tuple[str, ...],
    most: int,
    lengths: str,
    batch: int,
    pass_: str,
    per: str,
    timeout: int,
    formats: str,
    quiet: bool,
) -> None:
    """Hold your own FLOP formulas to what runs of many configurations.

    A function (package.module:function, or file.py:function) takes (config, batch, seq), or says by the names of its parameters
    what it takes, and returns FLOPs of a step. Each configuration is traced on the meta device, once for all functions. The table
    says for each at which lengths a function is exact, and otherwise which of its terms differ from what ran, as
    `reconcile llm --formula` does for one configuration.

    \b
    reconcile formula conform flops.py:train_flops
    reconcile formula conform flops.py:train_flops --config llama --seq 4096
    reconcile formula conform a.py:flops b.py:flops --config config.json

    Exit codes: 0 no function is wrong, 1 one is, or unexplained, 2 bad usage or input, 4 a defect of reconcile itself.
    """
    from ...cli.screen import print_safely
    from ...core.errors import UsageError
    from ...report.document.markdown import to_markdown
    from ...report.document.terminal import show
    from .conform import LAYERS, choose_known, fill_cells, find_versions, list_configurations
    from .conform_page import describe_cells
    from .request import read_functions, read_sizes

    tokens = read_sizes(lengths)
    if not tokens:
        raise UsageError(f"--seq takes numbers of tokens, such as 512,4096, not {lengths!r}.")
    every = list_configurations(named, max(tokens))
    asked = read_functions(
        next(iter(every.values())), functions, batch=batch, seq=tokens[0], pass_=pass_, per=per, others=()
    )
    assert asked is not None
    chosen, refused = (every, []) if named else choose_known(every, asked, most)
    cells = list(fill_cells(chosen, asked, tokens, timeout, lambda line: None if quiet else say(line, err=True)))
    note = (
        f"{len(chosen)} configurations; those without a file are the defaults of their classes with {LAYERS} layers, or as many "
        f"as have one of each kind. {find_versions()}. The letters are those of reconcile explain formula."
    )
    page = describe_cells(list(asked.functions), cells, refused, note)
    if formats == "md":
        say(to_markdown(page), nl=False)
    else:
        print_safely(lambda console: show(page, console))
    ctx.exit(int(not page.good))
