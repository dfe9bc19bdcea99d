"""What thop's hooks do not see: what runs aside of a called module's forward, and a forward in place of a class's own.

The input is (10, 4): a layer of 4 features, or a product with a (4, 4) matrix, does 10 * 4 * 4 = 160 multiply-adds.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import reconcile
from reconcile.adapters.counters.module_bridge import ASIDE_OF
from reconcile.core.causes import Cause, State
from reconcile.core.records import DIRECT, PRE_HOOK, UNLISTED

ONE = 10 * 4 * 4
LINEAR = "torch.nn.modules.linear.Linear"
square = torch.ones(4, 4)


class Net(nn.Module):
    """Holds a layer; ``way(net, x)`` is its forward."""

    def __init__(self, way: Callable[[Any, Any], Any], layer: nn.Module | None = None) -> None:
        super().__init__()
        self.q = layer or nn.Linear(4, 4)
        self.listed = [nn.Linear(4, 4)]
        self.way = way

    def forward(self, x: Any) -> Any:
        return self.way(self, x)


class Inherits(Net):
    def forward(self, x: Any) -> Any:
        return super().forward(x @ square)


class Decorated(Net):
    @torch.no_grad()
    def forward(self, x: Any) -> Any:
        return self.q(x @ square)


def call(net: Any, x: Any) -> Any:
    return net.q(x)


def multiply_before(layer: nn.Module) -> nn.Module:
    layer.register_forward_pre_hook(lambda _, inputs: (inputs[0] @ square,))
    return layer


def by_name(layer: Any) -> str:
    return f"{layer.__module__}.{layer.__qualname__}"


def run(model: nn.Module) -> Any:
    (statement,) = reconcile.run(torch=model, inputs=(torch.ones(10, 4),), counters=["thop"]).result.statements
    return statement


FUNCTIONAL = None
ASIDES: dict[str, tuple[Callable[[], nn.Module], list[tuple[int, tuple[str, str] | None]], int]] = {
    "a pre-hook": (lambda: Net(call, multiply_before(nn.Linear(4, 4))), [(ONE, (PRE_HOOK, "q"))], 1),
    "a pre-hook of the model": (lambda: multiply_before(Net(call)), [(ONE, (PRE_HOOK, "the model"))], 1),
    # power iteration is left out in evaluation: sigma is u . (W v), of (4, 4)
    "spectral_norm": (
        lambda: Net(call, nn.utils.spectral_norm(nn.Linear(4, 4))),
        [(4 * 4, (PRE_HOOK, "q")), (4, (PRE_HOOK, "q"))],
        1,
    ),
    "a plain list": (lambda: Net(lambda net, x: net.listed[0](net.q(x))), [(ONE, (UNLISTED, LINEAR))], 1),
    "made in the call": (lambda: Net(lambda net, x: nn.Linear(4, 4)(net.q(x))), [(ONE, (UNLISTED, LINEAR))], 1),
    "a forward": (lambda: Net(lambda net, x: net.q.forward(x)), [(ONE, (DIRECT, LINEAR))], 0),
    "a forward of one that calls": (
        lambda: Net(lambda net, x: net.q.forward(x), Decorated(call)), [(ONE, (DIRECT, by_name(Decorated)))], 1,
    ),
    "a forward, and the same product": (
        lambda: Net(lambda net, x: net.q.forward(nn.functional.linear(x, net.q.weight, net.q.bias))),
        [(ONE, FUNCTIONAL), (ONE, (DIRECT, LINEAR))],
        0,
    ),
    "the forward of the class above": (lambda: Inherits(call), [(ONE, FUNCTIONAL)], 1),
    "a decorated forward": (lambda: Decorated(call), [(ONE, FUNCTIONAL)], 1),
    "a product with the layer's weight": (lambda: Net(lambda net, x: x @ net.q.weight), [(ONE, FUNCTIONAL)], 0),
}  # fmt: skip
"""Name -> (the model, the multiply-adds that no hook sees with what they ran in, the calls of the layer that thop counts)."""


@pytest.mark.parametrize("name", ASIDES)
def test_what_no_hook_sees_is_said_to_be_what_it_is(name: str) -> None:
    make, asides, counted = ASIDES[name]
    statement = run(make())
    unseen = sum(macs for macs, _ in asides)
    assert (statement.from_total, statement.to_total) == (2 * ONE * counted, 2 * (ONE * counted + unseen))
    assert (statement.residual, {line.cause for line in statement.adjustments}) == (0, {Cause.CALL_NOT_SEEN})
    reasons = [evidence.formula for line in statement.adjustments for evidence in line.evidence]
    for reason, (_, aside) in zip(reasons, asides, strict=True):
        sentences = {kind: sentence % (aside[1] if aside else "") for kind, sentence in ASIDE_OF.items()}
        assert [kind for kind, sentence in sentences.items() if sentence in reason] == ([aside[0]] if aside else [])


OWN: dict[str, tuple[Callable[[Any, Any], Any], int, dict[Cause, int]]] = {
    # what a nn.Linear does in place of its own product, the multiply-adds that run, and those of each cause
    "its own product": (lambda self, x: nn.functional.linear(x, self.weight) + self.bias, ONE, {}),
    "its own product, and another": (lambda self, x: nn.functional.linear(x, self.weight, self.bias) @ square, 2 * ONE, {
        Cause.CALL_NOT_SEEN: ONE,
    }),
    "no product": (lambda self, x: x * 2, 0, {Cause.FORMULA_DIFFERS: -ONE}),
    "nothing": (lambda self, x: x, 0, {Cause.FORMULA_DIFFERS: -ONE}),
    "half of its product": (lambda self, x: nn.functional.linear(x[:5], self.weight).repeat(2, 1), ONE // 2, {
        Cause.FORMULA_DIFFERS: -ONE // 2,
    }),
    # thop counts the features of the output: a layer of 7
    "another size": (lambda self, x: nn.functional.linear(x, torch.ones(7, 4)), ONE // 4 * 7, {}),
}  # fmt: skip


@pytest.mark.parametrize("bound", [True, False])
@pytest.mark.parametrize("root", [True, False])
@pytest.mark.parametrize("name", OWN)
def test_a_forward_in_place_of_the_class_s_own(name: str, root: bool, bound: bool) -> None:
    forward, ran, causes = OWN[name]
    layer = nn.Linear(4, 4)
    weights = types.SimpleNamespace(
        weight=torch.ones(4, 4), bias=torch.ones(4)
    )  # a closure's own: a copy of it is none of ours
    layer.forward = types.MethodType(forward, layer) if bound else lambda x: forward(weights, x)
    statement = run(layer if root else nn.Sequential(layer))
    counted = ran - sum(causes.values())
    assert (statement.from_total, statement.to_total, statement.residual) == (2 * counted, 2 * ran, 0)
    assert {line.cause: line.amount for line in statement.adjustments} == {c: 2 * macs for c, macs in causes.items()}
    assert statement.state is (State.EXPLAINED if causes else State.EQUAL)


def test_a_layer_that_keeps_its_class_s_forward_is_held_to_its_formula() -> None:
    """The first call of the model calls the layer once, the next ones twice."""

    calls = [0]

    def forward(net: Any, x: Any) -> Any:
        calls[0] += 1
        return net.q(x) if calls[0] == 1 else net.q(net.q(x))

    statement = run(Net(forward))
    assert statement.state is State.UNEXPLAINED


def test_a_layer_that_is_called_with_its_input_by_name_is_counted() -> None:
    assert run(Net(lambda net, x: net.q(input=x))).state is State.EQUAL
