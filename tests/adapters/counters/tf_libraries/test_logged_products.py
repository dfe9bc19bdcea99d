"""An op agrees with its own products, whole or in blocks, and with no others: by a brute-force grid, and sizes one off."""

from __future__ import annotations

import random
from itertools import product as pairs
from typing import Any

import pytest

from reconcile.adapters.counters.cpu_libraries.log_lines import Product, product_of
from reconcile.adapters.counters.tf_libraries.convolution_sizes import UNPADDED
from reconcile.adapters.counters.tf_libraries.logged_products import agrees, covers, with_zeros
from tests.adapters.counters.cases import op

LINE = "onednn_verbose,v1,primitive,exec,cpu,{kind},impl,{way},src:f32::blocked:ab::f0,,alg:convolution_direct,{problem},0.1"


def gemm(m: int, n: int, k: int) -> Product:
    return Product("gemm_api", {"b": 1, "m": m, "n": n, "k": k}, "", "f32")


def described(way: str, sizes: dict[str, int]) -> list[Product]:
    """The product in a line of oneDNN with this descriptor."""
    problem = "".join(f"{'_' if name[0] == 'i' else ''}{name}{size}" for name, size in sizes.items())
    found = product_of(LINE.format(kind="convolution", way=way, problem=problem))
    assert found is not None
    return [found]


def cut(whole: int, parts: int, chance: random.Random) -> list[int]:
    """A size in that many parts."""
    at = sorted(chance.sample(range(1, whole), parts - 1))
    return [b - a for a, b in zip([0, *at], [*at, whole], strict=True)]


@pytest.mark.parametrize("seed", range(40))
def test_a_grid_of_blocks_is_its_product_and_one_off_is_not(seed: int) -> None:
    chance = random.Random(seed)
    m, n, k = (chance.randint(4, 40) for _ in range(3))
    times = chance.randint(1, 3)
    rows, columns, depths = (cut(size, chance.randint(1, 3), chance) for size in (m, n, k))
    blocks = [gemm(a, b, c) for a, b, c in pairs(rows, columns, depths)] * times
    chance.shuffle(blocks)
    assert sum(block.macs for block in blocks) == m * n * k * times
    assert covers(blocks, m, n, k, times)
    assert covers([gemm(b.sizes["n"], b.sizes["m"], b.sizes["k"]) for b in blocks], m, n, k, times)
    at = chance.randrange(len(blocks))
    assert not covers([*blocks[:at], *blocks[at + 1 :]], m, n, k, times)
    assert not covers([*blocks, blocks[at]], m, n, k, times)
    for name in "mnk":
        for step in (-1, 1):
            sizes = dict(blocks[at].sizes, **{name: blocks[at].sizes[name] + step})
            if sizes[name] and (len(blocks) > 1 or step > 0):
                assert not covers([*blocks[:at], blocks[at]._replace(sizes=sizes), *blocks[at + 1 :]], m, n, k, times)


def test_depths_of_two_products_are_not_one_products() -> None:
    assert covers([gemm(4, 6, 2), gemm(4, 6, 1)] * 2, 4, 6, 3, 2)
    assert not covers([gemm(4, 6, 2)] * 3, 4, 6, 3, 2)  # as deep as both together, and not as each


def test_equal_work_of_other_sizes_is_another_product() -> None:
    asked = op("MatMul", [(4, 6), (6, 10)], [(4, 10)])
    assert agrees(asked, [gemm(4, 10, 6)])
    assert gemm(4, 12, 5).macs == gemm(8, 5, 6).macs == gemm(4, 10, 6).macs
    assert not agrees(asked, [gemm(4, 12, 5)])
    assert not agrees(asked, [gemm(8, 5, 6)])
    assert not agrees(asked, [])


PRODUCTS_OF = [
    (op("MatMul", [(6, 4), (10, 6)], [(4, 10)], transpose_a=True, transpose_b=True), [(4, 10, 6)], 1),
    (op("BatchMatMulV2", [(2, 3, 4, 6), (6, 10)], [(2, 3, 4, 10)]), [(4, 10, 6)], 6),
    (op("BatchMatMulV2", [(2, 3, 4, 6), (6, 10)], [(2, 3, 4, 10)]), [(24, 10, 6)], 1),
    (op("BatchMatMulV2", [(3, 6, 4), (3, 6, 10)], [(3, 4, 10)], adj_x=True), [(4, 10, 6)], 3),
    (op("Einsum", [(2, 5, 3, 8), (2, 7, 3, 8)], [(2, 3, 5, 7)], equation="bqhd,bkhd->bhqk"), [(5, 7, 8)], 6),
    (op("Einsum", [(2, 9, 4), (4, 3)], [(2, 9, 3)], equation="...i,ij->...j"), [(18, 3, 4)], 1),
]


@pytest.mark.parametrize(("asked", "sizes", "times"), PRODUCTS_OF)
def test_products_of_matrices_by_their_shapes(asked: Any, sizes: list[tuple[int, int, int]], times: int) -> None:
    ((m, n, k),) = sizes
    assert agrees(asked, [gemm(m, n, k)] * times)
    assert not agrees(asked, [gemm(m, n, k)] * (times + 1))
    assert not agrees(asked, [gemm(m, n, k + 1)] * times)


def test_a_shared_matrix_is_not_taken_once_for_a_turned_batch() -> None:
    turned = op("BatchMatMulV2", [(3, 6, 4), (6, 10)], [(3, 4, 10)], adj_x=True)
    assert agrees(turned, [gemm(4, 10, 6)] * 3)
    assert not agrees(turned, [gemm(12, 10, 6)])


SAME = {"padding": "SAME", "strides": [1, 2, 2, 1], "data_format": "NHWC", "dilations": [1, 1, 1, 1]}
VALID = {"padding": "VALID", "strides": [1, 1, 1, 1], "data_format": "NHWC", "dilations": [1, 1, 1, 1]}
# 17 by 9 in steps of 2, kernel 4 by 3: ceil(17 / 2) = 9 and ceil(9 / 2) = 5; padding (9 - 1) * 2 + 4 - 17 = 3 and
# (5 - 1) * 2 + 3 - 9 = 2, of which 1 and 1 come first
STEPS = {"ih": 17, "oh": 9, "kh": 4, "sh": 2, "dh": 0, "ph": 1, "iw": 9, "ow": 5, "kw": 3, "sw": 2, "dw": 0, "pw": 1}
PLAIN = {"mb": 2, "ic": 6, "oc": 8, **STEPS}
# 17 by 9 with 1 + 0 and 2 + 1 around it, in steps of 2 and 3, kernel 3 by 3 of which each second row: (18 - 5) // 2 + 1 = 7 and
# (12 - 3) // 3 + 1 = 4
AROUND = {
    "padding": "EXPLICIT",
    "explicit_paddings": [0, 0, 1, 0, 2, 1, 0, 0],
    "strides": [1, 2, 3, 1],
    "dilations": [1, 2, 1, 1],
}
WIDE = {"mb": 2, "ic": 6, "oc": 8, "ih": 17, "oh": 7, "kh": 3, "sh": 2, "dh": 1, "ph": 1}
WIDE |= {"iw": 9, "ow": 4, "kw": 3, "sw": 3, "dw": 0, "pw": 2}
DEEP = {"mb": 1, "ic": 2, "oc": 4, "id": 5, "od": 4, "kd": 2, "sd": 1, "dd": 0, "pd": 0}
DEEP |= {"ih": 6, "oh": 4, "kh": 3, "sh": 1, "dh": 0, "ph": 0, "iw": 7, "ow": 7, "kw": 1, "sw": 1, "dw": 0, "pw": 0}
FIRST = SAME | {"data_format": "NCHW", "strides": [1, 1, 2, 2]}
SOLID = VALID | {"data_format": "NDHWC", "strides": [1] * 5, "dilations": [1] * 5}
CONVOLUTIONS = [
    (op("Conv2D", [(2, 17, 9, 6), (4, 3, 6, 8)], [(2, 9, 5, 8)], **SAME), "forward_training", PLAIN),
    (op("Conv2D", [(2, 6, 17, 9), (4, 3, 6, 8)], [(2, 8, 9, 5)], **FIRST), "forward_training", PLAIN),
    (op("Conv2D", [(2, 17, 9, 6), (4, 3, 3, 8)], [(2, 9, 5, 8)], **SAME), "forward_training", {"g": 2, **PLAIN}),
    (
        op("DepthwiseConv2dNative", [(2, 17, 9, 6), (4, 3, 6, 2)], [(2, 9, 5, 12)], **SAME),
        "forward_training",
        {"g": 6, **PLAIN, "oc": 12},
    ),
    (op("Conv2DBackpropInput", [(4,), (4, 3, 6, 8), (2, 9, 5, 8)], [(2, 17, 9, 6)], **SAME), "backward_data", PLAIN),
    (
        op("Conv2DBackpropFilter", [(2, 17, 9, 6), (4,), (2, 9, 5, 8)], [(4, 3, 6, 8)], **SAME),
        "backward_weights",
        PLAIN,
    ),
    (op("Conv2D", [(2, 17, 9, 6), (3, 3, 6, 8)], [(2, 7, 4, 8)], **VALID | AROUND), "forward_inference", WIDE),
    (op("Conv3D", [(1, 5, 6, 7, 2), (2, 3, 1, 2, 4)], [(1, 4, 4, 7, 4)], **SOLID), "forward_training", DEEP),
]


@pytest.mark.parametrize(("asked", "way", "sizes"), CONVOLUTIONS)
def test_a_descriptor_is_the_convolutions_in_each_size(asked: Any, way: str, sizes: dict[str, int]) -> None:
    assert agrees(asked, described(way, sizes))
    assert not agrees(asked, described(way, sizes) * 2)
    for name in sizes:
        assert not agrees(asked, described(way, dict(sizes, **{name: sizes[name] + 1}))), name
    other = "forward_training" if way == "backward_data" else "backward_data"
    assert not agrees(asked, described(other, sizes))


def test_a_fused_padding_has_the_sizes_before_it() -> None:
    before = [[1, 17, 16, 3], [0, 1, 3, 0]]  # 1 + 2 rows and 3 + 0 columns are added
    asked = op("Conv2D", [(1, 20, 19, 3), (5, 5, 3, 8)], [(1, 16, 15, 8)], **VALID, **{UNPADDED: before})
    sizes = {"mb": 1, "ic": 3, "oc": 8, "ih": 17, "oh": 16, "kh": 5, "sh": 1, "dh": 0, "ph": 1}
    sizes |= {"iw": 16, "ow": 15, "kw": 5, "sw": 1, "dw": 0, "pw": 3}
    assert agrees(asked, described("forward_training", sizes))
    for name in sizes:
        for step in (-1, 1):
            lie = dict(sizes, **{name: max(sizes[name] + step, 0)})
            assert lie == sizes or not agrees(asked, described("forward_training", lie)), name


def test_a_grouped_convolution_as_products_of_patches() -> None:
    asked = op("Conv2D", [(2, 17, 9, 6), (4, 3, 3, 8)], [(2, 9, 5, 8)], **SAME)
    assert agrees(
        asked, [gemm(50, 4, 36), gemm(40, 4, 36)] * 2
    )  # 2 * 9 * 5 places, 8 / 2 filters, 4 * 3 * 3 taps, 2 groups
    assert not agrees(asked, [gemm(50, 4, 36), gemm(40, 4, 36)])
    assert not agrees(asked, [gemm(50, 4, 36), gemm(40, 4, 35)] * 2)


def test_gradients_of_groups_by_xla_have_products_with_zeros() -> None:
    data = op("Conv2DBackpropInput", [(4,), (4, 3, 3, 8), (2, 9, 5, 8)], [(2, 17, 9, 6)], **SAME)
    weight = op("Conv2DBackpropFilter", [(2, 17, 9, 6), (4,), (2, 9, 5, 8)], [(4, 3, 3, 8)], **SAME)
    of_data = [gemm(2 * 17 * 9, 3, 4 * 3 * 4)] * 2  # each place of the data reads 4 * 3 taps of 4 filters
    of_weight = [gemm(4 * 3 * 6, 4, 2 * 9 * 5 * 2)]  # the groups are samples
    assert with_zeros(data, of_data)
    assert with_zeros(weight, of_weight)
    assert not agrees(data, of_data)
    assert not agrees(weight, of_weight)
    assert not with_zeros(data, of_data[:1])
    assert not with_zeros(weight, of_weight * 2)
