"""``reconcile mfu``: explains a published model FLOPs utilisation (MFU), or a table of them, as a product of factors.

Without a claim it prints the MFU itself; ``compare``, ``peaks`` and ``trainers`` are words in place of a claim.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...cli.options import PATH, TEXT, options
from ...cli.streams import say
from ..llm.request import SEQ
from ..number_types import Signed

if TYPE_CHECKING:
    from ...report.document import Document

FORMATS = ("text", "json")
COUNT = click.IntRange(1, 10**9)
COMPARE, PEAKS, TRAINERS = "compare", "peaks", "trainers"
WORDS = {
    COMPARE: ((2,), "`reconcile mfu compare` takes two TOML files: reconcile mfu compare A.toml B.toml."),
    PEAKS: (range(9), "`reconcile mfu peaks` takes the name of a device, or none for all."),
    TRAINERS: ((0, 1), "`reconcile mfu trainers` takes one Python file, or none for the list of known trainers."),
}


class _Mfu(Signed):
    def read(self, text: str) -> object:
        """See Signed.read."""
        from .printed_number import claim

        return claim(text)


@click.command(cls=_Mfu)
@click.argument("claim", nargs=-1, type=TEXT, metavar="[CLAIM]")
@click.option(
    "--device", type=TEXT, metavar="NAME", help="Device, as PyTorch, JAX or nvidia-smi prints it: 'H100 SXM'."
)
@click.option("--dtype", type=TEXT, default="bf16", show_default=True, metavar="DTYPE", help="Dtype of the products.")
@click.option("--devices", type=COUNT, default=1, show_default=True, help="Devices of the whole run.")
@click.option("--peak", type=TEXT, metavar="FLOP/S", help="Peak of one device, in place of the table's: 989T.")
@click.option("--flops-per-second", type=TEXT, metavar="FLOP/S", help="FLOP/s of all devices: 1545.38T.")
@click.option("--tokens-per-second", type=TEXT, metavar="N", help="Tokens per second of all devices.")
@click.option("--step-seconds", type=TEXT, metavar="S", help="Seconds of a step, with its tokens or FLOPs.")
@click.option("--tokens-per-step", type=TEXT, metavar="N", help="Tokens of a step of all devices.")
@click.option(
    "--flops-per-step", type=TEXT, metavar="FLOP", help="FLOPs of a step of all devices, in place of its tokens."
)
@click.option("--flops-per-token", type=TEXT, metavar="FLOP", help="FLOPs per token of a training step: 51.48G.")
@click.option("--config", type=PATH, metavar="FILE", help="config.json of the model, in place of --flops-per-token.")
@click.option("--seq", type=COUNT, help=f"Tokens per sequence, with --config.  [default: {SEQ}]")
@click.option("--formula", type=TEXT, metavar="NAME", help="Formula that is stated, with --config.  [default: palm]")
@click.option("--tp", type=COUNT, default=1, help="Size of tensor parallelism.")
@click.option("--cp", type=COUNT, default=1, help="Size of context parallelism.")
@click.option("--pp", type=COUNT, default=1, help="Size of pipeline parallelism.")
@click.option("--accumulation", type=COUNT, default=1, help="Micro-batches of a step.")
@click.option("--padding", type=TEXT, metavar="SHARE", help="Share of the tokens that pad: 12%.")
@click.option("--recompute", type=click.Choice(("none", "full")), help="Activations that are computed again, if known.")
@click.option("--table", type=PATH, metavar="CLAIMS.csv", help="Explain every row of a table; needs --out.")
@click.option("--out", type=PATH, metavar="DIR", help="Output directory of --table.")
@click.option("--format", "formats", type=click.Choice(FORMATS), default="text", show_default=True, help="Format.")
@options("quiet")
@click.pass_context
def mfu(ctx: click.Context, /, claim: tuple[str, ...], table: Path | None, out: Path | None, **asked: Any) -> None:
    """Explain a published MFU as a product of factors.

    \b
    reconcile mfu 43% --device "H100 SXM" --flops-per-second 430T
    reconcile mfu --device A100 --step-seconds 2.5 --tokens-per-step 524288 \\
        --config config.json               the MFU itself
    reconcile mfu compare A.toml B.toml    two setups of one run
    reconcile mfu peaks H100               its peaks and datasheet, or all
    reconcile mfu trainers utils.py        a trainer's table beside the datasheets
    reconcile mfu --table claims.csv --out mfu

    CLAIM is a utilisation (156.18%, 0.46) or the rate of one device (430TFLOP/s). State what it was computed from: FLOP/s, or
    tokens per second and FLOPs per token. The tool shows the simplest product of known mistakes and choices (docs/mfu.md) that
    gives CLAIM, how many others do, and how many random claims would be explained as well.

    Exit codes: 0 explained, 1 not explained, 2 bad usage or input, 4 a defect of reconcile itself.
    """
    from ...core.errors import EXIT_OK, EXIT_UNEXPLAINED, UsageError

    words = claim
    if table is not None:
        if words:
            raise UsageError("--table explains every row of a file: leave CLAIM out.")
        ctx.exit(_table(table, out))
    if words and words[0] in WORDS:
        counts, wrong = WORDS[words[0]]
        if len(words) - 1 not in counts:
            raise UsageError(wrong)
        ctx.exit(_other(words[0], words[1:], asked["formats"]))
    if len(words) > 1 or not (words or asked["device"] or asked["peak"]):
        raise UsageError("give one CLAIM, quoted if it has spaces; or --device for the MFU itself; or --table.")
    from . import report
    from .printed_number import claim as read
    from .search import search
    from .setup import setup_of

    if not words:
        setup = setup_of(asked, measured=True)
        page, data = report.describe_setup(setup), report.data_of_setup(setup)
        _print(page, data if asked["formats"] == "json" else "", asked["quiet"])
        ctx.exit(EXIT_OK)
    wanted = read(words[0])
    outcome = search(wanted, setup_of(asked, wanted.kind == "share"))
    _print(report.describe_claim(outcome), report.data(outcome) if asked["formats"] == "json" else "", asked["quiet"])
    ctx.exit(EXIT_OK if outcome.explained else EXIT_UNEXPLAINED)


def _print(page: Document, data: str = "", quiet: bool = False) -> None:
    """Print a page, or its JSON if that is wanted."""
    from ...cli.screen import print_safely
    from ...report.document.terminal import show

    if data:
        say(data, nl=False)
    else:
        print_safely(lambda console: show(page, console, quiet=quiet))


def _other(word: str, more: tuple[str, ...], formats: str) -> int:
    """Answer what is no claim. Returns the exit code."""
    from ...core.errors import EXIT_OK, EXIT_UNEXPLAINED
    from ...report.document.markdown import to_markdown
    from . import peaks_report

    files = [Path(name) for name in more]
    if word == COMPARE:
        from .compare import compare_files

        result = compare_files(*files)
        _print(result.describe(), result.data() if formats == "json" else "")
        return EXIT_OK if result.is_closed else EXIT_UNEXPLAINED
    if word == PEAKS:
        _print(peaks_report.describe_peaks(" ".join(more)))
    elif files:
        from .source_tables import read_peaks

        say(to_markdown(peaks_report.describe_source(read_peaks(files[0]), files[0].name)), nl=False)
    else:
        say(to_markdown(peaks_report.describe_trainers()), nl=False)
    return EXIT_OK


def _table(claims: Path, out: Path | None) -> int:
    """Write the page and the table of a file of claims. Returns the exit code."""
    from ...core import atomic
    from ...core.errors import EXIT_OK, EXIT_UNEXPLAINED, UsageError
    from ...core.escaping import quote_words
    from ...report.document.markdown import to_markdown
    from . import table_report, table_verdicts
    from .claims import read_claims

    if out is None:
        raise UsageError("--table needs --out DIR, the folder for README.md and mfu.csv.")
    verdicts = table_verdicts.verdicts(read_claims(claims))
    atomic.prepare(out)
    command = quote_words(["reconcile", "mfu", "--table", claims.name, "--out", out.name])
    atomic.write(out, "README", {"md": to_markdown(table_report.describe_table(verdicts, command))})
    atomic.write(out, "mfu", {"csv": table_report.to_csv(verdicts)})
    say(f"{table_report.count_states(verdicts)} Wrote {out / 'README.md'}")
    return EXIT_OK if table_report.are_all_explained(verdicts) else EXIT_UNEXPLAINED
