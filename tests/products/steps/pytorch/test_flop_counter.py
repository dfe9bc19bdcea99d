"""flop_counter within a program's step: its entries by layer, and what ends its count without ending the step."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils import flop_counter

import reconcile
from reconcile.core.causes import State
from tests.products.steps import lies, nets
from tests.products.steps.nets import FIRST, MLP_STEP, SECOND, counted, rows


def entries(step: reconcile.Step) -> dict[tuple[str, str], int]:
    """The ledger's entries by layer and op."""
    (ledger,) = step.collected.ledgers
    return {(entry.layer, entry.op): entry.value for entry in ledger.entries}


def test_its_entries_are_those_of_layers() -> None:
    net = nets.mlp()
    step = counted(lambda: net(rows()).sum().backward(), net)
    assert entries(step) == {
        ("0", "aten.addmm"): FIRST, ("2", "aten.addmm"): SECOND, ("0", "aten.mm"): FIRST, ("2", "aten.mm"): 2 * SECOND,
    }  # fmt: skip


def test_a_product_after_a_call_has_one_layer() -> None:
    """Whether it is a loss is known when the step is done; the counter met it before."""
    net = nets.mlp()
    step = counted(lambda: net(rows()) @ lies.SQUARE, net)
    product = 2 * nets.ROWS * nets.OUT * nets.OUT
    assert entries(step)["(after the call)", "aten.mm"] == product
    assert nets.settled(step) == {}


def test_in_inference_mode_it_counts_the_parts_of_operators() -> None:
    net = nets.mlp()

    def run() -> None:
        with torch.inference_mode():
            net(rows())

    step = counted(run, net)
    assert sum(entries(step).values()) == nets.by_hand(run) == FIRST + SECOND


def test_a_formula_that_fails_ends_its_count_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The step goes on, and its number is known without the counter."""

    def broken(*_args: Any, **_kwargs: Any) -> int:
        raise TypeError("no shape")

    monkeypatch.setitem(flop_counter.flop_registry, torch.ops.aten.addmm, broken)
    net = nets.mlp()
    step = counted(lambda: net(rows()).sum().backward(), net)
    (ledger,) = step.result.ledgers
    assert ledger.state == State.NOT_COMPARABLE
    assert "its formula failed (no shape)" in ledger.reason
    assert step.metrics()["flops"] == MLP_STEP
    assert net[0].weight.grad is not None


@pytest.mark.parametrize(
    ("make", "given", "why"),
    [
        (nets.mlp, lambda: lies.Wrapper(rows()), "tensors of a class of their own (Wrapper)"),
        (lies.Branches, lambda: torch.ones(nets.ROWS, nets.WIDE), "it has no formula for cond"),
    ],
)
def test_what_it_would_count_otherwise_leaves_it_out(make: Any, given: Any, why: str) -> None:
    net = make()
    step = counted(lambda: net(given()).sum().backward(), net)
    (ledger,) = step.result.ledgers
    assert (ledger.state, ledger.total) == (State.NOT_COMPARABLE, None)
    assert why in ledger.reason
