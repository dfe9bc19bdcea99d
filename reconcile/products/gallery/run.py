"""Measures a row of the gallery's first page: a pair at its own size, every counter as a ratio to the work that ran.

command.py keeps the row in ``gallery.json`` with the hash of the pair's source, and makes ``README.md`` of that file. ``FILE`` is
the committed one, which ``reconcile explain models`` reads, and ``ran`` for hints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.conventions import MATMUL
from ...core.errors import UsageError
from ...engine.answer import Answer
from ...engine.settle import Collected
from ...launch.environments import CURRENT
from ...launch.request import run_request
from ...launch.runner import collect
from ...model_zoo import loading
from ...worker.introspect import documentation
from ..decode.grammar import Source
from ..decode.printed_figure import figure
from ..decode.search import search
from ..decode.sources import load_saved_sources
from ..function_call import NoAnswer, call_in_process
from ..obstacles import list_obstacles
from .rows import CounterCell, cell, read_rows, settle_all, source_of

FILE = Path(loading.HERE) / "gallery.json"
APART = 1e-4
"""Two outputs are equal if their difference, relative to the largest output, is smaller than this."""
PROOF_LIMIT = 1800.0
"""Time limit in seconds for both models to compute one output each."""


@dataclass(frozen=True, slots=True)
class PublishedReading:
    """A published figure and its reading for this pair: ``numbers`` distinct numbers have its digits; 0 means unexplained."""

    figure: str
    claim: str
    source: str
    what: str
    numbers: int


@dataclass(frozen=True, slots=True)
class GalleryRow:
    """One model.

    Attributes:
        model: The pair's name.
        about: The first line of its docstring.
        source: The hash of the sources that the row was measured on.
        settings: The pair's settings by name; empty if it could not run.
        weights: The parameters of the PyTorch model; None if unknown.
        error: The largest difference of the two outputs relative to the largest output; None if unknown.
        proven_at: The settings of that measurement, if they are not the pair's own.
        declared: Why the two models differ, as the pair says; '' if they are equivalent.
        work: FLOPs under ``matmul`` of each framework whose trace is complete.
        cells: What each counter reported, by counter.
        states: The exit code of the reconciliation under each convention, by its name.
        open: What does not reconcile or could not be checked, a sentence each.
        published: The published figures of the model and their readings.
    """

    model: str
    about: str
    source: str
    settings: Mapping[str, object]
    weights: int | None
    error: float | None
    proven_at: Mapping[str, str]
    declared: str
    work: Mapping[str, int]
    cells: Mapping[str, CounterCell]
    states: Mapping[str, int]
    open: tuple[str, ...] = ()
    published: tuple[PublishedReading, ...] = ()


def measure(
    model: str, baselines: Path, prove: Callable[[str], Mapping[str, Any]] | None = None
) -> tuple[GalleryRow, Answer | None]:
    """Run a pair of the zoo with every default counter, and both its models on one input. The result under ``matmul`` is
    returned with the row; its ``others`` are the results under the other conventions. ``prove`` replaces the run of both
    models: it returns what ``parity.proof`` does.

    If the pair cannot run, the row says so. Raises UsageError for a model that does not exist.
    """
    pair = loading.load_pair(loading.pair_path(model))
    about = documentation(pair.module).partition("\n")[0]
    declared = pair.not_equivalent
    both = (prove or _proof)(model)
    try:
        collected = collect(run_request(model=model))
    except UsageError as error:
        row = GalleryRow(
            model, about, source_of(model), {}, None, None, {}, declared, {}, {}, {MATMUL.name: 3}, (str(error),)
        )
        return row, None
    results = settle_all(collected)
    shown = results[MATMUL.name]
    row = GalleryRow(
        model=model,
        about=about,
        source=source_of(model),
        settings=shown.params,
        weights=both.get("weights"),
        error=both.get("error"),
        proven_at=both.get("at", {}),
        declared=declared,
        work={t.framework: t.totals[MATMUL.name] for t in shown.traces if t.complete},
        cells={x.counter: cell(shown, x.counter, x.framework) for x in shown.ledgers},
        states={name: result.exit_code for name, result in results.items()},
        open=(*_doubts(both, declared), *list_obstacles(results)),
        published=tuple(_readings(model, collected, baselines)),
    )
    return row, shown


def _doubts(both: Mapping[str, Any], declared: str) -> Iterable[str]:
    """Reasons to doubt that the two models are the same, a sentence each."""
    if "reason" in both:
        yield f"the outputs could not be compared: {both['reason']}"
    elif not both["varies"]:
        yield "the outputs are constant, so that their equality says nothing"
    elif not declared and not both["error"] < APART:
        yield f"the outputs differ by {both['error']:g} of the largest one, and the pair does not say that they should"


def _readings(model: str, collected: Collected, baselines: Path) -> Iterable[PublishedReading]:
    sources = [Source(CURRENT, collected), *load_saved_sources(run_request(model=model), (baselines,))]
    for text, claim, where in collected.meta["published"]:
        try:
            wanted = figure(text)
        except UsageError:
            yield PublishedReading(text, claim, where, "", 0)
            continue
        decoded = search(model, wanted, sources)
        yield PublishedReading(
            text, claim, where, decoded.matches[0].what if decoded.matches else "", len(decoded.values)
        )


def _proof(model: str) -> dict[str, Any]:
    """The output of parity.py on both models, run in a separate process."""
    try:
        (found,) = call_in_process(f"{__package__}.parity:proof", (model,), limit=PROOF_LIMIT)
    except NoAnswer as error:
        return {"reason": str(error)}
    return dict(found)


def read_gallery(path: Path = FILE) -> dict[str, GalleryRow]:
    """The rows in this file; none if there is no such file. Raises UsageError if it cannot be read."""
    return read_rows(path, GalleryRow)


def ran() -> dict[str, dict[str, int]]:
    """What ran in each network of the zoo at its own size, as its committed row says, by unit and framework."""
    units = (("MACs", 2), ("FLOPs", 1))
    return {
        name: {f"{unit} ({framework})": work // by for unit, by in units for framework, work in row.work.items()}
        for name, row in read_gallery().items()
    }
