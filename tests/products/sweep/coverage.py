"""``make transformers``: counts every model of a finished sweep again by another way (dispatch_count.py), and compares.

``python -m tests.products.sweep.coverage LIBRARY DIR`` after ``reconcile sweep LIBRARY --out DIR`` writes DIR/independent.csv.
"""

from __future__ import annotations

import csv
import importlib
import multiprocessing
import os
import resource
import signal
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from reconcile.core import table
from reconcile.launch.workers import crashes

LONGEST = 300
"""Seconds that one model may take."""
MEMORY = 9 << 30
"""Bytes that a model's process may hold, so that it ends no other."""
JOBS = 2


def import_library(library: str) -> None:
    """Begin a process that counts many models: one thread each, nothing logged."""
    warnings.filterwarnings("ignore")
    import torch

    torch.set_num_threads(1)
    logs = getattr(importlib.import_module(library), "logging", None)
    if logs is not None:
        logs.set_verbosity_error()
        logs.disable_progress_bar()


def in_child(task: Callable[[str], str], argument: str) -> str:
    """The answer of a task, or why there is none. It runs in a child, which ends with everything that the library keeps, and in
    time: a library may swallow whatever is raised while it imports a module."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(read)
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(LONGEST)
            with open(write, "w", encoding="utf-8") as file:
                file.write(task(argument))
        finally:
            os._exit(0)
    os.close(write)
    with open(read, encoding="utf-8") as file:
        answer = file.read()
    _, status = os.waitpid(child, 0)
    return answer or f"its process {crashes.death_of(os.waitstatus_to_exitcode(status))}"


def count_flops(where: str) -> str:
    """FLOPs of one call of the small model of ``library:Class``."""
    from reconcile.core.framework import adapter_of
    from reconcile.core.registry import frameworks
    from tests.products.sweep.dispatch_count import count

    library, _, name = where.partition(":")
    factory: Any = getattr(importlib.import_module(library), name)
    model, _, inputs = adapter_of(frameworks()["torch"]).maker(factory)()
    return str(2 * count(model, inputs))


def count_again(where: str) -> str:
    """The same in a child; or why there are none."""
    return in_child(count_flops, where)


def main(library: str, folder: Path) -> int:
    """Compare the work of every model that ran with the other count of it."""
    with (folder / "sweep.csv").open(newline="") as file:
        ran = {row["model"]: row["work"] for row in csv.DictReader(file) if row["counter"] == "trace" and row["work"]}
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(JOBS, context, import_library, (library,)) as pool:
        counts = pool.map(count_again, [f"{library}:{name.rpartition('.')[2]}" for name in ran])
        rows = [(name, ran[name], count) for name, count in zip(ran, counts, strict=True)]
    (folder / "independent.csv").write_text(table.format_csv([("model", "work", "independent count"), *rows]))
    off = [row for row in rows if row[1] != row[2]]
    print(f"{len(rows)} models counted again by another way: {len(off)} differ", *off, sep="\n")
    return int(bool(off))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
