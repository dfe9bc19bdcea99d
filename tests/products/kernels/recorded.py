"""What an H100 did: files of Nsight Compute 2025.3.1 (columns that are not read left out), and the traces of the same models.

``h100.csv`` has operators one by one, in ranges ``case:NAME``.  The other files are each one model, beside the products of its
trace on that GPU (PyTorch 2.11.0, cuDNN 9.19): ``mixed`` is docs/kernels.md's, ``blocks`` a transformer's block in bfloat16 with
causal attention, ``convs`` and ``convs32`` three convolutions in half and single precision; ``-training``: a step with SGD.
``mixed-watched`` is that step once more: the second one of a script, named by ``reconcile watch --mark --steps 2``.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from reconcile.core.causes import State
from reconcile.core.records import FORWARD, INPUT_GRADIENT, Tensor
from reconcile.core.results import TraceResult, TraceRow
from reconcile.core.work import Work
from reconcile.products.kernels import ncu
from reconcile.work import load, work_of
from tests.work.records_by_hand import make

FOLDER = Path(__file__).parent
CAUSAL = ("blocks", "blocks-training", "mixed", "mixed-training", "mixed-watched")
MODELS = (
    "blocks",
    "blocks-training",
    "convs",
    "convs-training",
    "convs32",
    "convs32-training",
    "mixed",
    "mixed-training",
    "mixed-watched",
)


def trace(rows: Iterable[TraceRow]) -> TraceResult:
    return TraceResult("trace@torch", "torch", State.EQUAL, "", True, "cuda", {}, tuple(rows), (), {}, {}, {}, ())


def model(name: str) -> tuple[TraceResult, tuple[ncu.Counted, ...]]:
    """The trace of a model as the GPU ran it, and its kernels. A causal mask discards the positions above the diagonal."""
    rows = []
    traced = FOLDER / f"{name.replace('watched', 'training')}.json"
    for index, op in enumerate(json.loads(traced.read_text())["ops"]):
        inputs, outputs = (tuple(Tensor(tuple(shape), "") for shape in op[side]) for side in ("inputs", "outputs"))
        above = 0
        if "attention" in op["op"] and name in CAUSAL:
            positions = op["inputs"][0][2]
            above = op["mac"] * (positions - 1) // (2 * positions)
        rows.append(
            TraceRow(
                str(index), op["layer"], op["layer"], op["op"], inputs, outputs, op["calls"], op["phase"],
                Work(mac=op["mac"], masked=above),
            )
        )  # fmt: skip
    return trace(rows), ncu.read_launches(FOLDER / f"{name}.csv")


def cases() -> dict[str, tuple[ncu.Counted, ...]]:
    """The kernels of each case of h100.csv. A kernel of a backward pass has no range of its case: it runs on another thread."""
    rows = list(csv.reader((FOLDER / "h100.csv").read_text().splitlines()))[2:]
    found: dict[str, list[ncu.Counted]] = {}
    name = ""
    for row, counted in zip(rows, ncu.read_launches(FOLDER / "h100.csv"), strict=True):
        named = re.search(r"case:(\w+)", row[1])
        name = named[1] if named else name
        found.setdefault(name, []).append(counted)
    return {name: tuple(some) for name, some in found.items()}


def row(op: str, inputs: Sequence[tuple[int, ...]], outputs: Sequence[tuple[int, ...]] = (), **attrs: Any) -> TraceRow:
    """An operator at the layer of its name, with the work of its formula."""
    load()
    made = make(op, list(inputs), list(outputs), **attrs)
    phase = INPUT_GRADIENT if op.endswith("_backward") else FORWARD
    return TraceRow(op, op, op, op, made.inputs, made.outputs, 1, phase, work_of(made))
