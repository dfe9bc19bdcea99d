"""Models whose training step does more than their shapes say: what hangs on parameters. See stand_ins.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from .stand_ins import Case

# Training steps: the multiply-adds of forward and backward, and of what hangs on parameters.

STEP = 8 * 4 * 4 * 2
"""Work of ``square()`` on ``wide()``: forward, and the gradient of the weight; the input needs none."""
TRAINED: dict[str, Callable[[], Case]] = {}


def trained(make: Callable[[], Case]) -> Callable[[], Case]:
    TRAINED[make.__name__] = make
    return make


def square() -> nn.Linear:
    return nn.Linear(4, 4, bias=False)


def wide() -> torch.Tensor:
    return torch.ones(8, 4)


def orthogonal(parameter: torch.Tensor) -> None:
    """Two products of 4 x 4 x 4."""
    assert parameter.grad is not None
    parameter.grad = parameter.grad @ parameter.grad.T @ parameter.grad


TWO_PRODUCTS = 2 * 4 * 4 * 4


@trained
def hook_after_the_gradient() -> Case:
    model = square()
    model.weight.register_post_accumulate_grad_hook(orthogonal)
    return model, (wide(),), STEP + TWO_PRODUCTS


@trained
def hook_on_the_gradient() -> Case:
    model = square()
    model.weight.register_hook(lambda gradient: gradient @ gradient @ gradient)
    return model, (wide(),), STEP + TWO_PRODUCTS


@trained
def optimizer_in_the_backward_pass() -> Case:
    """The optimiser of the hook makes one more product, of a gradient that the step's own optimiser then finds gone."""
    model = square()

    class Products(torch.optim.Optimizer):
        def __init__(self, parameters: Any) -> None:
            super().__init__(parameters, {})

        def step(self, closure: Any = None) -> None:
            for group in self.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        parameter.data -= parameter.grad @ parameter.grad

    optimizer = Products(model.parameters())
    model.weight.register_post_accumulate_grad_hook(lambda _: optimizer.step())
    return model, (wide(),), STEP + 4 * 4 * 4
