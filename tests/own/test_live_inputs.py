"""What an input at hand has beside its values is there in every call: whether it requires a gradient, and its attributes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import reconcile

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")

pytestmark = pytest.mark.frameworks
SIZE, ROWS = 4, 10
PRODUCT = 2 * ROWS * SIZE * SIZE


class Asks(torch.nn.Module):
    """Multiplies once more for an input that requires a gradient, and once more for one that is marked."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(SIZE, SIZE)

    def forward(self, x: Any) -> Any:
        y = self.layer(x)
        y = self.layer(y) if x.requires_grad else y
        return self.layer(y) if getattr(x, "marked", False) else y


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("marked", [False, True])
def test_an_input_keeps_what_a_model_may_ask_for(requires_grad: bool, marked: bool) -> None:
    x = torch.ones(ROWS, SIZE, requires_grad=requires_grad)
    x.marked = marked
    run = reconcile.run(torch=Asks(), inputs=x, counters=["flop_counter"])
    assert [figure.flops for figure in run.verdict.figures] == [PRODUCT * (1 + requires_grad + marked)]


@pytest.mark.parametrize("requires_grad", [False, True])
def test_an_input_that_requires_a_gradient_gets_it(requires_grad: bool) -> None:
    """Of a layer: forward, the gradient of its weight, and that of its input where somebody wants it."""
    x = torch.ones(ROWS, SIZE, requires_grad=requires_grad)
    run = reconcile.run(torch=torch.nn.Linear(SIZE, SIZE), inputs=x, counters=["flop_counter"], pass_="training")
    assert [figure.flops for figure in run.verdict.figures] == [PRODUCT * (2 + requires_grad)]
    (trace,) = run.result.traces
    assert [note for note in trace.notes if "and the inputs that require one" in note] != [] or not requires_grad


class AsksForMore(torch.nn.Module):
    """Multiplies once more for an input that is a parameter, and once more for one that has a gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(SIZE, SIZE)

    def forward(self, x: Any) -> Any:
        y = self.layer(x)
        y = self.layer(y) if isinstance(x, torch.nn.Parameter) else y
        return self.layer(y) if x.grad is not None and int(x.grad.sum()) == 2 * ROWS * SIZE else y


@pytest.mark.parametrize("is_parameter", [False, True])
@pytest.mark.parametrize("has_gradient", [False, True])
def test_an_input_keeps_its_gradient_and_its_class(is_parameter: bool, has_gradient: bool) -> None:
    x = torch.ones(ROWS, SIZE)
    x = torch.nn.Parameter(x) if is_parameter else x.requires_grad_()
    x.grad = torch.full((ROWS, SIZE), 2.0) if has_gradient else None
    run = reconcile.run(torch=AsksForMore(), inputs=x, counters=["flop_counter"])
    assert [figure.flops for figure in run.verdict.figures] == [PRODUCT * (1 + is_parameter + has_gradient)]


class Multiplies(torch.nn.Module):
    """A layer of what a function makes of a tensor that is in an object."""

    def __init__(self, compute: Any) -> None:
        super().__init__()
        self.layer, self.compute = torch.nn.Linear(SIZE, SIZE), compute

    def forward(self, given: Any) -> Any:
        return self.layer(self.compute(given.deep[0]["x"]))


@pytest.mark.parametrize(
    ("compute", "is_published"),
    [
        (lambda x: torch.from_numpy(x.numpy() * 3), False),
        (lambda x: x * torch.from_numpy(numpy.arange(SIZE, dtype="float32")), True),
        (lambda x: torch.from_numpy(x.numpy().copy()), True),
    ],
)
def test_tensors_in_an_object_among_the_inputs_have_other_values_in_the_second_call(
    compute: Any, is_published: bool
) -> None:
    x = torch.arange(1.0, 1 + ROWS * SIZE).reshape(ROWS, SIZE)
    before, version = x.clone(), x._version
    given = SimpleNamespace(deep=[{"x": x}])
    run = reconcile.run(torch=Multiplies(compute), inputs=(given,), counters=["flop_counter"])
    assert [figure.flops for figure in run.verdict.figures] == [PRODUCT] * is_published
    assert (torch.equal(x, before), x._version) == (True, version)


class Halves(torch.nn.Module):
    """A layer that the program keeps, and a number, for which a second call is made."""

    def __init__(self, kept: Any) -> None:
        super().__init__()
        self.kept = kept

    def forward(self, x: Any) -> Any:
        return self.kept(x) * 0.5


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.complex64])
def test_a_module_that_the_program_keeps_is_as_it_was(dtype: Any) -> None:
    """Whatever a second call of it is made with: the factory returns the one module, not a fresh one."""
    kept = torch.nn.Linear(SIZE, SIZE, dtype=dtype)
    kept.register_buffer("mask", torch.tensor([0.0, -float("inf"), float("nan"), 1.0]).to(dtype))
    x = torch.ones(ROWS, SIZE, dtype=dtype)
    before = {name: value.clone() for name, value in kept.state_dict().items()}
    given = x.clone()
    reconcile.run(torch=lambda: (Halves(kept), (x,)), counters=["flop_counter"])
    torch.testing.assert_close(dict(kept.state_dict()), before, rtol=0, atol=0, equal_nan=True)
    torch.testing.assert_close(x, given, rtol=0, atol=0)
