"""Layers of paddle beside traces that lack their ops, on records by hand. test_small_networks.py has what is explained."""

from __future__ import annotations

from typing import Any

import pytest

from reconcile.core.records import MAC, Entry, Ledger, Op, Shape, Sighting, Tensor
from reconcile.core.results import Statement
from tests.adapters.counters import records_by_hand as by_hand

VERSIONS = {"torch": "2.13.0", "paddlepaddle": "3.3.1"}
X, WEIGHT, Y = (2, 4, 7, 5), (6, 4, 3, 3), (2, 6, 5, 3)
MACS = 2 * 6 * 5 * 3 * 4 * 3 * 3


def record(name: str, inputs: tuple[Shape, ...], output: Shape, id: str, calls: int = 1, **attrs: Any) -> Op:
    return Op(id, name, "a", tuple(Tensor(s, "float32") for s in inputs), (Tensor(output, "float32"),), attrs, calls)


def convolution(id: str = "c", weight: Shape = WEIGHT, output: Shape = Y, calls: int = 1) -> Op:
    settings = {"stride": [1, 1], "padding": [0, 0], "dilation": [1, 1], "transposed": False, "output_padding": [0, 0]}
    return record("aten.convolution", (X, weight), output, id, calls, groups=1, bias=None, **settings)


CONV = record("paddle.nn.Conv2D", (X,), Y, "conv2d0", weight=list(WEIGHT), bias=None, groups=1)


def statement(value: int, layers: tuple[Op, ...], ran: tuple[Op, ...]) -> Statement:
    entries = (Entry("conv2d0", "a", "paddle.nn.Conv2D", value, 1),) if value else ()
    sightings = tuple(Sighting(layer, layer.id) for layer in layers)
    ledger = Ledger("paddle", "torch", MAC, "cpu", VERSIONS, value, entries, sightings, {}, ())
    return by_hand.statement(ledger, *ran)


OPEN = {
    "more calls than in the trace": ((CONV._replace(calls=2),), (convolution(),), 2),
    "fewer calls than in the trace": ((CONV,), (convolution(calls=2),), 1),
    "another weight": ((CONV,), (convolution(weight=(6, 2, 3, 3)),), 1),
    "another size of output": ((CONV,), (convolution(output=(2, 6, 5, 4)),), 1),
}


@pytest.mark.parametrize("name", OPEN)
def test_what_does_not_fit_stays_open(name: str) -> None:
    layers, ops, times = OPEN[name]
    assert statement(times * MACS, layers, ops).residual != 0
