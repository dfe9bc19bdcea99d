"""Formulas of JAX's products against loops over numbers that count; tests/matrix/test_jax.py holds the values to JAX's."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconcile.adapters.jax import formulas as _formulas  # noqa: F401
from reconcile.core.records import Tensor
from reconcile.work import UnknownWork, Work, work_of
from tests.work import oracle
from tests.work.counting import Accumulator, Tally, dot
from tests.work.records_by_hand import make
from tests.work.test_lax import RELAXED, SMALL, array


@RELAXED
@given(
    st.lists(SMALL, max_size=2), st.lists(SMALL, max_size=2), st.lists(SMALL, max_size=2), st.lists(SMALL, max_size=2)
)
def test_dot_general_is_a_dot_product_per_output_element(batch, summed, left, right) -> None:
    """lhs (batch, left, summed), rhs (summed, right, batch): any order of the axes, any number of each."""
    tally = Tally()
    lhs, rhs = array(tally, *batch, *left, *summed), array(tally, *summed, *right, *batch)
    nb, ns, nl, nr = map(len, (batch, summed, left, right))
    results = np.empty((*batch, *left, *right), dtype=object)
    for index in np.ndindex(results.shape):
        b, m, n = index[:nb], index[nb : nb + nl], index[nb + nl :]
        terms = list(itertools.product(*map(range, summed)))
        results[index] = dot(tally, [lhs[(*b, *m, *t)] for t in terms], [rhs[(*t, *n, *b)] for t in terms])
    numbers = [
        [list(range(nb + nl, nb + nl + ns)), list(range(ns))],
        [list(range(nb)), list(range(ns + nr, ns + nr + nb))],
    ]
    op = make("lax.dot_general", [lhs.shape, rhs.shape], [results.shape], dimension_numbers=numbers)
    assert work_of(op) == tally.work()


def orders(axes: int, layout: str) -> list[int]:
    """Where batch (or outputs), features and the axes stand."""
    return [0, 1, *range(2, axes + 2)] if layout == "first" else [0, axes + 1, *range(1, axes + 1)]


def placed(shape: Any, place: list[int]) -> tuple[int, ...]:
    """A shape in the order batch, features, axes, as the layout has it."""
    found = [0] * len(shape)
    for size, at in zip(shape, place, strict=True):
        found[at] = size
    return tuple(found)


def conv_record(
    lhs: Any, rhs: Any, out: Any, strides: Any, dilations: Any, layout: str = "first", groups: int = 1
) -> Any:
    axes = len(lhs) - 2
    place = orders(axes, layout)
    kernel = orders(axes, "first") if layout == "first" else [axes + 1, axes, *range(axes)]
    return make(
        "lax.conv_general_dilated", [placed(lhs, place), placed(rhs, kernel)], [placed(out, place)],
        window_strides=list(strides), lhs_dilation=list(dilations), dimension_numbers=[place, kernel, place],
        feature_group_count=groups,
    )  # fmt: skip


@RELAXED
@given(
    axes=st.integers(1, 2),
    sizes=st.tuples(SMALL, SMALL, SMALL, SMALL),
    kernel=st.tuples(SMALL, SMALL),
    stride=st.tuples(SMALL, SMALL),
    padding=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    dilation=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    layout=st.sampled_from(["first", "last"]),
)
def test_a_convolution_counts_padding_like_other_products(
    axes, sizes, kernel, stride, padding, dilation, layout
) -> None:
    batch, per_group, out_group, groups = sizes
    kernel, stride, padding, dilation = (value[:axes] for value in (kernel, stride, padding, dilation))
    tally = Tally()
    x, w = array(tally, batch, per_group * groups, 5, 6)[..., : 6 if axes == 2 else 1], None
    x = x if axes == 2 else x[..., 0]
    w = array(tally, out_group * groups, per_group, *kernel)
    found = oracle.conv(tally, x, w, None, stride, padding, dilation, groups)
    op = conv_record(x.shape, w.shape, found.shape, stride, (1,) * axes, layout, groups)
    assert work_of(op) == tally.work()


@RELAXED
@given(
    sizes=st.tuples(SMALL, SMALL, SMALL, SMALL),
    kernel=st.tuples(SMALL, SMALL),
    stride=st.tuples(st.integers(2, 3), st.integers(2, 3)),
    padding=st.tuples(st.integers(0, 1), st.integers(0, 1)),
    layout=st.sampled_from(["first", "last"]),
)
def test_zeros_between_the_elements_are_a_transposed_convolution(sizes, kernel, stride, padding, layout) -> None:
    batch, features, outputs, size = sizes
    if any((size - 1) * s + k - 2 * p < 1 for s, k, p in zip(stride, kernel, padding, strict=True)):
        return
    tally = Tally()
    x, w = array(tally, batch, features, size, size), array(tally, features, outputs, *kernel)
    found = oracle.conv_transposed(tally, x, w, None, stride, padding, (0, 0), (1, 1), 1)
    op = conv_record(x.shape, (outputs, features, *kernel), found.shape, (1, 1), stride, layout)
    assert work_of(op) == tally.work()


def test_the_gradient_of_a_filter_has_the_forward_products() -> None:
    """JAX: the images as features, the gradient as the kernel, dilated by the stride; groups become batch_group_count."""
    batch, channels, outputs, groups, size, kernel, stride = 2, 4, 6, 2, 7, 3, 2
    wide = (size - kernel) // stride + 1
    tally = Tally()
    x, w = array(tally, batch, channels, size, size), array(tally, outputs, channels // groups, kernel, kernel)
    oracle.conv(tally, x, w, None, (stride, stride), (0, 0), (1, 1), groups)
    gradient = (channels // groups, outputs, kernel, kernel)
    op = conv_record((channels, batch, size, size), (outputs, batch, wide, wide), gradient, (1, 1), (1, 1))
    assert work_of(op) == Work(mac=tally.work().mac, accumulators=math.prod(gradient))


def test_strides_over_zeros_between_elements_are_unknown() -> None:
    with pytest.raises(UnknownWork, match="zeros between"):
        work_of(conv_record((1, 1, 4, 4), (1, 1, 2, 2), (1, 1, 3, 3), (2, 2), (2, 2)))


BY_ROWS = [[[1], [1]], [[], []]], [0], [0]
BY_ROWS_TRANSPOSED = [[[1], [2]], [[], []]], [0], [0]
OVER_ROWS = [[[0], [0]], [[], []]], [0], []
IN_A_BATCH = [[[2], [1]], [[0], [0]]], [0], []
GROUPS = Tensor((2,), "int32")


def ragged(numbers: Any, first: Any, second: Any, out: tuple[int, ...]) -> Work:
    """The work of a ragged product with two groups and these dimension numbers."""
    op = make(
        "lax.ragged_dot_general", [first.shape, second.shape, GROUPS], [out], ragged_dot_dimension_numbers=numbers
    )
    return work_of(op)


@given(st.tuples(st.integers(1, 3), st.integers(1, 3)), SMALL, SMALL)
@RELAXED
def test_ragged_products_take_each_row_once(sizes: tuple[int, int], inner: int, width: int) -> None:
    group, tally = [0] * sizes[0] + [1] * sizes[1], Tally()
    rows = len(group)
    x, w = array(tally, rows, inner), array(tally, 2, inner, width)
    for row, column in np.ndindex(rows, width):
        accumulator = Accumulator(tally)
        for k in range(inner):
            accumulator.mac(x[row, k], w[group[row], k, column])
    assert ragged(BY_ROWS, x, w, (rows, width)) == tally.work()
    assert ragged(BY_ROWS_TRANSPOSED, x, w.transpose(0, 2, 1), (rows, width)) == tally.work()


@given(st.tuples(st.integers(1, 3), st.integers(1, 3)), SMALL, SMALL)
@RELAXED
def test_a_ragged_sum_takes_each_row_once(sizes: tuple[int, int], inner: int, width: int) -> None:
    group, tally = [0] * sizes[0] + [1] * sizes[1], Tally()
    rows = len(group)
    x, y = array(tally, rows, inner), array(tally, rows, width)
    for number, k, column in np.ndindex(2, inner, width):
        accumulator = Accumulator(tally)
        for row in [row for row in range(rows) if group[row] == number]:
            accumulator.mac(x[row, k], y[row, column])
    assert ragged(OVER_ROWS, x, y, (2, inner, width)) == tally.work()


def test_a_ragged_batch_takes_each_matrix_once() -> None:
    tally = Tally()
    x, y = array(tally, 5, 2, 3), array(tally, 5, 3, 4)
    for each, row, column in np.ndindex(5, 2, 4):
        dot(tally, x[each, row], y[each, :, column])
    assert ragged(IN_A_BATCH, x, y, (5, 2, 4)) == tally.work()


def test_the_gradient_of_a_transposed_filter_has_the_forward_products() -> None:
    """JAX: samples and features change places, and zeros stand between the elements of the input as in the forward pass."""
    batch, features, outputs, size, kernel, stride = 2, 3, 4, 5, 3, 2
    wide = (size - 1) * stride + kernel
    tally = Tally()
    x, w = array(tally, batch, features, size, size), array(tally, features, outputs, kernel, kernel)
    found = oracle.conv_transposed(tally, x, w, None, (stride, stride), (0, 0), (0, 0), (1, 1), 1)
    assert found.shape == (batch, outputs, wide, wide)
    op = make(
        "lax.conv_general_dilated", [x.shape, found.shape], [(outputs, features, kernel, kernel)],
        window_strides=[1, 1], lhs_dilation=[stride, stride], dimension_numbers=[[1, 0, 2, 3]] * 3, feature_group_count=1,
    )  # fmt: skip
    assert work_of(op).mac == tally.work().mac
