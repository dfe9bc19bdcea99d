"""A training step with any optimizer of torch.optim: by its name, or like one at hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import reconcile
from reconcile.adapters.pytorch import FRAMEWORK
from tests.adapters.counters.small_nets import Does

INPUTS, INNER, OUTPUTS, BATCH = 6, 8, 4, 2
OTHERS = {
    "lbfgs": "calls the model again inside its step",
    "sparseadam": "cannot step a.weight: SparseAdam does not support dense",
}
STEP = 2 * BATCH * (2 * INPUTS * INNER + 3 * INNER * OUTPUTS)  # the input itself needs no gradient
WEIGHTS = INPUTS * INNER + INNER * OUTPUTS


def two_layers() -> Any:
    a, b = torch.nn.Linear(INPUTS, INNER, bias=False), torch.nn.Linear(INNER, OUTPUTS, bias=False)
    return Does(lambda m, x: m.b(m.a(x).relu()), a=a, b=b)


def step(optimizer: Any, model: Any = None, convention: str = "matmul") -> Any:
    return reconcile.run(
        torch=model or two_layers(), inputs=f"{BATCH},{INPUTS}", pass_="training", optimizer=optimizer,
        counters=("flop_counter",), convention=convention,
    )  # fmt: skip


def of_muon(rows: int, columns: int) -> int:
    """Five Newton-Schulz steps: X X', (X X')^2 and a product of that with X, by the shorter side."""
    short, long = sorted((rows, columns))
    return 5 * 2 * (2 * short * short * long + short**3)


@pytest.mark.parametrize("name", [name for name in FRAMEWORK.optimizers if name not in OTHERS])
def test_its_work_is_known_and_its_products_counted(name: str) -> None:
    run = step(name.upper())
    (trace,) = run.result.traces
    assert (trace.complete, run.exit_code) == (True, 0), trace.reason
    products = {"muon": of_muon(INNER, INPUTS) + of_muon(OUTPUTS, INNER)}
    if name != "adafactor":  # means over rows and columns, and their outer product
        assert trace.totals["matmul"] == STEP + products.get(name, 0)
    assert f"one step of torch.optim.{name}," in trace.notes[0].lower()


@pytest.mark.parametrize("name", OTHERS)
def test_one_that_takes_no_such_step_says_why(name: str) -> None:
    with pytest.raises(reconcile.ReconcileError, match=OTHERS[name]):
        step(name)


def test_the_names_are_those_of_torch() -> None:
    kinds = [k for k in vars(torch.optim).values() if isinstance(k, type) and issubclass(k, torch.optim.Optimizer)]
    assert {k.__name__.lower() for k in kinds} - {"optimizer"} == set(FRAMEWORK.optimizers)
    assert FRAMEWORK.optimizers[0] == "sgd"


def test_one_at_hand_steps_its_parameters_with_its_options() -> None:
    """Plain SGD takes a product and a sum of each weight; weight decay one more of each. Only the first layer is stepped."""
    plain, net = step("sgd", convention="all"), two_layers()
    held = torch.optim.SGD([{"params": net.a.parameters(), "weight_decay": 0.1}], lr=0.5, foreach=True)
    before = [weight.clone() for weight in net.parameters()]
    run = step(held, net, "all")
    decayed = 2 * INPUTS * INNER
    left_out = 2 * INNER * OUTPUTS
    (one,), (other,) = plain.result.traces, run.result.traces
    assert other.totals["all"] - one.totals["all"] == decayed - left_out
    assert "one step of torch.optim.SGD(weight_decay=0.1, lr=0.5), one" in other.notes[0]
    stepped = [a for a, b in zip(before, net.parameters(), strict=True) if not torch.equal(a, b)]
    assert stepped == []  # the model at hand stays as it is
    assert not held.state


@pytest.mark.parametrize(
    ("optimizer", "said"),
    [
        ("adamx", "unknown optimizer 'adamx'. Did you mean adam"),
        (3, "optimizer= is int; give an optimizer"),
        ("ftrl", "has no ftrl"),
    ],
)
def test_what_is_no_optimizer_of_torch(optimizer: Any, said: str) -> None:
    with pytest.raises(reconcile.ReconcileError, match=said):
        step(optimizer)
