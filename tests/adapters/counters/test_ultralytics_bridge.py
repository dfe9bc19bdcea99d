"""ultralytics-thop's functions beside the ops of a trace, on records by hand: what is explained, and what is not."""

from __future__ import annotations

import pytest

from reconcile.core.causes import Cause, State
from reconcile.core.conventions import BUILT_IN
from reconcile.core.records import MAC, Entry, Ledger, Op, Shape, Sighting, Tensor
from reconcile.core.results import Statement
from tests.adapters.counters import records_by_hand as by_hand

VERSIONS = {"torch": "2.13.0", "ultralytics-thop": "2.2.3"}
B, IN, OUT = 2, 5, 3
MACS = B * IN * OUT


def op(name: str, *shapes: Shape, id: str = "", calls: int = 1, layer: str = "a", dtype: str = "float32") -> Op:
    inputs = tuple(Tensor(shape, dtype) for shape in shapes)
    return Op(id or name, name, layer, inputs, (Tensor((B, OUT), dtype),), {"bases": []}, calls)


MATMUL_CALL = op("torch.matmul", (B, IN), (IN, OUT), id="function0")
MM = op("aten.mm", (B, IN), (IN, OUT), id="mm")
ADDMM = op("aten.addmm", (OUT,), (B, IN), (IN, OUT), id="addmm")


def statement(value: int, functions: tuple[Op, ...], ran: tuple[Op, ...], convention: str = "matmul") -> Statement:
    net = Op("n", "models.Net", "a", (Tensor((B, IN), "float32"),), (Tensor((B, OUT), "float32"),), {"bases": []})
    sightings = (Sighting(net, "a"), *(Sighting(function, "a|functional") for function in functions))
    entries = (Entry("a|functional", "a", "functional", value, 1),)
    ledger = Ledger("ultralytics-thop", "torch", MAC, "cpu", VERSIONS, value, entries, sightings, {}, ())
    return by_hand.statement(ledger, *ran, by=BUILT_IN[convention])


EXPLAINED = {
    # name: (counted, functions, ops, causes with their FLOPs)
    "one call": (MACS, (MATMUL_CALL,), (MM,), {}),
    "two of three calls": (2 * MACS, (MATMUL_CALL._replace(calls=2),), (MM._replace(calls=3),), {Cause.CALL_NOT_SEEN: 2 * MACS}),
    "two kinds of ops": (2 * MACS, (MATMUL_CALL._replace(calls=2),), (MM, ADDMM), {}),
    "another op beside it": (
        MACS,
        (MATMUL_CALL,),
        (MM, op("aten.mm", (B, 7), (7, OUT), id="other")),
        {Cause.CALL_NOT_SEEN: 2 * B * 7 * OUT},
    ),
    "whole numbers": (
        MACS,
        (op("torch.matmul", (B, IN), (IN, OUT), dtype="int64"),),
        (op("aten.mm", (B, IN), (IN, OUT), dtype="int64"),),
        {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EXPLAINED)
def test_a_counted_function_is_explained_by_the_ops_that_it_ran(name: str) -> None:
    counted, functions, ran, causes = EXPLAINED[name]
    assert by_hand.causes(statement(counted, functions, ran)) == causes
    assert {c: statement(counted, functions, ran, c).residual for c in BUILT_IN} == dict.fromkeys(BUILT_IN, 0)


UNEXPLAINED = {
    "no op": (),
    "a larger op": (op("aten.mm", (B, 2 * IN), (2 * IN, OUT), id="mm"),),
    "the op in another module": (MM._replace(layer="b"),),
}


@pytest.mark.parametrize("name", UNEXPLAINED)
def test_a_function_whose_op_did_not_run_is_unexplained(name: str) -> None:
    found = statement(MACS, (MATMUL_CALL,), UNEXPLAINED[name])
    assert found.state is State.UNEXPLAINED
    assert "the model ran other ops here" in found.reason


def test_more_calls_than_ran_are_unexplained() -> None:
    found = statement(2 * MACS, (MATMUL_CALL._replace(calls=2),), (MM,))
    assert (found.state, found.residual) == (State.UNEXPLAINED, -2 * MACS)
