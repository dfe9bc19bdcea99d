"""``make transformers``: the sweep of a library, with cells in processes that import it once, and every model counted again by
another way (dispatch_count.py). Fails if the two counts of a model differ.

A cell here is what it is in ``reconcile sweep LIBRARY``, but for the processes: it is run in this one's children, many models in
each, as the imports take longer than a small model.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from reconcile.core import atomic, table
from reconcile.core.errors import UsageError
from reconcile.launch.in_process import collect_live
from reconcile.launch.workers import crashes
from reconcile.products.sweep import cell, cells, engine, listing, page, store
from reconcile.report.document import Text
from reconcile.report.document.markdown import to_markdown

LONGEST = 300
"""Seconds that one model may take."""
AGAIN = 1
"""Seconds after which a model that went on is ended again."""
MEMORY = 9 << 30
"""Bytes that a model's process may hold, so that it ends no other."""


def started(library: str) -> None:
    """Begin a process that runs many cells: a thread each, nothing logged."""
    warnings.filterwarnings("ignore")
    import torch

    torch.set_num_threads(1)
    logs = getattr(importlib.import_module(library), "logging", None)
    if logs is not None:
        logs.set_verbosity_error()
        logs.disable_progress_bar()


def named(where: str) -> Any:
    """The class ``library:Class``."""
    library, _, name = where.partition(":")
    return getattr(importlib.import_module(library), name)


class Late(BaseException):
    """A cell is not done in time. It is no Exception: a search for inputs takes those for a model's own and goes on."""


def in_time(task: Callable[[], Any]) -> Any:
    """What a task returns. Raises UsageError if it takes longer than LONGEST.

    The time limit is said again and again: a library may swallow whatever is raised while it imports a module.
    """

    def late(*_: object) -> None:
        raise Late

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, LONGEST, AGAIN)
    try:
        return task()
    except Late:
        raise UsageError(f"it takes longer than {LONGEST:g} s.") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def in_child(task: Callable[[str], str], argument: str) -> tuple[str, str]:
    """The answer of a task, or why there is none. It runs in a child, which ends with everything that the library keeps."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(read)
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
            with open(write, "w", encoding="utf-8") as file:
                file.write(task(argument))
        finally:
            os._exit(0)
    os.close(write)
    with open(read, encoding="utf-8") as file:
        answer = file.read()
    _, status = os.waitpid(child, 0)
    return answer, "" if answer else f"its process {crashes.death_of(os.waitstatus_to_exitcode(status))}"


def forked(text: str) -> str:
    """As cell.run_cell, in a child of this process."""
    answer, died = in_child(here, text)
    return answer or json.dumps({"key": json.loads(text)["key"], "died": died, "log": ""})


def here(text: str) -> str:
    """The answer of one cell, in this process."""
    request = json.loads(text)
    factories = request["cell"]["factories"]
    began = time.monotonic()
    try:
        with tempfile.TemporaryDirectory() as folder:
            models = {framework: named(where) for framework, where in factories.items()}
            answer = cell.answer(
                request,
                Path(folder),
                lambda r, tell: in_time(lambda: collect_live(models, None, r, tell)),
            )
    finally:
        gc.collect()  # models refer to themselves
    answer["cost"] = {"wall_s": round(time.monotonic() - began, 1)}
    return json.dumps(answer)


def again(where: str) -> str:
    """FLOPs of one call, by the independent count; or why there are none."""
    return "".join(in_child(independent, where))


def independent(where: str) -> str:
    """As ``again``, in this process."""
    from reconcile.core.framework import adapter_of
    from reconcile.core.registry import frameworks
    from tests.products.sweep.dispatch_count import count

    def counted() -> int:
        model, _, inputs = adapter_of(frameworks()["torch"]).maker(named(where))()
        return 2 * count(model, inputs)

    return str(in_time(counted))


def written(out: Path, command: str, finished: Sequence[engine.Finished], listed: int) -> None:
    """The page and tables of the sweep; the page says so if it is of a part of the models."""
    finished = sorted(finished, key=lambda one: one.name)
    sweep = page.describe_sweep(finished, command, reports=False)
    if len(finished) < listed:
        sweep = replace(sweep, blocks=(Text(f"{len(finished)} of {listed} models, drawn by chance."), *sweep.blocks))
    store.write_pages(
        out, {"README": to_markdown(sweep), "sweep": page.to_csv(finished), "costs": page.costs(finished)}
    )


def main(arguments: Sequence[str]) -> int:
    """Run the sweep, write its page, and compare."""
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--pass", dest="pass_", default="forward")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--most", type=int, help="How many models, drawn by chance.")
    parser.add_argument("--only", nargs="*", default=())
    asked = parser.parse_args(arguments)
    chosen = [c for c in listing.cells_of(asked.library) if not asked.only or c.name.rpartition(".")[2] in asked.only]
    manner = cells.manner_of({"pass_": asked.pass_}, ())
    where = {c.name: c.factories["torch"] for c in chosen}
    requests = [cells.request_of(c, manner, ()) for c in chosen]
    requests = sorted(requests, key=lambda request: request["key"])[: asked.most]  # in no order: any number is a sample
    atomic.prepare(asked.out)
    command = f"reconcile sweep {asked.library}" + (f" --pass {asked.pass_}" if asked.pass_ != "forward" else "")

    def pages(finished: list[engine.Finished]) -> None:
        written(asked.out, command, finished, len(chosen))

    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(asked.jobs, context, started, (asked.library,)) as pool:
        finished = engine.sweep(
            requests, asked.out, pool, last=pages, run=forked,
            each=lambda one: print(one.name, page.verdict(one), flush=True),
        )  # fmt: skip
        ran = [one for one in finished if one.outcome["traces"] and one.outcome["traces"][0]["work"] is not None]
        if asked.pass_ != "forward":
            return 0
        counted = dict(zip((one.name for one in ran), pool.map(again, [where[one.name] for one in ran]), strict=True))
    rows = [(one.name, one.outcome["traces"][0]["work"], counted[one.name]) for one in ran]
    (asked.out / "independent.csv").write_text(table.format_csv([("model", "work", "independent count"), *rows]))
    off = [row for row in rows if str(row[1]) != row[2]]
    print(f"{len(rows)} models counted again by another way: {len(off)} differ", *off, sep="\n")
    return int(bool(off))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
