"""The engine and reports on a made-up trace and ledger of N ops: ``growth.py N csv,md,json``.

Prints {records, engine, <format>...: [seconds, bytes]} as JSON: how long each took, and the peak of resident memory
after it.  The ops are of four kinds,
a matrix product, an activation, a view and a product of two tensors, in a layer of their own for every four.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from reconcile.core.atomic import write
from reconcile.core.conventions import BUILT_IN, Conventions
from reconcile.core.records import Entry, Ledger, Op, Sighting, Tensor, Trace
from reconcile.engine.settle import Collected, settle
from reconcile.report.reports import render

VERSIONS = {"torch": "2.13.0"}


def tensor(*shape: int) -> Tensor:
    return Tensor(shape, "float32")


def op(index: int) -> Op:
    layer = f"block{index // 20}.part{index // 4 % 5}"
    inputs, outputs = (tensor(8, 16),), (tensor(8, 16),)
    if index % 4 == 0:
        inputs = (tensor(16), tensor(8, 32), tensor(32, 16))
        return Op(f"op{index}", "aten.addmm", layer, inputs, outputs, {"beta": 1, "alpha": 1})
    if index % 4 == 1:
        return Op(f"op{index}", "aten.relu", layer, inputs, outputs, {})
    if index % 4 == 2:
        return Op(f"op{index}", "aten.view", layer, inputs, (tensor(4, 32),), {"size": [4, 32]})
    return Op(f"op{index}", "aten.mul", layer, (*inputs, *inputs), outputs, {})


def made(count: int) -> tuple[Trace, Ledger]:
    """A trace, and what flop_counter would say of it."""
    ops = [op(index) for index in range(count)]
    sightings = tuple(Sighting(o, f"{o.layer}|{o.op}") for o in ops)
    layers = tuple(dict.fromkeys(o.layer for o in ops))
    entries = tuple(
        Entry(s.entry, s.op.layer, s.op.op, 2 * 8 * 32 * 16, 1) for s in sightings if s.op.op == "aten.addmm"
    )
    total = sum(entry.value for entry in entries)
    trace = Trace("torch", VERSIONS, "meta", tuple(ops), (), (), layers, ())
    return trace, Ledger("flop_counter", "torch", "FLOP", "cpu", VERSIONS, total, entries, sightings, {}, ())


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    count, formats = int(sys.argv[1]), sys.argv[2].split(",")
    start = time.perf_counter()
    trace, ledger = made(count)
    found = {"records": [time.perf_counter() - start, peak()]}
    meta = {"layers": [], "name": "growth", "params": {}, "doc": "", "notes": [], "frameworks": ["torch"]}
    start = time.perf_counter()
    result = settle(Collected(meta, (trace,), (ledger,)), Conventions(BUILT_IN["all"]))
    found["engine"] = [time.perf_counter() - start, peak()]
    if result.exit_code:
        sys.exit("the books of the made-up run do not close")
    with TemporaryDirectory() as folder:
        for name in formats:
            start = time.perf_counter()
            write(Path(folder), "growth", render(result, (name,)))
            found[name] = [time.perf_counter() - start, peak()]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
