"""Hooks of the model's own on a layer that a counter hooks as well: what they multiply is told from what the layer does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import reconcile

pytestmark = pytest.mark.frameworks

ROWS, WIDTH = 3, 4
ONE = ROWS * WIDTH * WIDTH
"""Multiply-adds of one call of the layer, or of a product of its output and a square matrix."""

HOOKS: dict[str, tuple[Callable[..., Any], int]] = {
    "a product": (lambda m, i, o: o @ torch.ones(WIDTH, WIDTH), ONE),
    "the layer's own product": (lambda m, i, o: nn.functional.linear(i[0], m.weight, m.bias), ONE),
    "the layer's forward": (lambda m, i, o: m.forward(i[0]) + o, ONE),
    "two products, one of them as large": (lambda m, i, o: o @ o.T @ o, 2 * ROWS * ROWS * WIDTH),
    "a smaller product": (lambda m, i, o: o[:1] @ torch.ones(WIDTH, WIDTH) + o, ONE // ROWS),
    "no product": (lambda m, i, o: o * 2, 0),
}
"""Name -> (hook, multiply-adds of it)."""


@pytest.mark.parametrize(("calls", "bias"), [(1, True), (2, False)])
@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_that_multiplies_is_a_call_not_seen(name: str, calls: int, bias: bool) -> None:
    hook, products = HOOKS[name]
    layer = nn.Linear(WIDTH, WIDTH, bias=bias)
    layer.register_forward_hook(hook)
    run = reconcile.run(torch=nn.Sequential(*[layer] * calls), inputs=(torch.ones(ROWS, WIDTH),), counters=["thop"])
    (statement,) = [s for s in run.result.statements if s.from_ == "thop"]
    assert statement.residual == 0
    assert [figure.flops for figure in run.verdict.figures] == [2 * calls * (ONE + products)]
    amounts = {line.cause.value: line.amount for line in statement.adjustments}
    assert amounts == ({"call-not-seen": 2 * calls * products} if products else {})
