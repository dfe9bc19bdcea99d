"""Ledger of what MKL and oneDNN wrote while a model ran, one entry per module and ATen op.

The logs are turned on at run time, for this call alone, and read after each op: a line belongs to the op in which it was written.
The amounts are those of the lines; the op says where they stand and on what tensors it ran.
"""

from __future__ import annotations

import torch

from ....core.records import MAC, Entry, Ledger, Op, Sighting
from ...pytorch.model import TorchModel, versions
from ...pytorch.trace import FusedCalls, Recorder
from ...pytorch.tracing import higher_order
from ...pytorch.tracing.module_path import ModulePath
from ...shared.refusal import BeyondCounter
from . import PRODUCTS
from .listening import SILENT, Listening
from .log import Product

COUNTER = "cpu_libraries"
ON_META = "on %s nothing is multiplied on the CPU, so MKL and oneDNN write nothing: let the model run on the CPU (--device cpu)"
PROBE = 64
"""Rows and columns of a product that any BLAS takes."""


class Witness(Recorder):
    """Records every op with the products that were written while it ran."""

    def __init__(self, path: ModulePath, listening: Listening) -> None:
        super().__init__(path)
        self.listening = listening
        self.total = 0

    def add(self, op: Op) -> None:
        products = self.listening.heard()
        self.total += sum(p.macs for p in products)
        if products:
            op = op._replace(
                attrs=dict(op.attrs, **{PRODUCTS: [[p.routine, p.sizes, p.algorithm, p.dtype] for p in products]})
            )
        super().add(op)


def _ran(model: TorchModel) -> Witness:
    module = model.build(model.device)
    inputs = model.example(model.device)
    path = ModulePath(module)
    with Listening() as listening:
        torch.ones(PROBE, PROBE) @ torch.ones(PROBE, PROBE)
        if not listening.heard():
            raise BeyondCounter(SILENT)
        witness = Witness(path, listening)
        with torch.no_grad(), higher_order.uncompiled(), FusedCalls(witness), witness, path:
            module(*inputs)
        witness.total += sum(p.macs for p in listening.heard())
    return witness


def capture(counter: str, model: TorchModel) -> Ledger:
    """Run one inference call of a fresh module on the CPU, and record what the libraries wrote."""
    if model.device != "cpu":
        raise BeyondCounter(ON_META % model.device)
    witness = _ran(model)
    ops = list(witness.ops.values())
    amounts: dict[tuple[str, str], list[int]] = {}
    for op in ops:
        products = [Product(*p) for p in op.attrs.get(PRODUCTS, ())]
        if products:
            held = amounts.setdefault((op.layer, op.op), [0, 0])
            held[0] += op.calls * sum(p.macs for p in products)
            held[1] += op.calls
    entries = [Entry("{}|{}".format(*key), *key, value, calls) for key, (value, calls) in amounts.items()]
    after = witness.total - sum(e.value for e in entries)
    if after:
        entries.append(Entry("(after)", "", "after the last op", after, 1))
    sightings = tuple(Sighting(op, f"{op.layer}|{op.op}") for op in ops)
    return Ledger(
        COUNTER,
        "torch",
        MAC,
        model.device,
        versions(witness.path.root),
        witness.total,
        tuple(entries),
        sightings,
        {},
        (),
    )
