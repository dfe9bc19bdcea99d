"""``reconcile audit``: explains what each published number in a table counts.

It runs the models of the table, then variants of those whose number is not explained, and writes the pages after each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...cli.options import PATH, TEXT, options
from ...cli.streams import say
from ...launch.environments import CURRENT
from ..sweep.executors import count_before, run_all, where_it_runs

if TYPE_CHECKING:
    from ...launch.environments.definitions import Environment
    from ..sweep.cells import Cell
    from ..sweep.engine import Finished
    from .verdict import Verdict

TORCHVISION, ZOO = "torchvision", "zoo"


@click.command()
@click.argument("claims", type=TEXT, metavar="CLAIMS.csv")
@click.option(
    "--environment", "environments", multiple=True, default=(CURRENT,), show_default=True, metavar="NAME",
    help="Where rows run that name none. Repeatable: each in the first that has its library.",
)  # fmt: skip
@options("environments")
@click.option(
    "--out", type=PATH, default=Path("audit"), show_default=True, metavar="DIR",
    help="Folder of the files; with the same one, the command resumes.",
)  # fmt: skip
@where_it_runs
@options("quiet")
@click.pass_context
def audit(
    ctx: click.Context,
    /,
    claims: str,
    environments: tuple[str, ...],
    file: Path | None,
    out: Path,
    **where: Any,
) -> None:
    """Explain what each published figure in a table counts.

    \b
    reconcile audit claims.csv --environment timm --environment transformers-5.23
    reconcile audit torchvision

    \b
    CLAIMS.csv has a header and a figure per row:
      model        timm:NAME, torchvision:NAME, transformers:CLASS,
                   keras.applications:NAME, MODULE:FUNCTION (PyTorch;
                   tf=MODULE:FUNCTION for another), or a pair of the zoo;
                   with arguments if it needs any: timm:NAME(img_size=256)
      input        as --input of `reconcile run`; separate several by ;
      figure       as printed: 17.58, 4.1G
      claim        its unit as printed: GMACs, GFLOPs, M params; this and all
                   that follow may be empty
      source       where it is printed
      counter      the counter that the source names
      environment  where the model runs; current: where reconcile is

    `torchvision` names the figures that torchvision's weights state, and `zoo` those that the pairs list as published. The
    command runs the factories that rows name: audit only tables that you trust.

    Exit codes: 0 every figure is explained, 1 some are not, or their models do not run, 2 the table cannot be used,
    4 a defect of reconcile itself.
    """
    from ...cli.options import again
    from ...cli.screen import print_safely
    from ...core import atomic
    from ...core.errors import EXIT_OK, EXIT_UNEXPLAINED, check_names
    from ...core.escaping import quote_words
    from ...launch.environments.definitions import load
    from ...launch.environments.interpreters import python_path
    from ...report.document.markdown import to_markdown
    from ...report.document.terminal import show_blocks
    from ...work import load as load_formulas
    from ..sweep import page as sweep_page
    from ..sweep import store
    from . import cell, hints, report, summary
    from .claim_cells import cells_of, list_usual
    from .claims import Claim, read_claims
    from .verdict import by_chance, verdicts

    known = load(file)
    check_names("environment", environments, known)
    atomic.prepare(out)
    rows: list[Claim] = read_claims(_table(claims, known, out))
    cells, wrong = cells_of(rows, known, list_usual(environments, known, lambda why: say(why, err=True)))
    load_formulas()
    paths = python_path()
    requests = [cell.request_cell(one, paths) for one in {one.name: one for one in cells.values()}.values()]
    command = again(ctx).replace("reconcile audit", quote_words(["reconcile", "audit", Path(claims).name]), 1)
    last: list[Verdict] = []
    ran: list[Finished] = []
    more: dict[int, Cell] = {}

    def pages(finished: list[Finished], others: Sequence[Finished] = ()) -> None:
        ran[:] = finished
        outcomes = {one.name: one.outcome for one in (*finished, *others)}
        of_row = {row: outcomes[one.name] for row, one in cells.items()}
        again_of_row = {row: outcomes[one.name] for row, one in more.items()} if others else {}
        of_row = hints.add_counted(rows, of_row, again_of_row)
        judged, found = verdicts(rows, of_row, wrong)
        if others:
            judged = hints.add_hints(judged, again_of_row, cells)
        else:
            more.update(hints.again(judged, cells))
        last[:] = judged
        drawn = by_chance(judged, of_row)
        text = to_markdown(report.describe_audit(judged, drawn, command, found))
        pages_ = {"README": text, "audit": report.to_csv(judged), "costs": sweep_page.costs(finished)}
        store.write_pages(out, {**pages_, "index": report.to_html(judged, drawn, command, found)})

    for why, lines in group_by_reason(wrong):
        say(f"{'row' if len(lines) == 1 else 'rows'} {', '.join(map(str, lines))}: {why}", err=True)
    finished = run_all(requests, out, pages, **where, run=cell.run_cell)
    if more:
        asking = {one.name: (one, hints.select_claims(rows, one, more, cells)) for one in more.values()}
        others = [cell.request_cell(one, paths, hints.list_named_counters(of, one)) for one, of in asking.values()]
        run_all(others, out, lambda found: pages(list(ran), found), **where, run=cell.run_cell)
    models = f"{len(finished)} models{count_before(finished)}"
    if not where["quiet"] and len(last) <= report.MAX_LISTED_ROWS:
        print_safely(lambda console: show_blocks([report.tabulate_rows(last)], console))
    explained = summary.select_explained(last)
    say(f"{len(explained)} of {len(rows)} figures explained; {models}; wrote {out / 'README.md'}")
    ctx.exit(EXIT_OK if len(explained) == len(rows) else EXIT_UNEXPLAINED)


def group_by_reason(wrong: Mapping[int, str]) -> list[tuple[str, list[int]]]:
    """Why rows are not read, each reason once with the numbers of its rows."""
    return [(why, [row for row, other in wrong.items() if other == why]) for why in dict.fromkeys(wrong.values())]


def _table(claims: str, known: dict[str, Environment], out: Path) -> Path:
    """The file; what a library publishes is written to one beside the results. Raises UsageError."""
    from ...core import atomic
    from . import published_tables

    if claims not in (TORCHVISION, ZOO):
        return Path(claims)
    text = published_tables.zoo() if claims == ZOO else published_tables.torchvision(known)
    (path,) = atomic.write(out, "claims", {"csv": text})
    return path
