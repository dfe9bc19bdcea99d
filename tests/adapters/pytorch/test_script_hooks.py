"""TorchScript files whose modules have hooks: they are counted with what the hooks compute, and looked at as the rest is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import reconcile
from reconcile.launch.request import run_request
from reconcile.workflow import run

pytestmark = [
    pytest.mark.usefixtures("warmed"),
    pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning"),
]
ROWS, WIDTH = 3, 8
LINEAR = ROWS * WIDTH * WIDTH
GRAM = ROWS * WIDTH * ROWS


class Inner(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = torch.nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.a(x)


class Outer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x)


def gram(self: Any, x: tuple[torch.Tensor], y: torch.Tensor) -> torch.Tensor:
    return y @ y.t()


def twice(self: Any, x: tuple[torch.Tensor]) -> torch.Tensor:
    return x[0] @ x[0].t() @ x[0]


def saved(path: Path, inside: bool, before: Any = None, after: Any = None) -> str:
    """The file of a module of which the whole, or the layer inside, has these hooks."""
    model = Outer() if inside else Inner()
    part = model.inner if inside else model
    for hook, register in ((before, part.register_forward_pre_hook), (after, part.register_forward_hook)):
        if hook is not None:
            register(hook)
    torch.jit.script(model).save(str(path))
    return str(path)


@pytest.mark.parametrize("inside", [False, True], ids=["top", "inside"])
@pytest.mark.parametrize(
    ("before", "after", "products"),
    [
        (None, gram, LINEAR + GRAM),
        (twice, None, 2 * GRAM + LINEAR),
        (twice, gram, 3 * GRAM + LINEAR),
    ],
    ids=["after", "before", "both"],
)
@pytest.mark.slow
def test_what_hooks_compute_is_counted(tmp_path: Path, inside: bool, before: Any, after: Any, products: int) -> None:
    file = saved(tmp_path / "m.pt", inside, before, after)
    result = run(run_request(torch=file, inputs=[f"{ROWS},{WIDTH}"], counters=["flop_counter"]))
    (trace,) = result.traces
    assert (trace.complete, trace.totals["matmul"]) == (True, 2 * products)
    assert [(s.state.value, s.residual) for s in result.statements] == [("equal", 0)]


def test_a_step_of_a_script_whose_gradients_are_there_is_its_own_and_leaves_them():
    """The copy of a script is a clone, through which gradients would flow to the caller's weights."""
    model = torch.jit.script(torch.nn.Sequential(torch.nn.Linear(4, 4)))
    x = torch.rand(10, 4)
    for has_gradients in (False, True):
        if has_gradients:
            model(x).sum().backward()
        found = [None if weight.grad is None else weight.grad.clone() for weight in model.parameters()]
        step = reconcile.run(torch=model, inputs=x, counters=["flop_counter"], pass_="training", optimizer="sgd")
        (trace,) = step.result.traces
        assert (trace.reason, trace.totals["matmul"]) == ("", 2 * 2 * 10 * 4 * 4)  # forward, and the weight's gradient
        assert sum(row.calls for row in trace.rows if row.phase == "optimizer") == 2, trace.rows  # a weight and a bias
        for weight, before in zip(model.parameters(), found, strict=True):
            assert weight.grad is before or torch.equal(weight.grad, before)
