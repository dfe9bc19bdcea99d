"""Networks that launch kernels of Triton, and the traces that test_triton.py asks for, as JSON.

Each has a layer ``inner`` with a kernel, which multiplies (ROWS, INNER) by (INNER, WIDE), and a linear layer ``head`` behind it.
"""

from __future__ import annotations

import json
from typing import Any

import torch
import triton
import triton.language as tl
from torch import nn

ROWS, INNER, WIDE, OUT, BLOCK = 48, 64, 32, 16, 16


@triton.jit
def product(a, b, c, N, K, B: tl.constexpr):
    rows = tl.program_id(0) * B + tl.arange(0, B)
    columns = tl.program_id(1) * B + tl.arange(0, B)
    total = tl.zeros((B, B), dtype=tl.float32)
    for k in range(0, K, B):
        ks = k + tl.arange(0, B)
        total += tl.dot(tl.load(a + rows[:, None] * K + ks[None, :]), tl.load(b + ks[:, None] * N + columns[None, :]))
    tl.store(c + rows[:, None] * N + columns[None, :], total)


tuned = triton.autotune([triton.Config({"B": BLOCK})], key=["N", "K"])(product)
guessed = triton.heuristics({"B": lambda _: BLOCK})(product)


def plain(a, b):
    c = torch.empty(len(a), b.shape[1], device=a.device)
    product[(len(a) // BLOCK, b.shape[1] // BLOCK)](a, b, c, b.shape[1], b.shape[0], B=BLOCK)
    return c


def by_run(a, b):
    c = a.new_zeros(len(a), b.shape[1])
    grid = (len(a) // BLOCK, b.shape[1] // BLOCK)
    product.run(a, b, c, b.shape[1], b.shape[0], grid=grid, warmup=False, B=BLOCK)
    return c


def outer(kernel):
    def launched(a, b):
        c = torch.empty(len(a), b.shape[1], device=a.device)
        kernel[lambda meta: (len(a) // meta["B"], b.shape[1] // meta["B"])](a, b, c, b.shape[1], b.shape[0])
        return c

    return launched


class Product(torch.autograd.Function):
    """A kernel forward, and two backward."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return plain(a, b)

    @staticmethod
    def backward(ctx, gradient):
        a, b = ctx.saved_tensors
        return plain(gradient.contiguous(), b.T.contiguous()), plain(a.T.contiguous(), gradient.contiguous())


@torch.library.custom_op("nets::product", mutates_args=())
def in_an_operator(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return plain(a, b)


WAYS: dict[str, Any] = {
    "plain": plain,
    "by_run": by_run,
    "autotuned": outer(tuned),
    "heuristics": outer(guessed),
    "function": Product.apply,
    "operator": in_an_operator,
}


class Inner(nn.Module):
    def __init__(self, way: str) -> None:
        super().__init__()
        self.weight, self.way = nn.Parameter(torch.ones(INNER, WIDE)), WAYS[way]

    def forward(self, x):
        return self.way(x, self.weight)


class Net(nn.Module):
    def __init__(self, way: str) -> None:
        super().__init__()
        self.inner, self.head = Inner(way), nn.Linear(WIDE, OUT)

    def forward(self, x):
        return self.head(self.inner(x))


def make(way: str = "plain") -> tuple[nn.Module, torch.Tensor]:
    return Net(way), torch.ones(ROWS, INNER)


def told(trace: Any) -> list[Any]:
    """Of each op that is none of PyTorch's own: name, layer, phase, calls, shapes, what else it was given; then the problems."""
    ops = [
        [op.op, op.layer, op.phase, op.calls, [list(tensor.shape) for tensor in op.inputs], op.attrs]
        for op in trace.ops
        if not op.op.startswith("aten.")
    ]
    return [ops, [[problem.op, problem.layer] for problem in trace.problems]]


def main() -> None:
    from reconcile.adapters.pytorch import trace, training
    from tests.adapters.pytorch.training_models import Model

    found = {way: told(trace.trace(Model(lambda way=way: Net(way), ROWS, INNER, device="cpu"))) for way in WAYS}
    step = training.trace(Model(lambda: Net("function"), ROWS, INNER, device="cpu"))
    print(json.dumps({**found, "step": told(step)}))


if __name__ == "__main__":
    main()
