"""Formulas of norms, softmax, pooling and upsampling against loops that count, and the loops' values against torch's."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from reconcile.work import Work, work_of
from tests.work import counting, oracle
from tests.work.beside_torch import RELAXED, SMALL, agree, data, tensors
from tests.work.counting import Tally
from tests.work.records_by_hand import make

F = torch.nn.functional


@RELAXED
@given(rows=SMALL, n=st.integers(1, 5))
def test_softmaxes(rows, n):
    x = data(rows, n)
    for kind, function in (("softmax", oracle.softmax), ("log_softmax", partial(oracle.log_softmax, kept=False))):
        tally = Tally()
        result = function(tally.array(x))
        expected = getattr(torch, kind)(*tensors(x), -1)
        agree(tally, result, expected, make(f"aten._{kind}", [(rows, n)], [(rows, n)], dim=-1))
        agree(tally, result, expected, make(f"aten.{kind}", [(n, rows)], [(n, rows)], dim=0))
    for kind, function in (("Softmax", oracle.softmax), ("LogSoftmax", partial(oracle.log_softmax, kept=True))):
        tally = Tally()
        function(tally.array(x))
        for name in (kind, f"onnx.{kind}"):
            assert work_of(make(name, [(rows, n)], [(rows, n)])) == tally.work()


@RELAXED
@given(rows=SMALL, n=st.integers(1, 5), weight=st.booleans(), bias=st.booleans())
def test_layer_and_rms_norm(rows, n, weight, bias):
    x, w, b = data(rows, n), data(n) if weight else None, data(n) if bias else None
    absent = {"weight": None} if not weight else {}
    tally = Tally()
    arrays = [None if a is None else tally.array(a) for a in (w, b)]
    result = oracle.layer_norm(tally.array(x), *arrays, 1e-5)
    given_ = [a.shape for a in (x, w, b) if a is not None]
    attrs = {**absent, **({} if bias else {"bias": None})}
    expected = F.layer_norm(torch.from_numpy(x), (n,), *tensors(w, b))
    agree(tally, result, expected, make("aten.native_layer_norm", given_, [(rows, n)], normalized_shape=[n], **attrs))
    tally = Tally()
    result = oracle.rms_norm(tally.array(x), None if w is None else tally.array(w), 1e-5)
    expected = F.rms_norm(torch.from_numpy(x), (n,), *tensors(w), eps=1e-5)
    agree(
        tally,
        result,
        expected,
        make("aten.rms_norm", given_[: 1 + weight], [(rows, n)], normalized_shape=[n], **absent),
    )


@RELAXED
@given(batch=SMALL, groups=SMALL, per_group=SMALL, spatial=SMALL)
def test_group_norm(batch, groups, per_group, spatial):
    channels = groups * per_group
    x, w, b = data(batch, channels, spatial), data(channels), data(channels)
    rows, n = batch * groups, per_group * spatial
    tally = Tally()
    plain = oracle.layer_norm(tally.array(x.reshape(rows, n)), None, None, 1e-5).reshape(x.shape)
    result = np.empty(x.shape, dtype=object)
    weights, biases = tally.array(w), tally.array(b)
    for i, c, s in np.ndindex(x.shape):
        result[i, c, s] = plain[i, c, s] * weights[c] + biases[c]
    expected = torch.group_norm(torch.from_numpy(x), groups, *tensors(w, b))
    agree(tally, result, expected, make("aten.group_norm", [x.shape, w.shape, b.shape], [x.shape], num_groups=groups))


@RELAXED
@given(
    batch=st.integers(2, 3),
    channels=SMALL,
    spatial=SMALL,
    weight=st.booleans(),
    bias=st.booleans(),
    training=st.booleans(),
)
def test_batch_norm(batch, channels, spatial, weight, bias, training):
    x, mean, var = data(batch, channels, spatial), data(channels), np.abs(data(channels)) + 0.1
    w, b = (data(channels) + 3 if on else None for on in (weight, bias))
    tally = Tally()
    flat = tally.array(x.transpose(1, 0, 2).reshape(channels, -1))
    affine = [None if a is None else tally.array(a) for a in (w, b)]
    running = tally.array(mean), tally.array(var)
    if training:
        result = oracle.batch_norm_training(flat, running, *affine, 1e-5, 0.1)
    else:
        result = oracle.batch_norm(flat, *running, *affine, 1e-5)
    torch_mean, torch_var = tensors(mean.copy(), var.copy())
    expected = F.batch_norm(torch.from_numpy(x), torch_mean, torch_var, *tensors(w, b), training=training, momentum=0.1)
    if training:
        np.testing.assert_allclose(counting.values(running[0]), torch_mean)
        np.testing.assert_allclose(counting.values(running[1]), torch_var)
    given_ = [a.shape for a in (x, w, b, mean, var) if a is not None]
    attrs = {name: None for name, on in (("weight", weight), ("bias", bias)) if not on}
    result = result.reshape(channels, batch, spatial).transpose(1, 0, 2)
    agree(tally, result, expected, make("aten.native_batch_norm", given_, [x.shape], training=training, **attrs))
    if weight and bias and not training:
        shapes = [(batch, spatial, 1, channels)] + [(channels,)] * 4
        assert work_of(make("FusedBatchNormV3", shapes, [shapes[0]], is_training=False)) == tally.work()


@RELAXED
@given(
    kernel=st.tuples(SMALL, SMALL),
    stride=st.tuples(SMALL, SMALL),
    dilation=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    padded=st.booleans(),
    ceil=st.booleans(),
)
@example(kernel=(3, 3), stride=(2, 2), dilation=(2, 1), padded=True, ceil=True)
def test_pooling(kernel, stride, dilation, padded, ceil):
    x = data(2, 2, 6, 7)
    padding = tuple(k // 2 if padded else 0 for k in kernel)
    options = {"kernel_size": list(kernel), "stride": list(stride), "padding": list(padding), "ceil_mode": ceil}
    expected = F.max_pool2d(torch.from_numpy(x), kernel, stride, padding, dilation, ceil)
    tally = Tally()
    found = oracle.windows(tally.array(x), kernel, stride, expected.shape[2:], padding, dilation)
    result = oracle.gathered(found, counting.largest)
    record = partial(make, inputs=[x.shape], outputs=[expected, expected], dilation=list(dilation), **options)
    agree(tally, result, expected, record("aten.max_pool2d_with_indices"))
    sides = {"pads": list(padding) * 2, "strides": list(stride), "dilations": list(dilation)}
    assert work_of(make("onnx.MaxPool", [x.shape], [expected], kernel_shape=list(kernel), **sides)) == tally.work()
    expected = F.avg_pool2d(torch.from_numpy(x), kernel, stride, padding, ceil, count_include_pad=False)
    tally = Tally()
    mean = lambda window: counting.total(window) / float(len(window))  # noqa: E731
    result = oracle.gathered(oracle.windows(tally.array(x), kernel, stride, expected.shape[2:], padding), mean)
    agree(tally, result, expected, make("aten.avg_pool2d", [x.shape], [expected], count_include_pad=False, **options))
    del sides["dilations"]
    assert work_of(make("onnx.AveragePool", [x.shape], [expected], kernel_shape=list(kernel), **sides)) == tally.work()


def test_a_padded_window_of_one_axis():
    """Windows of 3 at every place of 4, padded by 1: they read 2 + 3 + 3 + 2 elements, and are 4. Twice that: a batch of 2."""
    x, options = (2, 1, 4), {"kernel_size": [3], "stride": [1], "padding": [1]}
    assert work_of(make("aten.max_pool1d", [x], [x], **options)) == Work(cmp=2 * (10 - 4))
    assert work_of(make("aten.avg_pool1d", [x], [x], **options)) == Work(add=2 * (10 - 4), div=2 * 4)
    # without a stride windows lie side by side, and 2 windows of 3 fit into 4 with ceil_mode: 3 + 1 elements
    assert work_of(make("aten.max_pool1d", [x], [(2, 1, 2)], kernel_size=[3], stride=[])) == Work(cmp=2 * (4 - 2))


@RELAXED
@given(size=st.tuples(st.integers(1, 7), st.integers(1, 7)), out=st.tuples(st.integers(1, 5), st.integers(1, 5)))
def test_adaptive_pooling(size, out):
    x = data(2, 1, *size)
    tally = Tally()
    mean = lambda window: counting.total(window) / float(len(window))  # noqa: E731
    result = oracle.gathered(oracle.adaptive_windows(tally.array(x), out), mean)
    expected = F.adaptive_avg_pool2d(torch.from_numpy(x), out)
    agree(tally, result, expected, make("aten._adaptive_avg_pool2d", [x.shape], [expected]))
    tally = Tally()
    result = oracle.gathered(oracle.adaptive_windows(tally.array(x), out), counting.largest)
    expected = F.adaptive_max_pool2d(torch.from_numpy(x), out)
    agree(tally, result, expected, make("aten.adaptive_max_pool2d", [x.shape], [expected]))


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_linear_interpolation_to_twice_the_size(axes):
    x = data(1, 1, *[3] * axes)
    tally = Tally()
    source = tally.array(x)
    result = np.empty((1, 1, *[6] * axes), dtype=object)
    for index in np.ndindex(result.shape):
        at = [max((i + 0.5) / 2 - 0.5, 0) for i in index[2:]]
        lows = [int(a) for a in at]
        fractions = [(1 - a + low, a - low) for a, low in zip(at, lows, strict=True)]
        corners = [
            source[(0, 0, *(min(low + step, 2) for low, step in zip(lows, steps, strict=True)))]
            for steps in np.ndindex(*[2] * axes)
        ]
        result[index] = oracle.interpolate(corners, fractions)
    mode = {1: "linear", 2: "bilinear", 3: "trilinear"}[axes]
    expected = F.interpolate(torch.from_numpy(x), scale_factor=2, mode=mode, align_corners=False)
    agree(tally, result, expected, make(f"aten.upsample_{mode}{axes}d", [x.shape], [expected]))
