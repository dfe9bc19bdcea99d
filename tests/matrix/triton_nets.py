"""Networks that launch kernels of Triton, and the traces that test_triton.py asks for, as JSON.

Each has a layer ``inner`` with a kernel, which multiplies (ROWS, INNER) by (INNER, WIDE), and a linear layer ``head`` behind it.
"""

from __future__ import annotations

import json
from math import prod
from os import environ
from typing import Any

import torch
import triton
import triton.language as tl
from torch import nn
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from reconcile.core.records import INSIDE
from reconcile.core.work import MASKED
from reconcile.products.kernels.pytorch.kernel_programs import count_dots
from reconcile.work import known_part

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


several = triton.autotune(
    [triton.Config({"B": BLOCK}), triton.Config({"B": BLOCK}, num_warps=8)],
    key=["N", "K"],
    do_bench=lambda run, quantiles: (run(), [1.0, 1.0, 1.0])[1],
)(product)


@triton.jit
def tutorial(a, b, c, M, N, K, B: tl.constexpr, B_K: tl.constexpr, GROUP: tl.constexpr):
    """As Triton's tutorial has it: blocks in groups, the ends of rows, columns and sums masked."""
    place, rows, columns = tl.program_id(0), tl.cdiv(M, B), tl.cdiv(N, B)
    first = place // (GROUP * columns) * GROUP
    size = min(rows - first, GROUP)
    at = (first + (place % (GROUP * columns)) % size) * B + tl.arange(0, B)
    along = ((place % (GROUP * columns)) // size) * B + tl.arange(0, B)
    total = tl.zeros((B, B), dtype=tl.float32)
    for k in range(tl.cdiv(K, B_K)):
        ks = k * B_K + tl.arange(0, B_K)
        left = tl.load(a + (at % M)[:, None] * K + ks[None, :], mask=ks[None, :] < K, other=0.0)
        right = tl.load(b + ks[:, None] * N + (along % N)[None, :], mask=ks[:, None] < K, other=0.0)
        total = tl.dot(left, right, total)
    tl.store(c + at[:, None] * N + along[None, :], total, mask=(at[:, None] < M) & (along[None, :] < N))


@triton.jit
def flash(q, lengths, out, causal, late, B: tl.constexpr, D: tl.constexpr):
    """Attention of x to itself by blocks of keys: as far as the diagonal, or as the program's length in ``lengths`` says.

    ``late`` is an error of the loop's bound: it ends so many blocks too late.
    """
    place = tl.program_id(0)
    rows, inside = place * B + tl.arange(0, B), tl.arange(0, D)
    query = tl.load(q + rows[:, None] * D + inside[None, :])
    largest, sums = tl.full((B,), float("-inf"), tl.float32), tl.zeros((B,), tl.float32)
    total = tl.zeros((B, D), dtype=tl.float32)
    end = place + 1 + late if causal else tl.load(lengths + place)
    for j in range(end):
        columns = j * B + tl.arange(0, B)
        keys = tl.load(q + columns[:, None] * D + inside[None, :])
        scores = tl.dot(query, tl.trans(keys))
        scores = tl.where((rows[:, None] >= columns[None, :]) | (causal == 0), scores, float("-inf"))
        larger = tl.maximum(largest, tl.max(scores, 1))
        weights, kept = tl.exp(scores - larger[:, None]), tl.exp(largest - larger)
        sums, largest = sums * kept + tl.sum(weights, 1), larger
        total = tl.dot(weights, keys, total * kept[:, None])
    tl.store(out + rows[:, None] * D + inside[None, :], total / sums[:, None])


@triton.jit
def tiles(a, c, rows, count, B: tl.constexpr, STEP: tl.constexpr):
    """Each program has some tiles, and squares every other one once more; those beyond ``count`` return at once."""
    if tl.program_id(0) >= count:
        return
    at, width = tl.arange(0, B), 0
    for tile in range(tl.program_id(0), rows // B, STEP):
        width += tile % 2 + 1
        total = tl.zeros((B, B), dtype=tl.float32)
        x = tl.load(a + (tile * B + at)[:, None] * B + at[None, :])
        for _ in range(width):
            total = tl.dot(x, x, total)
        if tile % 2 == 1:
            total = tl.dot(total, total)
        tl.store(c + (tile * B + at)[:, None] * B + at[None, :], total)


@triton.jit
def halves(a, c, n, B: tl.constexpr):
    at, total = tl.arange(0, B), tl.zeros((B, B), dtype=tl.float32)
    x = tl.load(a + at[:, None] * B + at[None, :])
    while n > 1:
        total, n = tl.dot(x, x, total), n // 2
    tl.store(c + at[:, None] * B + at[None, :], total)


@triton.jit
def added(a, c, shift, B: tl.constexpr):
    """Scores whose mask is added, and a result that is cut off at 0 by what it is, not by a mask."""
    at = tl.arange(0, B)
    x = tl.load(a + at[:, None] * B + at[None, :])
    scores = tl.dot(x, tl.trans(x)) + tl.where(at[:, None] >= at[None, :], 0.0, float("-inf"))
    out = tl.maximum(tl.dot(tl.exp(scores), x + tl.load(shift + at, mask=at < 1, other=0.0)), 0.0)
    tl.store(c + at[:, None] * B + at[None, :], out)


def in_added(a, b):
    x = -a.new_ones(BLOCK, BLOCK)
    added[(1,)](x, torch.empty_like(x), x, B=BLOCK)
    return a @ b


def in_tiles(a, b):
    x = a.new_ones(6 * BLOCK, BLOCK)
    tiles[(4,)](x, torch.empty_like(x), len(x), 3, B=BLOCK, STEP=2)
    return a @ b


def in_halves(a, b):
    x = a.new_ones(BLOCK, BLOCK)
    halves[(1,)](x, torch.empty_like(x), 8, B=BLOCK)
    return a @ b


def with_ends(a, b):
    a, b = a[: ROWS - 20, : INNER - 3].contiguous(), b[: INNER - 3].contiguous()
    c = a.new_zeros(ROWS, WIDE)
    grid = (-(-len(a) // BLOCK) * -(-WIDE // BLOCK),)
    tutorial[grid](a, b, c, len(a), WIDE, a.shape[1], B=BLOCK, B_K=32, GROUP=2)
    return c


def attend(causal):
    def attended(a, b):
        out, lengths = torch.empty_like(a), torch.tensor([2, 1, 2], dtype=torch.int32)
        flash[(ROWS // BLOCK,)](a, lengths, out, causal, 0, B=BLOCK, D=INNER)
        if causal and environ.get("TRITON_INTERPRET"):
            (expected,) = nn.functional.scaled_dot_product_attention(*[a[None]] * 3, is_causal=True, scale=1.0)
            assert torch.allclose(out, expected, atol=1e-5)
        return out @ b

    return attended


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
    "several": outer(several),
    "tutorial": with_ends,
    "causal": attend(1),
    "lengths": attend(0),
    "tiles": in_tiles,
    "halves": in_halves,
    "added": in_added,
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


def count_recorded() -> dict[str, int]:
    """Multiply-adds of kernels in the blocks of recorded ones (tests/products/kernels/recorded.py), by their programs."""
    found = {}
    for late in (-1, 0, 1):
        types = {"q": torch.float32, "lengths": torch.int32, "out": torch.float32}
        tensors = {name: torch.empty(0, dtype=kind) for name, kind in types.items()}
        given = {"causal": 1, "late": late, "B": 128, "D": 64}
        found[f"flash {late}"] = compile_only(flash, grid=None, warmup=False, **tensors, **given), given, [2, 8]
    matrices = {name: torch.empty(0) for name in "abc"}
    given = {"M": 500, "N": 300, "K": 200, "B": 32, "B_K": 64, "GROUP": 4}
    found["tutorial"] = compile_only(tutorial, grid=None, warmup=False, **matrices, **given), given, [16 * 10]
    return {
        name: sum(
            times * prod(blocks[0][0]) * blocks[1][0][-1]
            for blocks, times in count_dots(kernel.asm["ttir"], *rest).items()
        )
        for name, (kernel, *rest) in found.items()
    }


def compile_only(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
    """As JITFunction.run for a GPU that is not there: compiled, and not launched."""
    types = {torch.float32: "*fp32", torch.int32: "*i32"}
    given = dict(zip(self.arg_names, args, strict=False), **kwargs)
    constants = {each.name: given[each.name] for each in self.params if each.is_constexpr}
    signature = {
        name: "constexpr" if name in constants else types[value.dtype] if isinstance(value, torch.Tensor) else "i32"
        for name, value in given.items()
        if name in self.arg_names
    }
    return triton.compile(ASTSource(self, signature, constants), target=GPUTarget("cuda", 90, 32))


def attributes(op: Any) -> dict[str, Any]:
    """What an op was given, and the multiply-adds that are known of it."""
    known = known_part(op)
    given = {name: value for name, value in op.attrs.items() if name != INSIDE}
    masked = None if MASKED in known.unknown else known.work.masked
    return {**given, "masked": masked, "known": None if "mac" in known.unknown else known.work.mac}


def told(trace: Any) -> list[Any]:
    """Of each op that is none of PyTorch's own: name, layer, phase, calls, shapes, what else it was given; then the problems."""
    ops = [
        [op.op, op.layer, op.phase, op.calls, [list(tensor.shape) for tensor in op.inputs], attributes(op)]
        for op in trace.ops
        if not op.op.startswith("aten.")
    ]
    return [ops, [[problem.op, problem.layer] for problem in trace.problems]]


def main() -> None:
    from reconcile.adapters.pytorch import trace, training
    from reconcile.core.framework import adapter_of
    from reconcile.core.registry import frameworks
    from tests.adapters.pytorch.training_models import Model

    adapter_of(frameworks()["torch"])  # tells the tracer what counts a kernel
    if not environ.get("TRITON_INTERPRET"):
        triton.runtime.jit.JITFunction.run = compile_only
    found = {way: told(trace.trace(Model(lambda way=way: Net(way), ROWS, INNER, device="cpu"))) for way in WAYS}
    step = training.trace(Model(lambda: Net("function"), ROWS, INNER, device="cpu"))
    recorded = {} if environ.get("TRITON_INTERPRET") else {"recorded": count_recorded()}
    print(json.dumps({**found, "step": told(step), **recorded}))


if __name__ == "__main__":
    main()
