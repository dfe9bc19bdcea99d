"""Compares the products in oneDNN's log with those that an op of TensorFlow asks for.

An op agrees with its lines by sizes, never by a sum alone. oneDNN logs a convolution by its descriptor, and a matrix product
whole or in blocks: Eigen cuts a product into blocks for its threads, and has oneDNN multiply each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from ....core.records import Op
from ..cpu_libraries import PRODUCTS
from ..cpu_libraries.gradient_lines import count_blocks
from ..cpu_libraries.log_lines import Product
from .convolution_sizes import CONVOLUTIONS, is_described, matrices_of_convolution, matrices_of_xla
from .matrix_sizes import Matrices, Ways, contraction_sizes, matrices_of_product

REMOVED = "tag:removed"
"""Attribute of an op of which no node ran."""


def products_of(op: Op) -> list[Product]:
    """The products that were written while this op ran."""
    return [Product(*written) for written in op.attrs.get(PRODUCTS, ())]


def is_product(op: Op) -> bool:
    """Whether the op is of a kind whose products are known by its sizes."""
    return op.op in CONVOLUTIONS or op.op in MATRICES


def agrees(op: Op, products: Sequence[Product]) -> bool:
    """Whether these are the products of the op by their sizes; False for an op of which no rule says its products."""
    if not products or not all(p.sizes for p in products):
        return False
    if op.op in CONVOLUTIONS:
        if products[0].routine.startswith("convolution:"):
            return len(products) == 1 and is_described(op, products[0])
        return any(covers(products, *matrices, times) for matrices, times in matrices_of_convolution(op))
    asked = MATRICES.get(op.op)
    return asked is not None and any(covers(products, *matrices, times) for matrices, times in asked(op))


def with_zeros(op: Op, products: Sequence[Product]) -> bool:
    """Whether these are the products of a convolution's gradient as XLA makes it, which has the op's and products with zeros."""
    if op.op not in CONVOLUTIONS or not all(p.sizes for p in products):
        return False
    return any(covers(products, *matrices, times) for matrices, times in matrices_of_xla(op))


def covers(products: Sequence[Product], m: int, n: int, k: int, times: int) -> bool:
    """Whether these are products (m, k) x (k, n), ``times`` of them, each whole or in blocks that a grid cuts out of it."""
    blocks = count_blocks(products)
    return blocks is not None and any(
        _are_covered(blocks, rows, columns, k, times) for rows, columns in {(m, n), (n, m)}
    )


def _are_covered(blocks: Counter[Matrices], rows: int, columns: int, k: int, times: int) -> bool:
    deep: dict[int, Counter[tuple[int, int]]] = {}
    for (a, b, c), count in blocks.items():
        if a > rows or b > columns or c > k:
            return False
        deep.setdefault(c, Counter())[a, b] += count
    layers = {c: _layers(grid, rows, columns) for c, grid in deep.items()}
    each = all(count and count % times == 0 for count in layers.values())
    return each and sum(c * count for c, count in layers.items()) == k * times


def _layers(grid: Counter[tuple[int, int]], rows: int, columns: int) -> int:
    """How often blocks of these sizes tile a matrix, each time by one grid; 0 if they do not."""
    (first, second), corner = next(iter(grid.items()))
    down = {a: grid[a, second] for a, _ in grid}
    across = {b: grid[first, b] for _, b in grid}
    if any(grid[a, b] * corner != down[a] * across[b] for a in down for b in across):
        return 0
    height, width = sum(a * n for a, n in down.items()), sum(b * n for b, n in across.items())
    if height % rows or width % columns:
        return 0
    count, rest = divmod(height // rows * (width // columns), corner)
    return 0 if rest else count


MATRICES: dict[str, Callable[[Op], Ways]] = {
    **dict.fromkeys(("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"), matrices_of_product),
    **dict.fromkeys(("Einsum", "XlaEinsum"), contraction_sizes),
}
