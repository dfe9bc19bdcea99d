"""Models that do less, or other, work where something stands in for them: a copy, another device, other inputs, an outer shape.

Each is (model, inputs, multiply-adds of one plain call), or None in the last place where a plain call fails.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

ROWS, WIDTH, OUT = 2, 4, 8
ONE = ROWS * WIDTH * OUT
"""Multiply-adds of one call of ``linear()`` on ``x()``."""

Case = tuple[nn.Module, tuple[Any, ...], int | None]
CASES: dict[str, Callable[[], Case]] = {}


def case(make: Callable[[], Case]) -> Callable[[], Case]:
    CASES[make.__name__] = make
    return make


def linear() -> nn.Linear:
    return nn.Linear(WIDTH, OUT, bias=False)


def x() -> torch.Tensor:
    return torch.ones(ROWS, WIDTH)


class Asks(nn.Module):
    """Calls its layer as often as ``times(self, *inputs)`` says."""

    def __init__(self, times: Callable[..., int]) -> None:
        super().__init__()
        self.layer = linear()
        self.times = times

    def forward(self, *inputs: Any) -> torch.Tensor:
        total = self.layer(inputs[0])
        for _ in range(self.times(self, *inputs) - 1):
            total = total + self.layer(inputs[0])
        return total


CASES |= {
    # inputs
    "same_tensor_twice": lambda: (Asks(lambda _, a, b: 1 if a is b else 2), (x(),) * 2, ONE),
    "shared_memory": lambda: (Asks(lambda _, a, b: 1 if a.data_ptr() == b.data_ptr() else 3), _with_part(x()), ONE),
    "transposed": lambda: (Asks(lambda _, a: 2 if a.is_contiguous() else 1), (torch.ones(WIDTH, ROWS).t(),), ONE),
    "expanded": lambda: (
        Asks(lambda _, a: 1 if a.stride(0) == 0 else 2), (torch.ones(1, WIDTH).expand(ROWS, WIDTH),), ONE
    ),
    "sliced": lambda: (Asks(lambda _, a: 1 if a.storage_offset() else 2), (torch.ones(ROWS + 1, WIDTH)[1:],), ONE),
    "values_of_the_input": lambda: (Asks(lambda _, a: int(a.sum())), (x(),), ROWS * WIDTH * ONE),
    # the device
    "asks_for_the_device": lambda: (Asks(lambda _, a: 1 if a.device.type == "meta" else 4), (x(),), 4 * ONE),
    "another_dtype": lambda: (linear(), (torch.ones(ROWS, WIDTH, dtype=torch.int64),), None),
    "index_out_of_range": lambda: (nn.Embedding(3, WIDTH), (torch.full((ROWS,), 7),), None),
}  # fmt: skip


def _with_part(a: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return a, a[:1]


# The model's own object.


@case
def attribute_of_a_parameter() -> Case:
    model = Asks(lambda self, _: getattr(self.layer.weight, "times", 1))
    model.layer.weight.times = 3  # type: ignore[attr-defined]
    return model, (x(),), 3 * ONE


@case
def hook_that_knows_its_module() -> Case:
    model = nn.Sequential(linear(), nn.Linear(OUT, OUT, bias=False))
    known = {model[0]: 2, model[1]: 0}

    def again(module: nn.Module, inputs: Any, output: torch.Tensor) -> torch.Tensor:
        for _ in range(known.get(module, 5)):
            output = output + torch.nn.functional.linear(inputs[0], module.weight)  # type: ignore[arg-type]
        return output

    model[0].register_forward_hook(again)
    return model, (x(),), 3 * ONE + ROWS * OUT * OUT


@case
def replaced_forward() -> Case:
    model = linear()
    theirs = model.forward

    def forward(given: torch.Tensor) -> torch.Tensor:
        return theirs(given) + (theirs(given) if model.weight is weight else 0)

    weight = model.weight
    model.forward = forward  # type: ignore[method-assign]
    return model, (x(),), 2 * ONE


@case
def weak_reference() -> Case:
    model = Asks(lambda self, _: 2 if self.whose().weight is self.layer.weight else 1)
    model.whose = weakref.ref(model.layer)  # type: ignore[assignment]
    return model, (x(),), 2 * ONE


@case
def partial_of_its_own_part() -> Case:
    model = Asks(lambda self, _: 2 if self.bound.args[0] is self.layer else 1)
    model.bound = functools.partial(torch.nn.Module.__call__, model.layer)  # type: ignore[assignment]
    return model, (x(),), 2 * ONE


# The device.


@case
def asks_for_values() -> Case:
    def times(_: nn.Module, a: torch.Tensor) -> int:
        try:
            return 3 if float(a.sum()) else 2
        except (RuntimeError, ValueError, NotImplementedError):
            return 1

    return Asks(times), (x(),), 3 * ONE


@case
def assertion_on_values() -> Case:
    def times(_: nn.Module, a: torch.Tensor) -> int:
        torch._assert_async((a < 0).all())
        return 1

    return Asks(times), (x(),), None


@case
def unbatched_recurrence() -> Case:
    """PyTorch has no rule that maps a recurrent layer over a batch."""

    class Mapped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.recurrent = linear(), nn.GRU(OUT, OUT)

        def forward(self, given: torch.Tensor) -> torch.Tensor:
            return torch.vmap(lambda row: self.recurrent(row)[0])(self.layer(given)[:, None, None])

    return Mapped(), (x(),), None
