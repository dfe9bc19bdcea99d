"""``reconcile zoo gallery``: runs every pair of the zoo at its own size, and writes the pages of the gallery."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...cli.options import BASELINES, PATH, options, pass_of_a_pair
from ...cli.progress import CLEAN, bar
from ...cli.streams import say
from ...core.errors import EXIT_FAILED, EXIT_OK, EXIT_UNEXPLAINED
from ..number_types import Jobs

if TYPE_CHECKING:
    from ...engine.answer import Answer
    from .rows import ZooRow


@click.command()
@click.option("--model", "models", multiple=True, metavar="NAME", help="Run only this pair. Repeatable; default all.")
@click.option(
    "--jobs", type=Jobs(min=1), default=2, show_default=True, help="Number of pairs that run at the same time."
)
@click.option(
    "--data",
    type=PATH,
    metavar="FILE.json",
    help="File of the rows.  [default: gallery.json in --out; steps.json with --pass training]",
)
@options(pass_of_a_pair, "out", "quiet")
@click.pass_context
def gallery(
    ctx: click.Context, models: tuple[str, ...], jobs: int, data: Path | None, pass_: str, out: Path, quiet: bool
) -> None:
    """Run every pair of the zoo and write the gallery.

    Each pair runs at its own size with every counter and is reconciled under every convention. The command writes its report,
    its page and a row of README.md to --out, and renews the report in any other format that --out has. --model leaves the
    other rows as they are. --pass training runs a training step of every pair and writes training.md.

    Exit codes: 0 all reconciled, 1 something is unexplained or incomplete, 2 bad usage, 3 something could not run and the rest
    is reconciled, 4 a defect of reconcile itself.
    """
    from ...core import atomic
    from ...core.errors import check_names
    from ...model_zoo.loading import zoo_names
    from ...report.pictures import charts as pictures
    from . import report as call_report
    from . import run, training, training_report
    from .rows import at_once, dump, is_reconciled

    pictures.require()
    names = zoo_names()
    check_names("model", models, names)
    steps = pass_ == "training"
    page: Any = training_report if steps else call_report
    file, read, measure = (
        (training.FILE, training.read_training, training.measure)
        if steps
        else (run.FILE, run.read_gallery, run.measure)
    )
    path = data or out / file.name
    atomic.prepare(out)
    atomic.prepare(path.parent)
    kept = {name: row for name, row in read(path).items() if name in names}
    with bar(len(models or names), quiet) as (begun, tell):

        def each(model: str, measured: tuple[ZooRow, Answer | None]) -> None:
            row, result = measured
            if result is not None:
                page.write_report(out, model, result)
            tell(model, _verdict(row))

        found = at_once(models or names, jobs, lambda model: measure(model, BASELINES), each, begun)
    rows = {**kept, **{name: found[name][0] for name in models or names}}
    atomic.write(path.parent, path.stem, {"json": dump(rows.values())})
    missing = {name: "not measured yet" for name in names if name not in rows}
    written = page.write_pages(out, rows, missing)
    codes = {code for row in rows.values() for code in row.states.values()}
    clean = sum(is_reconciled(row) for row in rows.values())
    say(f"{clean} of {len(names)} pairs reconciled; wrote {written} and {path}")
    ctx.exit(next((code for code in (EXIT_UNEXPLAINED, EXIT_FAILED) if code in codes), EXIT_OK))


def _verdict(row: ZooRow) -> str:
    from .rows import is_reconciled

    return CLEAN if is_reconciled(row) and not row.open else "; ".join(row.open[:1]) or "not reconciled"
