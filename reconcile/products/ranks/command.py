"""``reconcile ranks``: the command that adds up the reports that processes under ``torchrun`` wrote of one step."""

from __future__ import annotations

from pathlib import Path

import click

from ...cli.options import PATH, options


@click.command()
@click.argument("folder", type=PATH, metavar="DIR")
@options("quiet")
@click.pass_context
def ranks(ctx: click.Context, /, folder: Path, quiet: bool) -> None:
    """Add up the reports of several processes on one step.

    Start your script with `torchrun`, and let each process write the report of its rank. This command adds them up, names a rank
    that left no report, and writes NAME.ranks.json beside them.

    \b
    torchrun --nproc-per-node 2 -m reconcile watch --out ranks train.py
    reconcile ranks ranks

    Exit codes: 0 every rank is there and reconciled, 1 a rank is missing or not reconciled, 2 bad usage or input,
    3 a counter failed on a rank.
    """
    import json

    from ...cli.screen import print_safely
    from ...core import atomic
    from ...report.document.terminal import show
    from . import files
    from .report import describe_reports

    found = files.read_reports(folder)
    kept = atomic.write(folder, found.stem, {"ranks.json": json.dumps(files.to_dict(found), indent=1) + "\n"})
    print_safely(lambda console: show(describe_reports(found), console, kept, quiet=quiet))
    ctx.exit(found.exit_code)
