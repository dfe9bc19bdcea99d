"""Formulas of products and convolutions against loops that count, and the loops' values against torch's."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from reconcile.core.conventions import BUILT_IN
from reconcile.work import Work, work_of
from tests.work import oracle
from tests.work.beside_torch import RELAXED, SMALL, agree, data, tensors
from tests.work.counting import Tally
from tests.work.records_by_hand import make

F = torch.nn.functional


@RELAXED
@given(rows=SMALL, k=st.integers(0, 4), n=SMALL, bias=st.booleans())
def test_dense(rows, k, n, bias):
    x, w, b = data(rows, k), data(n, k), data(n) if bias else None
    tally = Tally()
    result = oracle.dense(tally, tally.array(x), tally.array(w), tally.array(b) if bias else None)
    out = F.linear(*tensors(x, w, b))
    agree(
        tally,
        result,
        out,
        make("aten.linear", [x.shape, w.shape] + [b.shape] * bias if bias else [x.shape, w.shape], [out]),
    )
    product = Work(mac=rows * n * k, accumulators=rows * n if k else 0)
    for transposed, shape in ((False, (rows, k)), (True, (k, rows))):
        assert work_of(make("MatMul", [shape, (k, n)], [(rows, n)], transpose_a=transposed)) == product
        batch = (shape, (2, k, n))
        assert (
            work_of(make("BatchMatMulV2", [(2, *batch[0]), batch[1]], [(2, rows, n)], adj_x=transposed)) == product * 2
        )


@st.composite
def convolutions(draw, transposed=False):
    axes, groups = draw(st.integers(1, 2)), draw(st.integers(1, 2))

    def per_axis(low, high):
        return tuple(draw(st.integers(low, high)) for _ in range(axes))

    kernel, stride, dilation, padding, size = (
        per_axis(1, 3), per_axis(1, 3), per_axis(1, 2), per_axis(0, 2), per_axis(1, 5),
    )  # fmt: skip
    channels, features = groups * draw(st.integers(1, 2)), draw(st.integers(1, 2))
    x = data(draw(st.integers(1, 2)), channels, *size)
    if transposed:
        weight, outputs = data(channels, features, *kernel), groups * features
    else:
        weight, outputs = data(groups * features, channels // groups, *kernel), groups * features
    bias = data(outputs) if draw(st.booleans()) else None
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    if transposed:
        extra = tuple(draw(st.integers(0, max(s, d) - 1)) for s, d in zip(stride, dilation, strict=True))
        grown = [(n - 1) * s + r - 2 * p + e for n, s, r, p, e in zip(size, stride, reach, padding, extra, strict=True)]
        assume(min(grown) > 0)
        return x, weight, bias, stride, padding, extra, dilation, groups
    assume(all(n + 2 * p >= r for n, p, r in zip(size, padding, reach, strict=True)))
    return x, weight, bias, stride, padding, dilation, groups


@RELAXED
@given(convolutions())
def test_convolution(case):
    x, weight, bias, stride, padding, dilation, groups = case
    tally = Tally()
    arrays = [tally.array(a) if a is not None else None for a in (x, weight, bias)]
    result = oracle.conv(tally, *arrays, stride, padding, dilation, groups)
    out = (F.conv1d if x.ndim == 3 else F.conv2d)(*tensors(x, weight, bias), stride, padding, dilation, groups)
    given_ = [a.shape for a in (x, weight, bias) if a is not None]
    agree(tally, result, out, make("aten.convolution", given_, [out], transposed=False))
    # TensorFlow keeps the kernel in front and the bias apart; its channels are last
    filter_ = (*weight.shape[2:], weight.shape[1], weight.shape[0])
    bias_add = Work(add=out.numel() if bias is not None else 0)
    assert work_of(make("Conv2D", [x.shape, filter_], [tuple(out.movedim(1, -1).shape)])) + bias_add == tally.work()


@RELAXED
@given(convolutions(transposed=True))
def test_transposed_convolution(case):
    x, weight, bias, stride, padding, extra, dilation, groups = case
    tally = Tally()
    arrays = [tally.array(a) if a is not None else None for a in (x, weight, bias)]
    result = oracle.conv_transposed(tally, *arrays, stride, padding, extra, dilation, groups)
    function = F.conv_transpose1d if x.ndim == 3 else F.conv_transpose2d
    out = function(*tensors(x, weight, bias), stride, padding, extra, groups, dilation)
    given_ = [a.shape for a in (x, weight, bias) if a is not None]
    agree(tally, result, out, make("aten.convolution", given_, [out], transposed=True))
    if groups == 1:  # filter (kh, kw, channels of the result, channels of out_backprop)
        filter_ = (*weight.shape[2:], weight.shape[1], weight.shape[0])
        op = make("Conv2DBackpropInput", [(4,), filter_, x.shape], [tuple(out.shape)])
        assert work_of(op) + Work(add=out.numel() if bias is not None else 0) == tally.work()


@RELAXED
@given(sizes=st.tuples(*[SMALL] * 4), multiplier=SMALL)
def test_depthwise_convolution(sizes, multiplier):
    height, width, channels, kernel = sizes
    x, weight = data(1, channels, height + 2, width + 2), data(channels * multiplier, 1, kernel, kernel)
    tally = Tally()
    result = oracle.conv(tally, tally.array(x), tally.array(weight), None, (1, 1), (0, 0), (1, 1), channels)
    shapes = [(1, height + 2, width + 2, channels), (kernel, kernel, channels, multiplier)]
    assert work_of(make("DepthwiseConv2dNative", shapes, [result.shape])) == tally.work()


@RELAXED
@given(
    sizes=st.tuples(*[SMALL] * 4),
    equation=st.sampled_from(
        ["ij,jk->ik", "bij,bjk->bik", "ijk,jl->kil", "ij,kl->likj", "ij,ij->ji", "ij,ij->", "i,i->i"]
    ),
)
def test_einsum(sizes, equation):
    size = dict(zip("ijkl", sizes, strict=True), b=2)
    left, right = equation.split("->")[0].split(",")
    a, b = data(*(size[i] for i in left)), data(*(size[i] for i in right))
    tally = Tally()
    result = oracle.einsum(tally, equation, tally.array(a), tally.array(b))
    summed = [i for i in left if i in right and i not in equation.split("->")[1]]
    alone = bool(summed) and all(size[i] == 1 for i in summed)  # PyTorch multiplies there: test_composites.py
    for name in ("Einsum",) if alone else ("aten.einsum", "Einsum"):
        agree(
            tally, result, np.einsum(equation, a, b), make(name, [a.shape, b.shape], [result.shape], equation=equation)
        )


@RELAXED
@given(sizes=st.tuples(*[SMALL] * 5), masked=st.booleans())
def test_attention(sizes, masked):
    heads, sq, sk, d, dv = sizes
    q, k, v, mask = data(heads, sq, d), data(heads, sk, d), data(heads, sk, dv), data(sq, sk)
    tally = Tally()
    arrays = [tally.array(a) for a in (q, k, v)]
    result = oracle.attention(tally, *arrays, tally.array(mask) if masked else None)
    expected = F.scaled_dot_product_attention(*tensors(q, k, v), attn_mask=torch.from_numpy(mask) if masked else None)
    shapes = [a.shape for a in ((q, k, v, mask) if masked else (q, k, v))]
    agree(tally, result, expected, make("aten.scaled_dot_product_attention", shapes, [expected], is_causal=False))


def test_a_stride_beyond_the_kernel_saves_at_most_all_adds():
    """5 products, 13 outputs: the textbook's 2K - 1 per dot product cannot fall below 0."""
    op = make("aten.conv_transpose1d", [(1, 1, 5), (1, 1, 1)], [(1, 1, 13)])
    assert work_of(op) == Work(mac=5, accumulators=5)
    assert BUILT_IN["textbook"].flops(work_of(op)) == 2 * 5 - 5
