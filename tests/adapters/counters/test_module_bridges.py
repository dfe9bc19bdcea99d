"""Layers of paddle and functions of ultralytics-thop beside traces that lack their ops. test_small_networks.py has what fits."""

from __future__ import annotations

import pytest

from reconcile.core.causes import State
from reconcile.core.records import MAC, Entry, Ledger, Op, Shape, Sighting
from reconcile.core.results import Statement
from tests.adapters.counters import records_by_hand as by_hand

X, WEIGHT, Y = (2, 4, 7, 5), (6, 4, 3, 3), (2, 6, 5, 3)
MACS = 2 * 6 * 5 * 3 * 4 * 3 * 3
CONV = Op(
    "conv2d0", "paddle.nn.Conv2D", "a", by_hand.tensors(X), by_hand.tensors(Y), {"weight": [*WEIGHT], "bias": None, "groups": 1}
)  # fmt: skip


def convolution(weight: Shape = WEIGHT, output: Shape = Y, calls: int = 1) -> Op:
    settings = {"stride": [1, 1], "padding": [0, 0], "dilation": [1, 1], "transposed": False, "output_padding": [0, 0]}
    attrs = {"groups": 1, "bias": None, **settings}
    return Op("c", "aten.convolution", "a", by_hand.tensors(X, weight), by_hand.tensors(output), attrs, calls)


def product(name: str, width: int = 5) -> Op:
    return Op("p", name, "a", by_hand.tensors((2, width), (width, 3)), by_hand.tensors((2, 3)), {"bases": []})


NET = product("models.Net")._replace(inputs=by_hand.tensors((2, 5)))


def statement(counter: str, release: str, value: int, ran: tuple[Op, ...], *seen: Sighting) -> Statement:
    entry = Entry(seen[-1].entry, "a", seen[-1].op.op if counter == "paddle" else "functional", value, 1)
    package = {"paddle": "paddlepaddle"}.get(counter, counter)
    versions = {"torch": "2.13.0", package: release}
    return by_hand.statement(Ledger(counter, "torch", MAC, "cpu", versions, value, (entry,), seen, {}, ()), *ran)


@pytest.mark.parametrize(
    ("calls", "ran"),
    [
        (2, convolution()), (1, convolution(calls=2)),
        (1, convolution(weight=(6, 2, 3, 3))), (1, convolution(output=(2, 6, 5, 4))),
    ],
)  # fmt: skip
def test_a_layer_that_does_not_fit_stays_open(calls: int, ran: Op) -> None:
    layer = Sighting(CONV._replace(calls=calls), "conv2d0")
    assert statement("paddle", "3.3.1", calls * MACS, (ran,), layer).residual != 0


MM = product("aten.mm")


@pytest.mark.parametrize(
    ("calls", "ran", "residual"),
    [(1, (), None), (1, (product("aten.mm", 10),), None), (1, (MM._replace(layer="b"),), None), (2, (MM,), -2 * 30)],
)
def test_a_function_whose_op_did_not_run_is_unexplained(calls: int, ran: tuple[Op, ...], residual: int | None) -> None:
    called = Sighting(product("torch.matmul")._replace(id="function0", calls=calls), "a|functional")
    found = statement("ultralytics-thop", "2.2.3", calls * 30, ran, Sighting(NET, "a"), called)
    assert found.state is State.UNEXPLAINED
    assert found.residual == residual if residual else "the model ran other ops here" in found.reason
