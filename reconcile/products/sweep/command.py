"""``reconcile sweep``: its command line, and the cells (a model in an environment each) that its arguments name.

executors.py runs the cells, and page.py makes the Markdown page and the CSV tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...cli.options import PATH, TABLES, chosen_formats, options
from ...cli.streams import say
from .executors import count_before, run_all, where_it_runs

if TYPE_CHECKING:
    from ...launch.environments.definitions import Environment
    from .cells import Cell

LIST = ".toml"


@click.command()
@click.argument("what", nargs=-1, required=True, metavar="WHAT...")
@options("input")
@click.option(
    "--frameworks", "among", default="", metavar="LIST",
    help="Frameworks of each model.  [default: tf,torch]",
)  # fmt: skip
@click.option("--environment", "names", multiple=True, metavar="NAME", help="Run in this one. Repeatable.")
@options(
    "environments",
    "convention",
    "convention-file",
    "counter",
    "pass",
    "context",
    "optimizer",
    "formulas",
    "device",
    "timeout",
)
@click.option(
    "--out", type=PATH, default=Path("sweep"), show_default=True, metavar="DIR",
    help="Folder of the files; with the same one, the command resumes.",
)  # fmt: skip
@click.option(
    "--format", "formats", multiple=True, default=["md"], show_default=True, metavar="LIST",
    callback=partial(chosen_formats, allowed=(*TABLES, "html")), help=f"Formats: {', '.join((*TABLES, 'html'))}.",
)  # fmt: skip
@where_it_runs
@options("quiet")
@click.pass_context
def sweep(
    ctx: click.Context,
    /,
    what: tuple[str, ...],
    inputs: tuple[str, ...],
    among: str,
    names: tuple[str, ...],
    file: Path | None,
    out: Path,
    formats: tuple[str, ...],
    jobs: int | None,
    dask: str | None,
    fresh: bool,
    quiet: bool,
    **asked: Any,
) -> None:
    """Run every model of a package or a list.

    \b
    reconcile sweep timm --environment timm --jobs 4
    reconcile sweep keras.applications --frameworks tf,torch,jax

    \b
    WHAT is any number of:
      keras.applications, timm, torchvision, transformers, diffusers
                         every model of a package (docs/sweep.md)
      net:make           a factory, in both frameworks; torch=net:make in one
      gru_demo, zoo, my_pair.py
                         pairs
      models.toml        a list of any of these

    The tool fetches no weights.

    Exit codes: the worst of all models: 4 a defect of reconcile itself, 1 unexplained, 3 a counter failed, 2 a model could
    not be used, else 0.
    """
    from ...cli.options import again
    from ...core import atomic
    from ...core.escaping import quote_words
    from ...launch.environments.interpreters import python_path
    from ...report.document.markdown import to_markdown
    from . import engine, page, store
    from .cells import manner_of, request_of
    from .engine import Finished

    paths = python_path()
    manner = manner_of(asked, formats)
    _check(asked)
    cells = _cells(what, inputs, among, names, file, paths)
    requests = [request_of(cell, manner, paths) for cell in cells]
    atomic.prepare(out)
    asked_for = [*what, *(["--frameworks", among] if among else [])]
    command = again(ctx).replace("reconcile sweep", quote_words(["reconcile", "sweep", *asked_for]), 1)

    def pages(finished: list[Finished]) -> None:
        summary = to_markdown(page.describe_sweep(finished, command, "md" in manner.formats))
        store.write_pages(out, {"README": summary, "sweep": page.to_csv(finished), "costs": page.costs(finished)})

    finished = run_all(requests, out, pages, jobs=jobs, dask=dask, fresh=fresh, quiet=quiet)
    reconciled = sum(one.exit_code == 0 for one in finished)
    say(f"{reconciled} of {len(finished)} models reconciled{count_before(finished)}; wrote {out / 'README.md'}")
    ctx.exit(engine.exit_code(finished))


def _cells(
    what: tuple[str, ...],
    inputs: tuple[str, ...],
    among: str,
    names: tuple[str, ...],
    file: Path | None,
    paths: tuple[str, ...],
) -> list[Cell]:
    from ...core.errors import check_names
    from ...launch import user_models
    from ...launch.environments.definitions import CURRENT, load
    from . import listfile, listing
    from .cells import distinct, in_environments

    there: dict[str, Environment] = load(file)
    check_names("environment", names, there)
    places = [there[name] for name in dict.fromkeys(names or (CURRENT,))]
    given = user_models.read_inputs(inputs)
    python = _python(places)
    chosen = listing.select_frameworks([part.strip() for part in among.split(",")]) if among else ()
    found: list[Cell] = []
    for word in what:
        if word.endswith(LIST):
            found += listfile.read_list(Path(word), there, places, paths, chosen, python)
        else:
            for cell in listing.cells_of(word, given, paths, chosen, python):
                found += in_environments(cell, places)
    return distinct(found)


def _python(places: list[Environment]) -> str:
    """The interpreter in which packages are listed: that of the first environment, '' for the running one. Raises UsageError."""
    from ...core.errors import UsageError
    from ...launch.environments.definitions import CURRENT
    from ...launch.environments.interpreters import EnvironmentError_
    from ...launch.environments.provision import ensure

    first = places[0]
    if (
        first.name == CURRENT or first.python != CURRENT
    ):  # an older one lists nothing: the model's own packages are here, too
        return ""
    try:
        return str(ensure(first, lambda sentence: say(sentence, err=True)))
    except EnvironmentError_ as error:
        raise UsageError(f"the environment {first.name} cannot be used: {error}.") from error


def _check(asked: Mapping[str, Any]) -> None:
    """Raise UsageError for names that no cell could use."""
    from ...core.conventions import conventions_of
    from ...core.errors import check_names
    from ...core.registry import known_counters
    from ...launch.request import run_request

    request = run_request(**asked)
    conventions_of(request.convention, request.convention_files)
    check_names("counter", request.counters, known_counters())
