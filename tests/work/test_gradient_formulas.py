"""Formulas of the backward pass against naive loops, whose values are torch's."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcile.work import ZERO, UnknownWork, work_of
from tests.work import gradient_loops as loops
from tests.work import oracle
from tests.work.beside_torch import RELAXED, SMALL, agree, data
from tests.work.counting import Num, Tally, values
from tests.work.records_by_hand import make

F = torch.nn.functional
A = torch.ops.aten
FEW = settings(max_examples=8, deadline=None)
MASKS = st.tuples(st.booleans(), st.booleans(), st.booleans()).filter(any)


def held(op, mask, tally):
    """The whole call is what the loops did, and its parts add up to it."""
    assert work_of(op) == tally.work()
    parts = [op._replace(attrs={**op.attrs, "part": i}) for i, wanted in enumerate(mask) if wanted]
    assert sum(map(work_of, parts), ZERO) == tally.work()
    assert [part for part in parts if min(work_of(part)) < 0] == []


def close(result, expected):
    np.testing.assert_allclose(values(np.array(result, dtype=object)), expected, rtol=1e-7, atol=1e-9)


@FEW
@given(data_=st.data(), axes=st.integers(1, 2), transposed=st.booleans(), mask=MASKS)
def test_convolution(data_, axes, transposed, mask):
    draw = data_.draw
    several = st.tuples(*[st.integers(1, 2)] * axes)
    batch, groups, ins, outs = draw(st.integers(1, 2)), draw(st.integers(1, 2)), draw(SMALL), draw(SMALL)
    stride, dilation, kernel = draw(several), draw(several), draw(several)
    padding = draw(st.tuples(*[st.integers(0, 1)] * axes))
    size = draw(st.tuples(*[st.integers(3, 4)] * axes))
    x = data(batch, ins * groups, *size)
    w = data(*((ins * groups, outs) if transposed else (outs * groups, ins)), *kernel)
    shared = [stride, padding, dilation, transposed, [0] * axes, groups]
    out = torch.convolution(torch.from_numpy(x), torch.from_numpy(w), None, *shared)
    if 0 in out.shape:
        return
    g = data(*out.shape)
    expected = A.convolution_backward(*map(torch.from_numpy, (g, x, w)), [outs * groups], *shared, list(mask))
    tally = Tally()
    grads, inputs, weights = map(tally.array, (g, x, w))
    if mask[0]:
        found = loops.conv_input(tally, grads, x.shape, weights, stride, padding, dilation, groups, transposed)
        close(found, expected[0])
    if mask[1]:
        pair = (inputs, grads) if transposed else (grads, inputs)
        close(loops.conv_weight(tally, *pair, w.shape, stride, padding, dilation, groups), expected[1])
    if mask[2]:
        close(loops.sums(grads.swapaxes(0, 1).reshape(outs * groups, -1)), expected[2])
    op = make("aten.convolution_backward", [g, x, w], [], transposed=transposed, output_mask=list(mask), groups=groups)
    held(op, mask, tally)


@FEW
@given(batch=SMALL, channels=SMALL, spatial=st.integers(2, 3), training=st.booleans(), affine=st.booleans(), mask=MASKS)
def test_batch_norm(batch, channels, spatial, training, affine, mask):
    x, g = data(batch, channels, spatial), data(batch, channels, spatial)[::-1].copy()
    w, mean, var = data(channels) + 3, data(channels), np.abs(data(channels)) + 0.1
    if training:
        mean, var = x.mean((0, 2)), x.var((0, 2))
    t = [torch.from_numpy(a.copy()) for a in (g, x, w, mean, var)]
    invstd = 1 / torch.sqrt(t[4] + 1e-5)
    args = (t[0], t[1], t[2] if affine else None, t[3], t[4], t[3], invstd, training, 1e-5, list(mask))
    expected = A.native_batch_norm_backward(*args)
    tally = Tally()
    rows = [tally.array(a.transpose(1, 0, 2).reshape(channels, -1)) for a in (x, g)]
    weight = tally.array(w) if affine else None
    found = loops.batch_norm(*rows, tally.array(mean), tally.array(var), weight, 1e-5, training, mask)
    if mask[0]:
        close(found[0], expected[0].transpose(0, 1).reshape(channels, -1))
    if mask[1] and affine:
        close(found[1], expected[1])
    if mask[2]:
        close(found[2], expected[2])
    attrs = {} if affine else {"weight": None}
    op = make("aten.native_batch_norm_backward", [g, x], [], train=training, output_mask=list(mask), **attrs)
    held(op, mask, tally)
    if training and affine and all(mask):  # the kernels of cuDNN and MIOpen: no mask, data before the gradient
        for library in ("cudnn", "miopen"):
            of_library = make(f"aten.{library}_batch_norm_backward", [x, g], [])
            parts = [of_library._replace(attrs={"part": part}) for part in range(3)]
            assert work_of(of_library) == work_of(op) == sum(map(work_of, parts), ZERO)


@RELAXED
@given(batch=SMALL, channels=SMALL, spatial=st.integers(2, 4), training=st.booleans())
def test_batch_norm_of_tensorflow(batch, channels, spatial, training):
    x, dy = data(batch, channels, spatial), data(batch, channels, spatial)
    weight, mean, var = data(channels) + 3, data(channels), np.abs(data(channels)) + 0.1
    if training:
        mean, var = x.mean((0, 2)), x.var((0, 2))
    leaves = [torch.from_numpy(a.copy()).requires_grad_() for a in (x, weight, np.zeros(channels))]
    running = [torch.from_numpy(a.copy()) for a in (mean, var)]
    F.batch_norm(leaves[0], *running, *leaves[1:], training=training).backward(torch.from_numpy(dy))
    tally = Tally()
    rows = [tally.array(a.transpose(1, 0, 2).reshape(channels, -1)) for a in (x, dy)]
    gradient = oracle.batch_norm_training_gradient if training else oracle.batch_norm_gradient
    found = gradient(*rows, *[tally.array(a) for a in (mean, var, weight)], 1e-5)
    for c, (dx, scale, offset) in enumerate(found):
        np.testing.assert_allclose(values(dx), leaves[0].grad[:, c].reshape(-1), atol=1e-9)
        np.testing.assert_allclose([scale.value, offset.value], [leaves[1].grad[c], leaves[2].grad[c]], atol=1e-9)
    shapes = [(batch, spatial, 1, channels)] * 2 + [(channels,)] * 4
    op = make("FusedBatchNormGradV3", shapes, [shapes[0], (channels,), (channels,)], is_training=training)
    assert work_of(op) == tally.work()


@FEW
@given(rows=SMALL, n=st.integers(2, 4), affine=st.booleans(), mask=MASKS)
def test_layer_norm(rows, n, affine, mask):
    x, g, w = data(rows, n), data(n, rows).T.copy(), data(n) + 2
    mean, rstd = x.mean(1), 1 / np.sqrt(x.var(1) + 1e-5)
    t = [torch.from_numpy(a) for a in (g, x, mean[:, None], rstd[:, None], w)]
    both = [t[4], t[4]] if affine else [None, None]
    wanted = [mask[0], mask[1] and affine, mask[2] and affine]
    expected = A.native_layer_norm_backward(t[0], t[1], [n], t[2], t[3], *both, wanted)
    tally = Tally()
    back = tally.array(g)
    weight = [tally.array(w)] * rows if affine else None
    inputs, scales = loops.layer_norm(tally.array(x), back, tally.array(mean), tally.array(rstd), weight, wanted)
    if wanted[0]:
        close(inputs, expected[0])
    if wanted[1]:
        close(loops.sums(np.array(scales, dtype=object).T), expected[1])
    if wanted[2]:
        close(loops.sums(back.T), expected[2])
    attrs = {} if affine else {"weight": None}
    op = make("aten.native_layer_norm_backward", [g, x], [], normalized_shape=[n], output_mask=wanted, **attrs)
    held(op, wanted, tally)


@FEW
@given(batch=SMALL, groups=SMALL, per_group=SMALL, spatial=st.integers(2, 3), mask=MASKS)
def test_group_norm(batch, groups, per_group, spatial, mask):
    channels = groups * per_group
    x, g, w = data(batch, channels, spatial), data(batch, channels, spatial)[::-1].copy(), data(channels) + 2
    rows, n = batch * groups, per_group * spatial
    flat = x.reshape(rows, n)
    mean, rstd = flat.mean(1), 1 / np.sqrt(flat.var(1) + 1e-5)
    t = [torch.from_numpy(a) for a in (g, x, mean.reshape(batch, groups), rstd.reshape(batch, groups), w)]
    expected = A.native_group_norm_backward(*t, batch, channels, spatial, groups, list(mask))
    tally = Tally()
    back, weights = tally.array(g), tally.array(w)
    each = np.broadcast_to(weights[None, :, None], x.shape).reshape(rows, n)
    found = loops.layer_norm(tally.array(flat), back.reshape(rows, n), tally.array(mean), tally.array(rstd), each, mask)
    if mask[0]:
        close(np.array(found[0], dtype=object).reshape(x.shape), expected[0])
    if mask[1]:
        scales = np.array(found[1], dtype=object).reshape(x.shape)
        close(loops.sums(scales.swapaxes(0, 1).reshape(channels, -1)), expected[1])
    if mask[2]:
        close(loops.sums(back.swapaxes(0, 1).reshape(channels, -1)), expected[2])
    op = make("aten.native_group_norm_backward", [g, x], [], group=groups, output_mask=list(mask))
    held(op, mask, tally)


@FEW
@given(rows=SMALL, n=st.integers(1, 4))
def test_softmaxes(rows, n):
    x, g = data(rows, n), data(n, rows).T.copy()
    for kind, loop in (("_softmax", loops.softmax), ("_log_softmax", loops.log_softmax)):
        y = getattr(torch, kind)(torch.from_numpy(x), -1, False)
        expected = getattr(A, f"{kind}_backward_data")(torch.from_numpy(g), y, -1, torch.float64)
        tally = Tally()
        found = loop(tally.array(y.numpy()), tally.array(g))
        agree(tally, found, expected, make(f"aten.{kind}_backward_data", [g, y], [g], dim=-1))


def places(size, kernel, stride, padding):
    """Index of a window's output -> the places it reads, None where it is on padding."""
    out = (size + 2 * padding - kernel) // stride + 1
    reads = {}
    for at in itertools.product(range(out), repeat=2):
        where = itertools.product(*(range(i * stride - padding, i * stride - padding + kernel) for i in at))
        reads[(0, 0, *at)] = [(0, 0, *w) if all(0 <= v < size for v in w) else None for w in where]
    return reads, (1, 1, out, out)


@FEW
@given(size=st.integers(3, 5), kernel=st.integers(2, 3), stride=SMALL, padding=st.integers(0, 1))
def test_average_pool(size, kernel, stride, padding):
    reads, shape = places(size, kernel, stride, padding)
    x, g = data(1, 1, size, size), data(*shape)
    arguments = [kernel, kernel], [stride, stride], [padding, padding], False, True, None
    expected = A.avg_pool2d_backward(torch.from_numpy(g), torch.from_numpy(x), *arguments)
    tally = Tally()
    found = loops.spread(tally, x.shape, reads, tally.array(g))
    sides = {"kernel_size": [kernel, kernel], "stride": [stride, stride], "padding": [padding, padding]}
    agree(tally, found, expected, make("aten.avg_pool2d_backward", [g, x], [x], **sides))


@FEW
@given(size=st.integers(2, 6), out=st.integers(1, 3))
def test_adaptive_average_pool(size, out):
    x, g = data(1, 1, size, size), data(1, 1, out, out)
    spans = [range(i * size // out, math.ceil((i + 1) * size / out)) for i in range(out)]
    reads = {(0, 0, i, j): [(0, 0, a, b) for a in spans[i] for b in spans[j]] for i in range(out) for j in range(out)}
    expected = A._adaptive_avg_pool2d_backward(torch.from_numpy(g), torch.from_numpy(x))
    tally = Tally()
    found = loops.spread(tally, x.shape, reads, tally.array(g))
    agree(tally, found, expected, make("aten._adaptive_avg_pool2d_backward", [g, x], [x]))


@FEW
@given(size=st.integers(3, 5), kernel=st.integers(2, 3), stride=SMALL)
def test_max_pool(size, kernel, stride):
    x = torch.from_numpy(data(1, 1, size, size)).requires_grad_()
    out, indices = A.max_pool2d_with_indices(x, [kernel, kernel], [stride, stride])
    g = data(*out.shape)
    out.backward(torch.from_numpy(g))
    tally = Tally()
    grid = tally.zeros((size * size,))
    for index, back in zip(indices.flatten(), tally.array(g).ravel(), strict=True):
        grid[int(index)] = grid[int(index)] + back
    agree(tally, grid, x.grad.flatten(), make("aten.max_pool2d_with_indices_backward", [g, x, indices], [x]))


@FEW
@given(rows=st.integers(1, 6), words=SMALL, width=SMALL)
def test_embedding(rows, words, width):
    g, ids = data(rows, width), np.arange(rows) % words
    expected = A.embedding_dense_backward(torch.from_numpy(g), torch.from_numpy(ids), words, -1, False)
    tally = Tally()
    grid, back = tally.zeros((words, width)), tally.array(g)
    for r, c in np.ndindex(g.shape):
        grid[ids[r], c] = grid[ids[r], c] + back[r, c]
    agree(tally, grid, expected, make("aten.embedding_dense_backward", [g, ids], [(words, width)]))


def erf_slope(x: Num, g: Num) -> Num:
    cdf = 0.5 * (1 + (x * math.sqrt(0.5)).special(math.erf))
    pdf = 1 / math.sqrt(2 * math.pi) * (x * x * -0.5).special(math.exp)
    return g * (cdf + x * pdf)


def tanh_slope(x: Num, g: Num) -> Num:
    b, k = math.sqrt(2 / math.pi), 0.044715
    square = x * x
    cube = square * x
    t = (b * (x + k * cube)).tanh()
    left, right = 0.5 * x, 1 + t
    inner = b * (1 + 3 * k * square)
    return g * (0.5 * right + left * (1 - t * t) * inner)


def chosen(tests: int, inside: bool, costly: Num, other: Num | float) -> Num:
    """This number of comparisons; the costlier side was computed (and counted) whichever is taken."""
    costly.tally["cmp"] += tests
    return costly if inside else Num(other.value if isinstance(other, Num) else other, costly.tally)


def silu_slope(x: Num, g: Num) -> Num:
    s = x.sigmoid()
    return g * s * (1 + x * (1 - s))


def softplus_slope(x: Num, g: Num) -> Num:
    z = (x * 2.0).special(math.exp)
    return chosen(1, x.value * 2 <= 20, g * z / (z + 1), g)


# name -> (expression of x and g, torch's function, the record's attributes)
ACTIVATIONS = {
    "threshold_backward": (lambda x, g: chosen(1, x.value > 0, g, 0.0), F.relu, {}),
    "hardtanh_backward": (lambda x, g: chosen(2, 0 < x.value < 6, g, 0.0), F.relu6, {}),
    "leaky_relu_backward": (lambda x, g: chosen(1, x.value <= 0, g * 0.01, g), F.leaky_relu, {}),
    "sigmoid_backward": (
        lambda x, g: (lambda y: g * (1 - y) * y)(Num(1 / (1 + math.exp(-x.value)), g.tally)),
        torch.sigmoid,
        {},
    ),
    "tanh_backward": (lambda x, g: (lambda y: g * (1 - y * y))(Num(math.tanh(x.value), g.tally)), torch.tanh, {}),
    "elu_backward": (
        lambda x, g: chosen(1, x.value <= 0, g * 1.0 * 1.0 * (x * 1.0).special(math.exp), g),
        F.elu,
        {"is_result": False},
    ),
    "elu_backward in place": (
        lambda x, g: chosen(1, x.value <= 0, g * 1.0 * (Num(math.expm1(min(x.value, 0)), g.tally) + 1.0), g),
        lambda x: F.elu(x * 1, inplace=True),
        {"is_result": True},
    ),
    "silu_backward": (silu_slope, F.silu, {}),
    "gelu_backward": (erf_slope, F.gelu, {"approximate": "none"}),
    "gelu_backward tanh": (tanh_slope, lambda x: F.gelu(x, approximate="tanh"), {"approximate": "tanh"}),
    "softplus_backward": (softplus_slope, lambda x: F.softplus(x, 2), {}),
    "hardswish_backward": (
        lambda x, g: chosen(2, abs(x.value) < 3, g * (x / 3.0 + 0.5), 0.0 if x.value < 0 else g),
        F.hardswish,
        {},
    ),
    "hardsigmoid_backward": (lambda x, g: chosen(2, abs(x.value) < 3, g * (1 / 6), 0.0), F.hardsigmoid, {}),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation(name):
    expression, function, attrs = ACTIVATIONS[name]
    x, g = data(12) * 3, data(13)[1:]
    leaf = torch.from_numpy(x.copy()).requires_grad_()
    function(leaf).backward(torch.from_numpy(g))
    tally = Tally()
    found = np.array([expression(a, b) for a, b in zip(tally.array(x), tally.array(g), strict=True)], dtype=object)
    agree(tally, found, leaf.grad, make(f"aten.{name.split()[0]}", [g, x], [x], **attrs))


def test_a_record_without_its_mask_is_unknown():
    with pytest.raises(UnknownWork, match="output_mask"):
        work_of(make("aten.convolution_backward", [(1, 1, 2), (1, 1, 2), (1, 1, 1)], [], transposed=False))
