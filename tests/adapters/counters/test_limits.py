"""The reason that a counter gives for a model that it cannot count is the real one: of models that do what the words say, and of
others that fail with the same error."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
import torch
from torch import nn

import reconcile
from reconcile.core.causes import State
from tests.adapters.counters.small_nets import Does

OUTSIDE = nn.Linear(8, 8)
WEIGHT = nn.Parameter(torch.ones(8, 8))
EYE = torch.eye(5).to_sparse()


def model(beside: Callable[[nn.Linear, torch.Tensor], torch.Tensor], device: str = "cpu") -> Does:
    """A layer, and what is done beside it."""
    return Does(lambda m, x: beside(m.layer, x), layer=nn.Linear(8, 8, device=device))


def on_a_thread(layer: nn.Linear, x: torch.Tensor) -> torch.Tensor:
    results: list[torch.Tensor] = []
    thread = threading.Thread(target=lambda: results.append(layer(x)))
    thread.start()
    thread.join()
    return results[0]


def gradient(layer: nn.Linear, x: torch.Tensor) -> torch.Tensor:
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        return torch.autograd.grad(layer(x).square().sum(), x)[0]


def rows(layer: nn.Linear, x: torch.Tensor) -> torch.Tensor:
    return torch.func.vmap(lambda row: row @ WEIGHT)(layer(x))


def checked(layer: nn.Linear, x: torch.Tensor) -> torch.Tensor:
    torch._check(x.shape[0] == 5)
    return layer(x)


def hooked() -> nn.Module:
    net, scale = model(lambda layer, x: layer(x)), nn.Parameter(torch.ones(8))
    net.layer.register_forward_hook(lambda _module, _inputs, out: out * scale)
    return net


TAKES_GRADIENTS = "cannot follow a model that takes gradients itself"
IS_A_CONSTANT = "no constant may require a gradient"
NO_CONSTANT = "no constant for a tensor that is sparse"
REASONS: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "a parameter from outside": (lambda: model(lambda layer, x: layer(x @ WEIGHT)), IS_A_CONSTANT),
    "a module from outside": (lambda: model(lambda layer, x: layer(OUTSIDE(x))), IS_A_CONSTANT),
    "a parameter of a hook": (hooked, IS_A_CONSTANT),
    "a parameter within vmap": (lambda: model(rows), IS_A_CONSTANT),
    "a thread": (lambda: model(on_a_thread), IS_A_CONSTANT),
    "autograd.grad": (lambda: model(gradient), TAKES_GRADIENTS),
    "func.grad": (
        lambda: model(lambda layer, x: torch.func.grad(lambda x: layer(x).square().sum())(x)),
        TAKES_GRADIENTS,
    ),
    "a sparse tensor from outside": (lambda: model(lambda layer, x: torch.sparse.mm(EYE, layer(x))), NO_CONSTANT),
    "a check of sizes": (lambda: model(checked), "a check of sizes (torch._check) takes none"),
    "a jagged tensor": (
        lambda: model(
            lambda layer, x: layer(torch.nested.as_nested_tensor([x[:2], x[2:]], layout=torch.jagged)).values()
        ),
        "has no value for a nested tensor",
    ),
}


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("name", REASONS)
def test_fvcore_says_why(name: str) -> None:
    make, words = REASONS[name]
    run = reconcile.run(torch=lambda: (make(), (torch.ones(5, 8),)), counters=["fvcore"])
    (ledger,) = run.result.ledgers
    assert ledger.state is State.NOT_COMPARABLE
    others = {words for _, words in REASONS.values()} - {words}
    assert [text for text in (words, *others) if text in ledger.reason] == [words]


def test_a_check_of_sizes_on_meta_is_no_convolution() -> None:
    run = reconcile.run(
        torch=model(checked, device="meta"), inputs=torch.empty(5, 8, device="meta"), counters=["fvcore"]
    )
    (ledger,) = run.result.ledgers
    assert "a check of sizes (torch._check) takes none" in ledger.reason
    assert "convolution" not in ledger.reason
