"""One model of an audit in its own process: traces it, on the meta device where it can, and returns the readings of the trace,
or of its variants. ``candidates_of`` and ``ran_of`` read them from the outcome that was kept.

The process gets no published number: the numbers of a model are looked up in its readings afterwards, so adding a row to the
table or removing one runs no model again. A counter runs beside variants alone, if a row that the trace leaves open names it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ...core.causes import State
from ...core.conventions import BUILT_IN
from ...core.errors import UsageError
from ...core.records import Ledger
from ...core.registry import frameworks, known_counters
from ...engine.reconcile import Missing
from ...engine.settle import Collected
from ...launch.environments.definitions import CURRENT, Environment
from ...launch.environments.runs import collect_at_in, collect_in
from ...launch.options import OPTIONS
from ...launch.request import Point, RunRequest, run_request
from ...launch.runner import collect, collect_at
from ...launch.workers.supervisor import Event
from ...model_zoo.loading import zoo_names
from ..decode import variants
from ..decode.grammar import Source, candidates
from ..decode.readings import LAYER, Candidate
from ..decode.sources import SHIPPED, load_saved_sources
from ..sweep import cell, cells
from ..sweep.cells import Manner

ON_META, IN_GRAPH = Manner({"device": "meta"}, {}, ()), Manner({}, {}, ())
"""How a cell runs: without a report, on meta where its framework takes a device. A sweep's cell always has a report, so their
keys differ."""

VARIANTS_OF = "variants of"
"""How the name of a cell with variants begins."""

run_cell = partial(cell.run_cell, module=__name__)
"""The function that an executor calls (sweep/engine.py)."""


def main() -> None:
    """The entry point of the process of a cell."""
    cell.main(answer)


def request_cell(cell: cells.Cell, paths: Sequence[str], counters: Sequence[str] = ()) -> Any:
    """The request of a cell, with the ``counters`` that run beside its variants; ``paths`` are those in which Python looks for
    modules."""
    manner = ON_META if all(frameworks()[name].placed for name in cell.factories) else IN_GRAPH
    if counters:
        manner = replace(manner, options={**manner.options, "counters": list(counters)})
    return cells.request_of(cell, manner, paths)


def answer(request: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The answer of a sweep's cell without counters, with the trace's ``readings``; of one that is named so, also with those of
    its ``variants``, and with what counters report."""
    model, place = request["cell"]["model"], cells.read_cell(request)[0].place
    there = None if place is None else collect_at_in(place)
    several = request["cell"]["name"].startswith(VARIANTS_OF)
    ran: list[variants.Ran] = []

    def take(asked: RunRequest, progress: Callable[[Event], None]) -> Collected:
        if not several:
            (collected,) = (there or collect_at)(asked, [Point(asked.overrides, asked.inputs)], progress, False)
            return collected
        first, found = variants.run_variants(asked, variants.list_variants(asked), there, progress)
        ran.extend(found)
        return replace(first, ledgers=_count(asked, place, progress)) if asked.counters else first

    def read_what_ran(collected: Collected) -> dict[str, Any]:
        sources = [Source(CURRENT if place is None else place.name, collected)]
        if model in zoo_names():  # what the counters of other environments reported of it
            sources += load_saved_sources(run_request(model=model), [SHIPPED])
        return {"readings": readings(sources), "variants": list(map(_variant_to_json, ran))}

    return cell.answer(request, folder, take, read_what_ran)


def _count(
    asked: RunRequest, place: Environment | None, progress: Callable[[Event], None]
) -> tuple[Ledger | Missing, ...]:
    """What the counters of the request report of the model as it is, with memory, or why they do not."""
    request = replace(asked, trace=False, device=OPTIONS["device"].default)
    try:
        return (collect if place is None else collect_in(place))(request, progress).ledgers
    except UsageError as error:
        return tuple(Missing(n, known_counters()[n].framework, State.FAILED, str(error)) for n in asked.counters)


def readings(sources: Sequence[Source]) -> list[dict[str, Any]]:
    """The readings of a whole model as JSON data: no published figure of a model is one layer's."""
    found, _notes = candidates(sources, BUILT_IN)
    return [reading_to_json(c) for c in found if c.rank < LAYER]


def reading_to_json(reading: Candidate) -> dict[str, Any]:
    """One reading as JSON data."""
    names = ("value", "rank", "unit", "what", "how", "note", "counter")
    family = known_counters()[reading.counter].family if reading.counter in known_counters() else reading.family
    return {**{name: getattr(reading, name) for name in names}, "family": family}


def candidates_of(outcome: Mapping[str, Any]) -> tuple[Candidate, ...]:
    """The readings in the outcome of a cell that was kept, as ``answer`` made them."""
    return tuple(Candidate(**reading) for reading in outcome.get("readings", ()))


def _variant_to_json(one: variants.Ran) -> dict[str, Any]:
    return {
        "what": one.variant.what,
        "fused": one.variant.point.fused,
        "readings": list(map(reading_to_json, one.readings)),
    }


def ran_of(outcome: Mapping[str, Any]) -> list[variants.Ran]:
    """The variants in the outcome of a cell that was kept, with their readings."""
    return [
        variants.Ran(
            variants.Variant(one["what"], (), Point({}, (), one["fused"])),
            tuple(Candidate(**reading) for reading in one["readings"]),
        )
        for one in outcome.get("variants", ())
    ]
