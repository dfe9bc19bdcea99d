"""Forward-mode differentiation: the tangents are work that hooks and graphs do not see, and it has a cause.

PyTorch computes the tangent of a product by two, one for each factor's tangent, also where that of the weight is zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.autograd import forward_ad

import reconcile
from reconcile.core.causes import Cause

pytestmark = pytest.mark.frameworks
COUNTERS = ("thop", "fvcore", "flop_counter")
LINEAR, CONVOLUTION = 5 * 8 * 16, 5 * 3 * 3 * 6  # Linear(8, 16) on 5 rows; Conv1d(1, 3, 3) on 5 rows of 8


class Derived(nn.Module):
    """Returns the tangent of ``function(model, x)``; ``beside(model, x)`` runs at the same level on tensors without one."""

    def __init__(self, function: Callable[[Any, torch.Tensor], torch.Tensor], beside: Any = None) -> None:
        super().__init__()
        self.layer, self.convolution = nn.Linear(8, 16), nn.Conv1d(1, 3, 3)
        self.function, self.beside = function, beside

    def forward(self, x: torch.Tensor) -> Any:
        with forward_ad.dual_level():
            value = self.function(self, forward_ad.make_dual(x, torch.ones_like(x)))
            more = self.beside(self, x) if self.beside else None
            return forward_ad.unpack_dual(value).tangent, more


WAYS: dict[str, tuple[Callable[[], nn.Module], int, int]] = {
    # the model, the multiply-adds of values, and those of tangents
    "a linear layer": (lambda: Derived(lambda model, x: model.layer(x)), LINEAR, 2 * LINEAR),
    "a convolution": (lambda: Derived(lambda model, x: model.convolution(x[:, None]).relu()), CONVOLUTION, 2 * CONVOLUTION),
    "no tangent beside": (
        lambda: Derived(lambda model, x: model.layer(x).softmax(-1), lambda model, x: model.layer(x)),
        2 * LINEAR,
        2 * LINEAR,
    ),
}  # fmt: skip


@pytest.mark.parametrize("convention", ["matmul", pytest.param("all", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", WAYS)
def test_tangents_have_a_cause(name: str, convention: str) -> None:
    make, values, tangents = WAYS[name]
    run = reconcile.run(torch=lambda: (make(), (torch.ones(5, 8),)), counters=COUNTERS, convention=convention)
    (trace,) = run.result.traces
    assert trace.totals["matmul"] == 2 * (values + tangents)
    assert {s.from_: s.residual for s in run.result.statements if s.to == trace.name} == dict.fromkeys(COUNTERS, 0)
    if convention == "matmul":
        seen = {ledger.counter: ledger.normalised_total for ledger in run.result.ledgers}
        assert seen == {"thop": 2 * values, "fvcore": 2 * values, "flop_counter": 2 * (values + tangents)}
        unseen = {(s.from_, a.cause): a.amount for s in run.result.statements for a in s.adjustments}
        assert unseen == {(counter, Cause.CALL_NOT_SEEN): 2 * tangents for counter in ("thop", "fvcore")}


def test_a_product_of_another_call_is_no_tangent() -> None:
    """The model runs a second layer in later calls alone: that is another model under the counters, and stays a residual."""
    calls: list[int] = []

    def grows(model: Any, x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return model.layer(x[: 3 + len(calls)])  # type: ignore[no-any-return]

    run = reconcile.run(torch=lambda: (Derived(grows), (torch.ones(8, 8),)), counters=["thop"])
    assert [s.residual != 0 for s in run.result.statements] == [True]
