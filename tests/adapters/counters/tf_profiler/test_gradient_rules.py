"""Gradient ops one by one: tf.profiler's rules against the profiler itself, and work formulas against naive loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcile.adapters.counters.rulebook import apply
from reconcile.adapters.counters.tf_profiler.capture import _profile
from reconcile.adapters.counters.tf_profiler.rules import BOOK
from reconcile.adapters.tensorflow.graphs import graph as tf_graph
from reconcile.core.records import FLOP
from reconcile.engine.booking import own_value
from reconcile.work import Work, work_of
from tests.work.counting import Tally, values
from tests.work.records_by_hand import make

raw = tf.raw_ops
VERSIONS = {"tensorflow": tf.__version__}
FEW = settings(max_examples=15, deadline=None)
SMALL = st.integers(1, 3)
PADDING = st.sampled_from(["SAME", "VALID"])


def built(add):
    """(op record, what tf.profiler counts) of each op that ``add`` puts into a graph, constants apart."""
    graph = tf.Graph()
    with graph.as_default():
        add()
    counted = _profile(graph, None)
    return [
        (tf_graph.op_record(op, op.name, ""), counted.get(op.name, 0))
        for op in graph.get_operations()
        if op.type not in ("Const", "Placeholder")
    ]


def holder(*shape):
    return tf.compat.v1.placeholder(tf.float32, shape)


def held(pairs):
    for op, counted in pairs:
        included, missed = apply(BOOK.find(op.op, VERSIONS), op, lambda o: o.op)
        assert (0 if missed else own_value(included, FLOP)) == counted, op
    return [counted for _, counted in pairs]


def out(size, kernel, stride, padding):
    return -(-size // stride) if padding == "SAME" else -(-(size - kernel + 1) // stride)


@FEW
@given(size=st.integers(3, 9), kernel=SMALL, stride=SMALL, padding=PADDING, ins=SMALL, outs=SMALL)
def test_convolutions(size, kernel, stride, padding, ins, outs):
    short = out(size, kernel, stride, padding)
    both = {"strides": [1, stride, stride, 1], "padding": padding}

    def add():
        x, filter_, dy = holder(2, size, size, ins), holder(kernel, kernel, ins, outs), holder(2, short, short, outs)
        raw.Conv2DBackpropInput(input_sizes=[2, size, size, ins], filter=filter_, out_backprop=dy, **both)
        raw.Conv2DBackpropFilter(input=x, filter_sizes=[kernel, kernel, ins, outs], out_backprop=dy, **both)

    # what it counts is the image by stride^2; what runs is the convolution's output
    counted = int(2 * (2 * size * size * ins) * (kernel * kernel * ins * outs) / (ins * stride * stride))
    pairs = built(add)
    assert held(pairs) == [counted, counted]
    ran = 2 * short * short * outs * kernel * kernel * ins
    elements = 2 * size * size * ins, kernel * kernel * ins * outs
    assert [work_of(op) for op, _ in pairs] == [Work(mac=ran, accumulators=min(n, ran)) for n in elements]
    assert (counted == 2 * ran) == (size * size == short * short * stride * stride)


@FEW
@given(size=st.integers(3, 7), kernel=st.integers(1, 3), stride=SMALL, padding=PADDING, nchw=st.booleans())
def test_pools(size, kernel, stride, padding, nchw):
    short = out(size, kernel, stride, padding)
    layout = {"data_format": "NCHW"} if nchw else {}

    def places(a, b, c, d):
        return [a, d, b, c] if nchw else [a, b, c, d]

    both = {"strides": places(1, stride, stride, 1), "ksize": places(1, kernel, kernel, 1), "padding": padding}

    def add():
        x, dy = holder(*places(2, size, size, 3)), holder(*places(2, short, short, 3))
        raw.MaxPoolGrad(orig_input=x, orig_output=dy, grad=dy, **both, **layout)
        raw.AvgPoolGrad(orig_input_shape=places(2, size, size, 3), grad=dy, **both, **layout)

    g, window = 2 * short * short * 3, kernel * kernel
    pairs = built(add)
    assert held(pairs) == ([0, 0] if nchw else [(window + 1) * g, 2 * window * g])
    # what ran is clipped to the picture: the places from i * stride - before on that lie inside, along both axes
    before = max((short - 1) * stride + kernel - size, 0) // 2 if padding == "SAME" else 0
    inside = [len([tap for tap in range(kernel) if 0 <= i * stride - before + tap < size]) for i in range(short)]
    reads = 2 * sum(inside) ** 2 * 3
    assert [work_of(op) for op, _ in pairs] == [Work(cmp=reads - g, add=g), Work(div=g, add=reads)]


@FEW
@given(rows=SMALL, m=SMALL, k=SMALL, n=SMALL, adj_x=st.booleans(), adj_y=st.booleans())
def test_products_of_several(rows, m, k, n, adj_x, adj_y):
    def add():
        a = holder(rows, *((k, m) if adj_x else (m, k)))
        raw.BatchMatMulV2(x=a, y=holder(rows, *((n, k) if adj_y else (k, n))), adj_x=adj_x, adj_y=adj_y)

    pairs = built(add)
    assert held(pairs) == [2 * rows * m * n * (m if adj_x else k)]  # it does not look at adj_x
    assert work_of(pairs[0][0]).mac == rows * m * n * k


@FEW
@given(rows=SMALL, n=st.integers(1, 5))
def test_the_rest(rows, n):
    def add():
        a, b = holder(rows, n), holder(rows, n)
        raw.RsqrtGrad(y=a, dy=b)
        raw.BiasAddGrad(out_backprop=a)
        raw.AddN(inputs=[a, b, a])
        for name in ("SigmoidGrad", "TanhGrad", "SqrtGrad"):
            getattr(raw, name)(y=a, dy=b)
        raw.ReluGrad(gradients=a, features=b)

    assert held(built(add)) == [4 * rows * n, rows * n - n, 2 * rows * n, 0, 0, 0, 0]


def data(*shape):
    return np.random.default_rng(0).normal(size=shape).astype("float32")


def agree(tally, result, expected, op):
    np.testing.assert_allclose(values(np.array(result, dtype=object)), np.asarray(expected), rtol=1e-5, atol=1e-6)
    assert work_of(op) == tally.work()


@pytest.mark.parametrize("name", ["UnsortedSegmentSum", "ScatterNd", "TensorScatterAdd"])
def test_rows_added_to_where_they_were_taken_from(name):
    updates, ids, start = data(5, 3), np.array([0, 2, 0, 1, 2]), data(4, 3)
    tally = Tally()
    grid = tally.array(start) if name == "TensorScatterAdd" else tally.zeros((4, 3))
    for row, id in zip(tally.array(updates), ids, strict=True):
        for at, item in enumerate(row):
            grid[id, at] = grid[id, at] + item
    if name == "UnsortedSegmentSum":
        expected = raw.UnsortedSegmentSum(data=updates, segment_ids=ids, num_segments=4)
        op = make(name, [updates, ids, ()], [start])
    elif name == "ScatterNd":
        expected = raw.ScatterNd(indices=ids[:, None], updates=updates, shape=[4, 3])
        op = make(name, [ids[:, None], updates, (2,)], [start])
    else:
        expected = raw.TensorScatterAdd(tensor=start, indices=ids[:, None], updates=updates)
        op = make(name, [start, ids[:, None], updates], [start])
    agree(tally, grid, expected, op)


def test_bilinear():
    dy, small, wide = data(1, 5, 7, 2), 3, 4
    expected = raw.ResizeBilinearGrad(grads=dy, original_image=data(1, small, wide, 2), half_pixel_centers=True)
    tally = Tally()
    grid, back = tally.zeros((1, small, wide, 2)), tally.array(dy)

    def spread(size, target):
        for i in range(target):
            place = max((i + 0.5) * size / target - 0.5, 0.0)
            low = min(math.floor(place), size - 1)
            yield i, ((low, 1 - (place - low)), (min(low + 1, size - 1), place - low))

    for y, rows in spread(small, 5):
        for x, columns in spread(wide, 7):
            for c in range(2):
                for row, by in rows:
                    for column, bx in columns:
                        grid[0, row, column, c] = grid[0, row, column, c] + back[0, y, x, c] * by * bx
    agree(tally, grid, expected, make("ResizeBilinearGrad", [dy, grid.shape], [grid.shape]))


def test_nearest_neighbour():
    dy = data(1, 4, 4, 1)
    expected = raw.ResizeNearestNeighborGrad(grads=dy, size=[2, 2])
    tally = Tally()
    grid, back = tally.zeros((1, 2, 2, 1)), tally.array(dy)
    for y, x in np.ndindex(4, 4):
        grid[0, y // 2, x // 2, 0] = grid[0, y // 2, x // 2, 0] + back[0, y, x, 0]
    agree(tally, grid, expected, make("ResizeNearestNeighborGrad", [dy, (2,)], [grid.shape]))


def test_mirrored_padding():
    dy = data(2, 7)
    expected = raw.MirrorPadGrad(input=dy, paddings=[[0, 0], [2, 2]], mode="REFLECT")
    tally = Tally()
    rows = []
    for row in tally.array(dy):
        inner = list(row[2:5])
        for at, item in ((1, row[1]), (2, row[0]), (1, row[5]), (0, row[6])):
            inner[at] = inner[at] + item
        rows.append(inner)
    agree(tally, rows, expected, make("MirrorPadGrad", [dy, (2, 2)], [(2, 3)]))


@pytest.mark.parametrize(
    ("op", "first", "expression"),
    [
        (raw.LeakyReluGrad, {"alpha": 0.2}, lambda dy, x: np.where(x > 0, dy, dy * 0.2)),
        (raw.SoftplusGrad, {}, lambda dy, x: dy / (np.exp(-x) + 1)),
        (raw.SoftsignGrad, {}, lambda dy, x: dy / (1 + np.abs(x)) ** 2),
    ],
)
def test_the_kernels_compute_what_is_counted(op, first, expression):
    dy, x = data(7), data(2, 7)[1]
    np.testing.assert_allclose(op(gradients=dy, features=x, **first), expression(dy, x), rtol=1e-5)
