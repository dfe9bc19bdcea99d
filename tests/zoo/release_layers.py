"""Runs in the environment of one release: the ledgers of a counter on the zoo's families, or their traces, as JSON.

``python -m tests.zoo.release_layers FRAMEWORK TASK FAMILY...``; prints ``FOUND {family: record or {"error"}}``, and with each
trace the pair's description. One process for all families: a release is looked at in seconds.
"""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from typing import Any

from reconcile.adapters.shared.refusal import FactoryError
from reconcile.core.errors import described
from reconcile.core.protocol import TRACE
from reconcile.core.records import to_json
from reconcile.model_zoo import loading
from reconcile.worker.main import Worker
from tests.workers import request


def taken(framework: str, task: str, family: str) -> dict[str, Any]:
    """The record of one family, and what its pair says of itself."""
    counters = () if task == TRACE else (task,)
    worker = Worker(request(framework, *counters, pair=str(loading.pair_path(family))))
    meta = worker._meta()
    try:
        worker._adapter().before_import()
        return {"record": to_json(worker.take(task, meta["params"])), "meta": meta}
    except (Exception, FactoryError) as error:
        return {"error": described(error)}


def main(framework: str, task: str, *families: str) -> None:
    """Print a line of JSON: what became of each."""
    warnings.simplefilter("ignore")
    if (
        framework == "torch"
    ):  # PyTorch imports it late, and reads the names of functions that ptflops has patched by then
        importlib.import_module("torch._dynamo")
    print("FOUND", json.dumps({family: taken(framework, task, family) for family in families}))


if __name__ == "__main__":
    main(*sys.argv[1:])
