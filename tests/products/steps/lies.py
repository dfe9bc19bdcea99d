"""Models, hooks and optimizers of steps that are not what they seem."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_map

from tests.products.steps.nets import IN, OUT, WIDE, mlp

SQUARE = torch.ones(OUT, OUT)


class Tempted(nn.Module):
    """Calls a layer that raises after a product of WIDE x 3, goes on without it, and has a product of its own behind it."""

    def __init__(self, error: type[BaseException] = ValueError) -> None:
        super().__init__()
        self.first, self.raising, self.last = nn.Linear(IN, WIDE), Raising(error), nn.Linear(WIDE, OUT)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        with suppress(ValueError):
            self.raising(x)
        return self.last(x) @ SQUARE


class Raising(nn.Module):
    """A product, and an exception."""

    def __init__(self, error: type[BaseException]) -> None:
        super().__init__()
        self.error = error

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise self.error(str((x @ torch.ones(WIDE, 3)).shape))


class Early(nn.Module):
    """Returns before its last layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = mlp()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.layers[0](x)
        return x if x.shape[0] else self.layers(x)


class Stream(nn.Module):
    """A generator: what its call runs, runs after the call."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = mlp()

    def forward(self, x: torch.Tensor) -> Iterator[torch.Tensor]:
        for layer in self.layers:
            x = layer(x)
            yield x


class Twins(nn.Module):
    """One layer under two names."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Linear(WIDE, WIDE)
        self.other = self.one

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.other(self.one(x))


class Branches(nn.Module):
    """One call of its layer, or two in the branch that is not taken."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(WIDE, WIDE)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > -1e9, lambda y: self.layer(y), lambda y: self.layer(self.layer(y)), (x,))


class Wrapper(torch.Tensor):
    """A tensor around another, which takes operators apart itself, as a DTensor does."""

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> Wrapper:
        made = torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, dtype=inner.dtype, requires_grad=inner.requires_grad
        )
        made.inner = inner
        return made

    def __init__(self, inner: torch.Tensor) -> None:
        pass

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        args, kwargs = tree_map(lambda t: t.inner if isinstance(t, cls) else t, (args, kwargs or {}))
        return tree_map(lambda t: cls(t) if isinstance(t, torch.Tensor) else t, func(*args, **kwargs))


class Shampoo(torch.optim.Optimizer):
    """Two products for each matrix of O x I: O O I each."""

    def __init__(self, weights: Any) -> None:
        super().__init__(weights, {})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.dim() == 2:
                    weight.add_(weight.grad @ weight.grad.T @ weight.grad, alpha=-1e-6)
