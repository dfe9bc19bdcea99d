"""Nurseries of a sweep: processes that have imported a framework and a library, from which a cell's workers are forked.

A cell of a library's model spends most of its time on importing the framework and the library. Inside ``warm()``
of products/forked_workers.py both are imported once. Each cell still has its own process, and its own workers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.framework import Framework
from ...core.protocol import WorkerRequest
from ...core.registry import frameworks, known_counters
from ...launch.environments.definitions import CURRENT, Environment
from ...launch.environments.interpreters import EnvironmentError_, Interpreter
from ...launch.environments.provision import ensure
from ...launch.runner import counters_of_request
from .. import forked_workers
from . import cells


def offer_nurseries(request: Mapping[str, Any]) -> dict[str, forked_workers.Offered]:
    """The nurseries for the cell of a request (cells.request_of), by framework: for each that runs here and can be forked."""
    nurseries = forked_workers.find_nurseries()
    if nurseries is None:
        return {}
    cell, manner = cells.read_cell(request)
    place = cell.place
    if place is not None and place.python != CURRENT:  # it may be too old
        return {}
    try:
        python = Interpreter() if place is None else Interpreter(ensure(place))
    except EnvironmentError_:  # the cell says so
        return {}
    asked = manner.options.get("counters", ())
    found = {name: c for name, c in known_counters().items() if (name in asked if asked else c.default)}
    made: dict[str, forked_workers.Offered] = {}
    for record in frameworks().values():
        own = [name for name, counter in found.items() if counter.framework == record.name and not counter.recipe]
        wanted = record.name in cell.factories if cell.factories else bool(own)
        if not wanted or not record.forks or record.folder or not _is_installed(place, record):
            continue
        body = WorkerRequest(framework=record, tasks=(), out="", counters=counters_of_request(own))
        library = _choose_library(record, cell.factories.get(record.name, ""), request["paths"])
        nursery = nurseries.of(body, python, library)
        if nursery is not None:
            made[record.name] = nursery
    return made


def _is_installed(place: Environment | None, record: Framework) -> bool:
    return cells.is_there(record.package, ()) if place is None else record.name in place.frameworks


def _choose_library(record: Framework, where: str, paths: list[str]) -> str:
    """The module to import for that factory: one of the libraries that the framework names, and none of a user's own."""
    module = where.partition(":")[0]
    known = {name for name, _ in record.libraries} | {name for _, name, _ in record.functions}
    top = module.partition(".")[0]
    return module if module in known and not cells.is_beside(top, paths) else ""
