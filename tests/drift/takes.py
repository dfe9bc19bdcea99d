"""Takes made by hand: the torch side of a convolution, a GRU and a dense layer, as two versions of thop see it.

Shapes are gru_demo's: conv (1, 1, 100, 256) -> (1, 32, 97, 127), GRU 4064 -> 96 over 97 steps, dense 96 -> 256.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from reconcile.core.records import MAC, Entry, Ledger, Op, Sighting, Tensor, Trace
from reconcile.drift import baselines
from reconcile.engine.settle import Collected

OLD, NEW = "0.0.31.post2001170342", "0.0.31.post2005241907"
CONV = 32 * 97 * 127 * (16 + 1)  # outputs x (taps and bias)
DENSE = 97 * 256 * 96  # outputs x in_features
GRU = 97 * (3 * 96 * (4064 + 96) + 13 * 96)  # steps x (products + gates and biases)
NN = "torch.nn.modules."
COMMITTED = Path(__file__).resolve().parents[2] / "reports/baselines/gru_demo/current.json"

META: dict[str, Any] = {
    "name": "toy",
    "params": {"units": 96},
    "layers": [["conv", "conv", "conv"], ["gru", "gru", "gru"], ["dense", "dense", "dense"]],
    "frameworks": ["torch"],
    "source": "abc",
    "doc": "",
    "notes": [],
    "published": [],
}


def tensors(*shapes: tuple[int, ...]) -> tuple[Tensor, ...]:
    return tuple(Tensor(shape, "float32") for shape in shapes)


def trace(steps: int = 97) -> Trace:
    ops = (
        Op(
            "op0", "aten.convolution", "conv", tensors((1, 1, 100, 256), (32, 1, 4, 4), (32,)),
            tensors((1, 32, 97, 127)),
            {"stride": [1, 2], "padding": [0, 0], "dilation": [1, 1], "transposed": False, "output_padding": [0, 0],
             "groups": 1},
        ),
        Op(
            "op1", "aten.gru", "gru",
            tensors((1, steps, 4064), (1, 1, 96), (288, 4064), (288, 96), (288,), (288,)),
            tensors((1, steps, 96), (1, 1, 96)),
            {"has_biases": True, "num_layers": 1, "bidirectional": False, "batch_first": True, "packed": False,
             "weights_at": 2},
        ),
        Op("op2", "aten.addmm", "dense", tensors((256,), (97, 96), (96, 256)), tensors((97, 256)),
           {"beta": 1, "alpha": 1}),
    )  # fmt: skip
    return Trace("torch", {"torch": "2.0.0"}, "meta", ops, (), (), ("conv", "gru", "dense"), ())


def module(path: str, kind: str, ins: tuple[int, ...], outs: tuple[int, ...], **attrs: Any) -> Sighting:
    attrs = {**attrs, "packed_batch": 0, "bases": [f"{NN}module.Module"]}
    return Sighting(Op(f"{path}#0", f"{NN}{kind}", path, tensors(ins), tensors(outs), attrs), path)


SIGHTINGS = (
    module("conv", "conv.Conv2d", (1, 1, 100, 256), (1, 32, 97, 127), in_channels=1, groups=1, weight=[32, 1, 4, 4], bias=[32]),
    module(
        "gru", "rnn.GRU", (1, 97, 4064), (1, 97, 96), input_size=4064, hidden_size=96, num_layers=1, bias=True,
        batch_first=True, bidirectional=False,
    ),
    module("dense", "linear.Linear", (1, 97, 96), (1, 97, 256), in_features=96, out_features=256, weight=[256, 96],
           bias=[256]),
)  # fmt: skip


def ledger(version: str = NEW, **values: int) -> Ledger:
    """What thop of that version reports; the old one has no GRU and counts multiplies and adds of a dense layer."""
    held = {"conv": CONV, "dense": 2 * DENSE} if version == OLD else {"conv": CONV, "gru": GRU, "dense": DENSE}
    held.update(values)
    kinds = {s.entry: s.op.op for s in SIGHTINGS}
    entries = tuple(Entry(name, name, kinds[name], value, 1) for name, value in held.items())
    versions = {"torch": "2.0.0", "thop": version}
    return Ledger("thop", "torch", MAC, "cpu", versions, sum(held.values()), entries, SIGHTINGS, {}, ())


def take(version: str = NEW, **values: int) -> Collected:
    return Collected(META, (trace(),), (ledger(version, **values),))


def with_ledger(found: Collected, changed: Ledger) -> Collected:
    """The same take with another ledger of that counter."""
    return replace(found, ledgers=tuple(changed if r.counter == changed.counter else r for r in found.ledgers))


def committed() -> Collected:
    """gru_demo as it is committed: both frameworks, all counters."""
    return baselines.load(COMMITTED).collected


def edited(change: Callable[[dict[str, Any]], object]) -> str:
    """The baseline of the newer take, changed."""
    data = json.loads(baselines.dumps(take()))
    change(data)
    return json.dumps(data)


def put(*keys: Any, value: Any) -> str:
    """The baseline with this value in that place."""

    def change(data: Any) -> None:
        for key in keys[:-1]:
            data = data[key]
        data[keys[-1]] = value

    return edited(change)
