"""``reconcile gallery``: every pair of the zoo at its own size, and the page that shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import EXIT_FAILED, EXIT_OK, EXIT_UNEXPLAINED
from .options import PATH, options
from .progress import lively

if TYPE_CHECKING:
    from ..gallery import Row
    from ..results import RunResult

BASELINES = Path("reports/baselines")
CLEAN = "reconciled"


@click.command()
@click.option("--model", "models", multiple=True, metavar="NAME", help="Only this pair. Repeatable; default all.")
@click.option(
    "--jobs", type=click.IntRange(min=1), default=2, show_default=True, help="Pairs that run at the same time."
)
@click.option(
    "--data", type=PATH, metavar="FILE.json", help="Where the rows are kept.  [default: gallery.json in --out]"
)
@options("out", "quiet")
@click.pass_context
def gallery(ctx: click.Context, models: tuple[str, ...], jobs: int, data: Path | None, out: Path, quiet: bool) -> None:
    """Run every pair of the zoo and write the gallery.

    Each pair runs at its own size with every counter and is reconciled under every convention; its report, its page and
    a row in README.md go to --out, and files of a report that lie there in other formats are made anew. With --model, the
    other rows stay as they are.

    \b
    Exit codes: 0 all reconciled, 1 something is unexplained, 2 bad usage, 3 something could not be run.
    """
    from .. import gallery as rows_
    from ..errors import unknown
    from ..model_zoo.pair import zoo_names
    from ..report import gallery as page
    from ..report import pictures, write

    pictures.require()
    names = zoo_names()
    for name in models:
        if name not in names:
            raise unknown("model", name, names)
    path = data or out / rows_.FILE.name
    write.prepare(out)
    write.prepare(path.parent)
    kept = {name: row for name, row in rows_.read(path).items() if name in names}
    with _bar(len(models or names), quiet) as (begun, tell):

        def each(model: str, row: Row, result: RunResult | None) -> None:
            if result is not None:
                formats = ("md", "html", *write.lying(out, model))
                write.write(out, model, write.render(result, formats, None, f"reconcile run --model {model}"))
            tell(model, _verdict(row))

        found = rows_.build(models or names, jobs, each, BASELINES, begun)
    rows = {**kept, **{row.model: row for row in found}}
    write.write(path.parent, path.stem, {"json": rows_.dump(rows.values())})
    missing = {name: "not measured yet" for name in names if name not in rows}
    write.write(out, "README", {"md": page.to_markdown(rows, missing)})
    write.write(out, page.PICTURE, {"svg": page.to_svg(rows)})
    codes = {code for row in rows.values() for code in row.states.values()}
    clean = sum(row.reconciled for row in rows.values())
    click.echo(f"{clean} of {len(names)} pairs reconciled; wrote {out / 'README.md'} and {path}")
    ctx.exit(next((code for code in (EXIT_UNEXPLAINED, EXIT_FAILED) if code in codes), EXIT_OK))


def _verdict(row: Row) -> str:
    return CLEAN if row.reconciled and not row.open else "; ".join(row.open[:1]) or "not reconciled"


_Told = tuple[Callable[[str], None], Callable[[str, str], None]]


@contextmanager
def _bar(total: int, quiet: bool) -> Iterator[_Told]:
    """What to call with a pair that begins and with one that is done: on a terminal a bar that names what is running,
    elsewhere a line per pair."""
    if quiet:
        yield lambda model: None, lambda model, verdict: None
    elif not lively():
        yield lambda model: None, lambda model, verdict: click.echo(f"{model}: {verdict}", err=True)
    else:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
        from rich.table import Column
        from rich.text import Text

        console = Console(stderr=True)
        columns = (
            BarColumn(bar_width=20, table_column=Column(min_width=20)),
            MofNCompleteColumn(table_column=Column(min_width=len(f"{total}/{total}"))),
            TimeElapsedColumn(table_column=Column(min_width=7)),
            TextColumn(
                "{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)
            ),
        )
        with Progress(*columns, console=console, transient=True, expand=True) as bar:
            task = bar.add_task("", total=total)
            running: dict[str, None] = {}

            def begun(model: str) -> None:
                running[model] = None
                bar.update(task, description=", ".join(running))

            def done(model: str, verdict: str) -> None:
                running.pop(model, None)
                console.print(Text(f"{model}: {verdict}", style="" if verdict == CLEAN else "yellow"))
                bar.update(task, advance=1, description=", ".join(running))

            yield begun, done
