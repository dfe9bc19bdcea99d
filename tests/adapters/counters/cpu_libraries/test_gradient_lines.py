"""Lines of one call that computes several gradients: each line belongs to one of them, by sizes. No framework."""

from __future__ import annotations

import pytest

from reconcile.adapters.counters.cpu_libraries import PRODUCTS
from reconcile.adapters.counters.cpu_libraries.gradient_lines import AGAIN, CONVOLUTION, KERNEL
from reconcile.adapters.counters.cpu_libraries.rules import products_of
from tests.adapters.counters.cases import op


def gemm(m: int, n: int, k: int) -> list[object]:
    return ["SGEMM", {"m": m, "n": n, "k": k}, "", "f32"]


def macs(of: object) -> int:
    return sum(product.macs for product in products_of(of))


def convolution(part: int, lines: list[object], mask: tuple[bool, ...] = (True, True, True)):
    """Of one sample: 3 channels of 6 x 6, 5 filters of 3 x 3, 4 x 4 positions."""
    attrs = {"groups": 1, "transposed": False, "output_mask": list(mask), "part": part, PRODUCTS: lines}
    return op(CONVOLUTION, [(1, 5, 4, 4), (1, 3, 6, 6), (5, 3, 3, 3)], [], **attrs)


DATA, WEIGHT = gemm(16, 27, 5), gemm(27, 5, 16)


def test_equal_sizes_are_shared_out():
    """5 filters and 5 positions: both gradients are (27 x 5) x 5."""
    same = gemm(27, 5, 5)
    attrs = {"groups": 1, "transposed": False, "output_mask": [True, True, False], PRODUCTS: [same, same]}
    parts = [op(CONVOLUTION, [(1, 5, 1, 5), (1, 3, 3, 7), (5, 3, 3, 3)], [], **attrs, part=part) for part in range(2)]
    assert [macs(part) for part in parts] == [27 * 5 * 5, 27 * 5 * 5]


def test_a_line_that_fits_no_gradient_belongs_to_the_first():
    parts = [convolution(part, [DATA, WEIGHT, gemm(7, 7, 7)], (False, True, True)) for part in (1, 2)]
    assert [macs(part) for part in parts] == [27 * 5 * 16 + 16 * 27 * 5 + 7**3, 0]


QUERIES, KEYS, WIDTH = 4, 6, 3
SCORES, BY_KEYS, BY_QUERIES = gemm(KEYS, QUERIES, WIDTH), gemm(WIDTH, KEYS, QUERIES), gemm(WIDTH, QUERIES, KEYS)


def attention(part: str, lines: list[object]):
    shapes = [(1, 1, QUERIES, WIDTH), (1, 1, QUERIES, WIDTH), (1, 1, KEYS, WIDTH), (1, 1, KEYS, WIDTH)]
    return op(KERNEL, shapes, [], part=part, **{PRODUCTS: lines})


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        ([SCORES, BY_KEYS, SCORES, BY_QUERIES, BY_KEYS], [1, 1, 1, 1, 1]),
        ([BY_KEYS, BY_KEYS, BY_QUERIES, SCORES, SCORES], [1, 1, 1, 1, 1]),
        ([SCORES, SCORES], [1, 1, 0, 0, 0]),  # of bfloat16 the others have no line
        ([SCORES, BY_KEYS], [0, 2, 0, 0, 0]),  # no block: all of it stays with the first, where it is a residual
    ],
)
def test_blocks_of_attention_are_put_together(lines, wanted):
    product = QUERIES * KEYS * WIDTH
    names = (AGAIN, "scores", "value", "query", "key")
    assert [macs(attention(name, lines)) // product for name in names] == wanted
