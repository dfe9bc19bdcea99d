"""Runs in the environment of one release: the ledgers of a counter on the zoo's families, or their traces, as JSON.

``python -m tests.zoo.release_layers FRAMEWORK < REQUESTS`` takes ``{family: a worker's request}`` and prints
``FOUND {family: {"record", "meta"} or {"error"}}``. One process for all families: a release is looked at in seconds. Python 3.6.
"""

import contextlib
import importlib
import json
import sys
import warnings

from reconcile.core.message import first_line
from reconcile.core.protocol import from_text
from reconcile.core.records import to_json
from reconcile.worker.main import Worker


def taken(text):
    """The record of one request, and what its pair says of itself."""
    request = from_text(text)
    worker = Worker(request)
    meta = worker._meta()
    if "error" in meta:
        return meta
    try:
        worker._adapter().before_import()
        return {"record": to_json(worker.take(request.tasks[-1], meta["params"])), "meta": meta}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {first_line(error)}"}


def main(framework):
    """Print a line of JSON: what became of each."""
    warnings.simplefilter("ignore")
    with contextlib.suppress(ImportError):
        # PyTorch imports it late, and reads the names of functions that ptflops has patched by then
        importlib.import_module(framework + "._dynamo")
    found = {family: taken(text) for family, text in json.load(sys.stdin).items()}
    print("FOUND", json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
