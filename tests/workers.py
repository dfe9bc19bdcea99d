"""Requests to workers, as home makes them."""

from __future__ import annotations

from typing import Any

from reconcile.core.protocol import TRACE, ModelFile, UserModel, WorkerRequest
from reconcile.core.registry import frameworks, known_counters
from reconcile.launch.runner import counters_of_request
from reconcile.worker.main import EMPTY


def request(framework: str, *counters: str, **fields: Any) -> WorkerRequest:
    """A request for a trace and these counters, all that run unasked if none is named."""
    chosen = counters or tuple(n for n, c in known_counters().items() if c.framework == framework and c.default)
    known = {name: record.package for name, record in frameworks().items()}
    made = WorkerRequest(frameworks()[framework], (TRACE, *chosen), "", counters_of_request(chosen), known=known)
    return made._replace(**fields)


def user_model(factory: str = "net:make", file: ModelFile | None = None, **fields: Any) -> UserModel:
    """A model of the user's own."""
    return UserModel(factory, factory.replace(":", "."), {}, file=file)._replace(**fields)


def model_file(
    path: str = "net.pt2", kind: str = "exported_program", size: int = 0, *, trusted: bool = False
) -> ModelFile:
    """A model in a file, which the product of model files reads."""
    return ModelFile(path, kind, size, trusted, "", ".products.files.worker", ".products.files.confine")


def meta(*frameworks: str) -> dict[str, Any]:
    """The description that a worker writes of a model of the user's own."""
    return {**EMPTY, "name": "net", "params": {}, "frameworks": list(frameworks)}
