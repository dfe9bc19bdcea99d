"""Loads files as a worker does, many in one confined process: {path: sentence, or the work of its trace}.

``python -m tests.products.files.loading FRAMEWORK "PATH[!][@SIGNATURE]|INPUT INPUT"`` among the files, which it reads and cannot
change; the guards are those of a worker.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from reconcile.adapters.shared.refusal import FactoryError
from reconcile.core.conventions import BUILT_IN
from reconcile.core.errors import UsageError
from reconcile.core.protocol import TRACE
from reconcile.core.records import Trace
from reconcile.launch import user_models
from reconcile.products.files import confine, kinds
from reconcile.work import work_of
from reconcile.worker.main import Worker
from tests.workers import request


def load(framework: str, path: str, *, trusted: bool = False, counters: tuple[str, ...] = ()) -> Any:
    """The trace of a model file, or the sentence that refuses it."""
    name, _, given = path.partition("|")
    name, _, signature = name.partition("@")
    if name.endswith("!"):  # nothing that would run the model
        name, counters = name[:-1], ("tf.profiler@function", "tf.profiler@frozen")
    try:
        file = kinds.read_model_file(framework, name, trusted=trusted)
        held = {framework: file._replace(trusted=trusted, signature=signature)}
        models = user_models.models({framework: name}, user_models.read_inputs(given.split() if given else ()), held)
        tasks = counters or user_models.counters_of({framework: name}, (), held)
        worker = Worker(request(framework, *tasks, model=models[framework]))
        return worker.take(TRACE, worker._meta()["params"])
    except (UsageError, FactoryError) as error:
        return str(error)


def flops(trace: Trace) -> int:
    """The trace's work under `matmul`."""
    return sum(BUILT_IN["matmul"].flops(work_of(op)) * op.calls for op in trace.ops)


def main(framework: str, *paths: str) -> None:
    """Print a line of JSON: what became of each, in a process that is confined from here on."""
    own = tempfile.mkdtemp()
    os.environ.update(TMPDIR=own, TORCHINDUCTOR_CACHE_DIR=own)
    tempfile.tempdir = own
    readable = confine.list_readable(Path(sys.executable), os.environ, os.getcwd())
    assert confine.holds(confine.confine(own, readable, False))
    found = {}
    for path in paths:
        made = load(framework, path)
        found[path] = made if isinstance(made, str) else f"{flops(made)} FLOP"
    print("FOUND", json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
