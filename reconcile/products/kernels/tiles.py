"""Rules for GEMM kernels (tile padding, split-K, scaling by alpha and beta), and the types and rounding that all rules need."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, prod

from ...core.causes import Cause
from .ncu import Launch

Shape = tuple[int, ...]
More = tuple[Cause, int, str]
"""A cause, multiply-adds beyond those of the operator (negative: fewer), and why."""

RESULT_IS_SCALED = "each result is scaled: alpha a b + beta c"
_TILE = re.compile(r"(?:_|tilesize)([1-9]\d*)x([1-9]\d*)(?:x|_)([1-9]\d*)(?:x|_|$)")
"""``tilesize64x32x64``; ``..._64x64_32x6_...`` of CUTLASS and nvjet: rows, columns, depth (and stages)."""
_SHAPE = re.compile(r"GemmShape<([1-9]\d*), ([1-9]\d*), ([1-9]\d*)>")


@dataclass(frozen=True, slots=True)
class Case:
    """The operator around a kernel, as the trace has it: sizes, multiply-adds of one call, and those that a causal mask discards.

    ``before`` is how many kernels of the same rule ran in the call before this one.
    """

    op: str
    inputs: tuple[Shape, ...]
    outputs: tuple[Shape, ...]
    macs: int
    masked: int
    before: int = 0

    @property
    def backward(self) -> bool:
        """Whether it computes gradients."""
        return self.op.endswith("_backward")


@dataclass(frozen=True, slots=True)
class Product:
    """The share of the operator's multiply-adds that a kernel computes, and by cause what it computes beyond it (or less)."""

    share: int
    more: tuple[More, ...] = ()

    @property
    def macs(self) -> int:
        """The multiply-adds that the kernel runs."""
        return self.share + sum(amount for _, amount, _ in self.more)


Rule = Callable[[Launch, Case], Product | None]


@dataclass(frozen=True, slots=True)
class Tile:
    """Rows, columns and depth of what a block multiplies at a time."""

    rows: int
    columns: int
    depth: int

    def __str__(self) -> str:
        return f"{self.rows} x {self.columns} x {self.depth}"


def tile(launch: Launch) -> Tile | None:
    """The tile that a kernel's name gives; None if it gives none."""
    found = _TILE.search(launch.short) or _SHAPE.search(launch.name)
    return Tile(*map(int, found.groups())) if found else None


def round_up(size: int, tile: int) -> int:
    """The size, rounded up to whole tiles."""
    return ceil(size / tile) * tile


def multiplies_whole_grid(launch: Launch) -> bool:
    """Whether every block of the launched grid multiplies a tile, also those beyond the result.

    nvjet and the sm90 kernels round their tiles up to clusters and multiply those, too; spare blocks of CUTLASS end at once.
    """
    return launch.short.startswith("nvjet") or "segment_k" in launch.short or "_strided_" in launch.short


def padded_product(share: int, macs: int, what: object) -> Product:
    """A share, with the padding that whole tiles add to it."""
    return Product(share, ((Cause.TILE_PADDING, macs - share, f"tiles of {what}"),) if macs != share else ())


def unpadded_product(_launch: Launch, case: Case) -> Product:
    """The product of a kernel whose threads multiply only the operands, without padding."""
    return Product(case.macs)


def tiled_product(launch: Launch, batch: int, rows: int, columns: int, depth: int) -> Product | None:
    """A product of matrices in whole tiles, one for each of a batch; None if the kernel's name gives no tile.

    cuBLAS computes the transposed result of PyTorch's: the first side of a tile lies along the columns. One product may be split
    along its depth into ``grid.z`` parts of whole tiles. A kernel of threads (FFMA) then scales each result of its tiles by one
    more multiply-add; of a split product, the kernel that adds the parts does.
    """
    t = tile(launch)
    if t is None:
        return None
    share = batch * rows * columns * depth
    tiles = batch * ceil(columns / t.rows) * ceil(rows / t.columns)
    results = tiles * t.rows * t.columns
    if "_split_k_kernel" in launch.short:
        return Product(0, ((Cause.OUTSIDE_CONVENTION, results, RESULT_IS_SCALED),))
    if multiplies_whole_grid(launch):
        return padded_product(share, prod(launch.grid) * t.rows * t.columns * round_up(depth, t.depth), t)
    parts = launch.grid[2] if batch == 1 and len(launch.grid) > 2 else 1
    made = padded_product(share, results * parts * round_up(ceil(depth / parts), t.depth), t)
    scales = "_ffma_" in launch.short and parts == 1
    return Product(share, (*made.more, (Cause.OUTSIDE_CONVENTION, results, RESULT_IS_SCALED))) if scales else made


def matrix_product(launch: Launch, case: Case) -> Product | None:
    """The tiled product of mm, addmm, linear, bmm or baddbmm; None for any other operator."""
    shapes = [s for s in case.inputs if len(s) > 1]
    if len(shapes) < 2:
        return None
    left, right = shapes[-2:]
    if case.op in ("aten.mm", "aten.addmm", "aten.linear"):
        columns = right[0] if case.op == "aten.linear" else right[1]
        return tiled_product(launch, 1, prod(left[:-1]), columns, left[-1])
    if case.op in ("aten.bmm", "aten.baddbmm"):
        return tiled_product(launch, left[0], left[1], right[2], left[2])
    return None
