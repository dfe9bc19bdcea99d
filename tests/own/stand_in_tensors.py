"""Models with tensors whose class takes operators apart, which an outer shape stands in for. See stand_ins.py."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from .stand_ins import ONE, OUT, ROWS, WIDTH, Case, case, linear, x

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


def column_parallel() -> Case:
    """Rank 0 of 4: the process multiplies a quarter of the columns. Needs a process group (tests/own/test_stand_ins.py)."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module

    model = nn.Linear(64, 256, bias=False)
    return (
        parallelize_module(model, init_device_mesh("cpu", (4,)), ColwiseParallel()),
        (torch.ones(8, 64),),
        8 * 64 * 64,
    )
