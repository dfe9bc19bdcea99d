"""Ways to run a PyTorch model under a transform or a mode: torch.func, nested tensors, checkpoints, autocast, gradients off."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from tests.adapters.pytorch.way_parts import LINEAR, NARROW, WIDE, Way, applied, into, x

WAYS: dict[str, Way] = {}
way = partial(into, WAYS)


# Transforms.


@way("torch.func.vmap", LINEAR)
def vmapped() -> Any:
    return applied(lambda lin, x: torch.func.vmap(lin)(x))


class Ensemble(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.models = nn.ModuleList(nn.Linear(WIDE, NARROW) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights, buffers = torch.func.stack_module_state(list(self.models))
        call = torch.func.functional_call
        return torch.func.vmap(lambda w, b: call(self.models[0], (w, b), (x,)))(weights, buffers)


@way("an ensemble by vmap", 3 * LINEAR)
def ensemble() -> Any:
    return Ensemble(), x()


@way("torch.func.functional_call", LINEAR)
def functional_call() -> Any:
    return applied(lambda lin, x: torch.func.functional_call(lin, dict(lin.named_parameters()), (x,)))


@way("torch.func.grad", 2 * LINEAR)  # forward, and one product for the input's gradient
def func_grad() -> Any:
    return applied(lambda lin, x: torch.func.grad(lambda a: lin(a).sum())(x))


# the value, and a product for each tangent: also for that of the weights, which PyTorch fills with zeros
@way("torch.func.jvp", 3 * LINEAR)
def func_jvp() -> Any:
    return applied(lambda lin, x: torch.func.jvp(lin, (x,), (x,)))


@way("a nested tensor (jagged)", LINEAR)
def nested_jagged() -> Any:
    return applied(lambda lin, x: lin(torch.nested.nested_tensor([x[:1], x[1:]], layout=torch.jagged)).values())


@way("a nested tensor (strided)", LINEAR)
def nested_strided() -> Any:
    return applied(
        lambda lin, x: torch.nested.to_padded_tensor(lin(torch.nested.as_nested_tensor([x[:1], x[1:]])), 0.0)
    )


@way("checkpoint(use_reentrant=True)", LINEAR)
def checkpoint_reentrant() -> Any:
    return applied(lambda lin, x: checkpoint(lin, x, use_reentrant=True))


@way("checkpoint(use_reentrant=False)", LINEAR)
def checkpoint_modern() -> Any:
    return applied(lambda lin, x: checkpoint(lin, x, use_reentrant=False))


@way("autocast", LINEAR)
def autocast() -> Any:
    def call(lin: nn.Module, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return lin(x)

    return applied(call)


def _within(context: Callable[[], Any]) -> Callable[[nn.Module, torch.Tensor], Any]:
    def call(lin: nn.Module, x: torch.Tensor) -> Any:
        with context():
            return lin(x)

    return call


@way("inference_mode inside", LINEAR)
def inference_mode() -> Any:
    return applied(_within(torch.inference_mode))


@way("no_grad inside", LINEAR)
def no_grad() -> Any:
    return applied(_within(torch.no_grad))


@way("enable_grad inside", LINEAR)
def enable_grad() -> Any:
    return applied(_within(torch.enable_grad))


@way("forward called directly", LINEAR)
def direct() -> Any:
    return applied(lambda lin, x: lin.forward(x))
