"""ultralytics-thop's functions beside traces that lack their ops, by hand. test_small_networks.py has what is explained."""

from __future__ import annotations

import pytest

from reconcile.core.causes import State
from reconcile.core.records import MAC, Entry, Ledger, Op, Shape, Sighting, Tensor
from reconcile.core.results import Statement
from tests.adapters.counters import records_by_hand as by_hand

VERSIONS = {"torch": "2.13.0", "ultralytics-thop": "2.2.3"}
B, IN, OUT = 2, 5, 3
MACS = B * IN * OUT


def op(name: str, *shapes: Shape, id: str) -> Op:
    return Op(id, name, "a", by_hand.tensors(*shapes), by_hand.tensors((B, OUT)), {"bases": []})


MATMUL_CALL = op("torch.matmul", (B, IN), (IN, OUT), id="function0")
MM = op("aten.mm", (B, IN), (IN, OUT), id="mm")


def statement(value: int, functions: tuple[Op, ...], ran: tuple[Op, ...]) -> Statement:
    net = Op("n", "models.Net", "a", (Tensor((B, IN), "float32"),), (Tensor((B, OUT), "float32"),), {"bases": []})
    sightings = (Sighting(net, "a"), *(Sighting(function, "a|functional") for function in functions))
    entries = (Entry("a|functional", "a", "functional", value, 1),)
    ledger = Ledger("ultralytics-thop", "torch", MAC, "cpu", VERSIONS, value, entries, sightings, {}, ())
    return by_hand.statement(ledger, *ran)


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
