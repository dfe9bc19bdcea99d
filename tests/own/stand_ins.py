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


# Inputs.


@case
def same_tensor_twice() -> Case:
    a = x()
    return Asks(lambda _, a, b: 1 if a is b else 2), (a, a), ONE


@case
def same_tensor_by_name() -> Case:
    a = x()

    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = linear()

        def forward(self, both: dict[str, torch.Tensor]) -> Any:
            first = self.layer(both["query"])
            return first if both["query"] is both["key"] else first + self.layer(both["key"])

    return Named(), ({"query": a, "key": a},), ONE


@case
def shared_memory() -> Case:
    a = x()
    return Asks(lambda _, a, b: 1 if a.data_ptr() == b.data_ptr() else 3), (a, a[:1]), ONE


@case
def transposed() -> Case:
    return Asks(lambda _, a: 2 if a.is_contiguous() else 1), (torch.ones(WIDTH, ROWS).t(),), ONE


@case
def expanded() -> Case:
    return Asks(lambda _, a: 1 if a.stride(0) == 0 else 2), (torch.ones(1, WIDTH).expand(ROWS, WIDTH),), ONE


@case
def sliced() -> Case:
    return Asks(lambda _, a: 1 if a.storage_offset() else 2), (torch.ones(ROWS + 1, WIDTH)[1:],), ONE


@case
def values_of_the_input() -> Case:
    return Asks(lambda _, a: int(a.sum())), (x(),), ROWS * WIDTH * ONE


# The model's own object.


@case
def attribute_of_a_parameter() -> Case:
    model = Asks(lambda self, _: getattr(self.layer.weight, "times", 1))
    model.layer.weight.times = 3  # type: ignore[attr-defined]
    return model, (x(),), 3 * ONE


@case
def attribute_of_a_buffer() -> Case:
    model = Asks(lambda self, _: getattr(self.table, "times", 1))
    model.register_buffer("table", torch.ones(1))
    model.table.times = 2  # type: ignore[union-attr]
    return model, (x(),), 2 * ONE


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
def hook_that_asks_which_module() -> Case:
    model = nn.Sequential(linear())

    def again(module: nn.Module, inputs: Any, output: torch.Tensor) -> torch.Tensor:
        if module is not model[0]:
            return output
        return output + torch.nn.functional.linear(inputs[0], model[0].weight)

    model[0].register_forward_hook(again)
    return model, (x(),), 2 * ONE


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
def asks_for_the_device() -> Case:
    return Asks(lambda _, a: 1 if a.device.type == "meta" else 4), (x(),), 4 * ONE


@case
def asks_whether_on_meta() -> Case:
    return Asks(lambda self, _: 1 if self.layer.weight.is_meta else 2), (x(),), 2 * ONE


@case
def another_dtype() -> Case:
    return linear(), (torch.ones(ROWS, WIDTH, dtype=torch.int64),), None


@case
def no_factorization() -> Case:
    def times(_: nn.Module, a: torch.Tensor) -> int:
        torch.linalg.cholesky(-torch.eye(WIDTH, device=a.device))
        return 1

    return Asks(times), (x(),), None


@case
def index_out_of_range() -> Case:
    return nn.Embedding(3, WIDTH), (torch.full((ROWS,), 7),), None


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


# Tensors whose class takes operators apart.


class LowRank(torch.Tensor):
    """A matrix of rank 1 that keeps its factors."""

    @staticmethod
    def __new__(cls, left: torch.Tensor, right: torch.Tensor) -> LowRank:
        size = (left.shape[0], right.shape[1])
        return torch.Tensor._make_wrapper_subclass(cls, size, dtype=left.dtype, device=left.device)  # type: ignore[attr-defined,no-any-return]

    def __init__(self, left: torch.Tensor, right: torch.Tensor) -> None:
        self.left, self.right = left, right

    def __deepcopy__(self, memo: dict[int, Any]) -> LowRank:
        return type(self)(self.left.clone(), self.right.clone())

    def __repr__(self) -> str:  # type: ignore[override]
        return "LowRank()"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.mm.default:
            first, second = args
            return (first @ second.left) @ second.right if isinstance(second, LowRank) else first @ second
        if func in (torch.ops.aten.detach.default, torch.ops.aten.alias.default):
            return cls(args[0].left, args[0].right)
        if func is torch.ops.aten.t.default:
            return LowRank(args[0].right.t(), args[0].left.t())
        raise NotImplementedError(func)


class Holds(nn.Module):
    """A product with a matrix that it holds."""

    def __init__(self, matrix: torch.Tensor) -> None:
        super().__init__()
        self.matrix = matrix

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        return torch.mm(given, self.matrix)


@case
def low_rank_attribute() -> Case:
    return Holds(LowRank(torch.ones(WIDTH, 1), torch.ones(1, OUT))), (x(),), ROWS * (WIDTH + OUT)


@case
def low_rank_weight() -> Case:
    model = linear()
    model.weight = nn.Parameter(LowRank(torch.ones(OUT, 1), torch.ones(1, WIDTH)), requires_grad=False)
    return model, (x(),), ROWS * (WIDTH + OUT)


class Quantised(torch.Tensor):
    """Whole numbers and a scale per row, as torchao keeps a weight; every operator runs on what they stand for."""

    @staticmethod
    def __new__(cls, whole: torch.Tensor, scale: torch.Tensor) -> Quantised:
        return torch.Tensor._make_wrapper_subclass(cls, whole.shape, dtype=scale.dtype, device=whole.device)  # type: ignore[attr-defined,no-any-return]

    def __init__(self, whole: torch.Tensor, scale: torch.Tensor) -> None:
        self.whole, self.scale = whole, scale

    def __deepcopy__(self, memo: dict[int, Any]) -> Quantised:
        return type(self)(self.whole.clone(), self.scale.clone())

    def __repr__(self) -> str:  # type: ignore[override]
        return "Quantised()"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (torch.ops.aten.detach.default, torch.ops.aten.alias.default):
            return cls(args[0].whole, args[0].scale)
        if func is torch.ops.aten.t.default:
            return cls(args[0].whole.t(), args[0].scale.t())
        plain = [a.whole.to(a.scale.dtype) * a.scale if isinstance(a, Quantised) else a for a in args]
        return func(*plain, **(kwargs or {}))


@case
def quantised_weight() -> Case:
    model = nn.Sequential(linear())
    whole = torch.ones(OUT, WIDTH, dtype=torch.int8)
    model[0].weight = nn.Parameter(Quantised(whole, torch.ones(OUT, 1)), requires_grad=False)
    return model, (x(),), ONE


class Twice(LowRank):
    """A matrix whose class multiplies twice as often as it is asked to."""

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.mm.default:
            whole = args[1].left @ args[1].right
            return args[0] @ whole + args[0] @ whole
        return super().__torch_dispatch__(func, types, args, kwargs)


@case
def a_class_that_multiplies_twice() -> Case:
    return Holds(Twice(torch.ones(WIDTH, 1), torch.ones(1, OUT))), (x(),), WIDTH * OUT + 2 * ONE


@case
def attention_of_a_wrapper() -> Case:
    class Attends(nn.Module):
        def forward(self, given: torch.Tensor) -> torch.Tensor:
            wrapped = Scaled(given[None])
            return torch.nn.functional.scaled_dot_product_attention(wrapped, wrapped, wrapped)

    return Attends(), (x(),), 2 * ROWS * ROWS * WIDTH


class Scaled(torch.Tensor):
    """A tensor within a tensor: every operator runs on what it holds."""

    @staticmethod
    def __new__(cls, held: torch.Tensor) -> Scaled:
        return torch.Tensor._make_wrapper_subclass(cls, held.shape, dtype=held.dtype, device=held.device)  # type: ignore[attr-defined,no-any-return]

    def __init__(self, held: torch.Tensor) -> None:
        self.held = held

    def __repr__(self) -> str:  # type: ignore[override]
        return "Scaled()"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        tree = torch.utils._pytree
        args, kwargs = tree.tree_map_only(Scaled, lambda t: t.held, (args, kwargs or {}))
        return tree.tree_map_only(torch.Tensor, Scaled, func(*args, **kwargs))


def _column_parallel() -> Case:
    """Rank 0 of 4: the process multiplies a quarter of the columns. Needs a process group (tests/own/test_stand_ins.py)."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module

    model = nn.Linear(64, 256, bias=False)
    return (
        parallelize_module(model, init_device_mesh("cpu", (4,)), ColwiseParallel()),
        (torch.ones(8, 64),),
        8 * 64 * 64,
    )


column_parallel = _column_parallel


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
def hook_after_the_gradient_that_asks_which() -> Case:
    model = square()

    def hook(parameter: torch.Tensor) -> None:
        if parameter is model.weight:
            orthogonal(parameter)

    model.weight.register_post_accumulate_grad_hook(hook)
    return model, (wide(),), STEP + TWO_PRODUCTS


@trained
def hook_with_a_table_of_parameters() -> Case:
    model = square()
    products = {model.weight: orthogonal}

    def hook(parameter: torch.Tensor) -> None:
        products.get(parameter, lambda _: None)(parameter)

    model.weight.register_post_accumulate_grad_hook(hook)
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
