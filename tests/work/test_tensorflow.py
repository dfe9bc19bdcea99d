"""TensorFlow formulas against counting loops whose values are the real kernels', and against graphs of Keras layers."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from reconcile.adapters.tensorflow.graphs import graph as tf_graph
from reconcile.adapters.tensorflow.graphs.liveness import live_operations
from reconcile.core.work import UnknownWork
from reconcile.work import ZERO, Work, find, load, work_of
from tests.work import cells, counting, oracle
from tests.work.counting import Tally
from tests.work.records_by_hand import make

raw = tf.raw_ops


def data(*shape):
    return np.random.default_rng(0).normal(size=shape).astype("float32")


def graph_ops(function, *shapes):
    """Records of all live ops of a function of float32 tensors of these shapes, in one graph."""
    concrete = tf.function(function, autograph=False).get_concrete_function(*(tf.TensorSpec(s) for s in shapes))
    live = live_operations(concrete.outputs)
    return [tf_graph.op_record(o, o.name, "") for o in concrete.graph.get_operations() if o in live or o.name in live]


def graph_work(function, *shapes):
    return sum(map(work_of, graph_ops(function, *shapes)), ZERO)


def close(result, expected):
    np.testing.assert_allclose(counting.values(result), np.asarray(expected), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("batch", "width", "hidden"), [(1, 1, 1), (2, 3, 4)])
def test_keras_gru_cell_reset_after(batch, width, hidden):
    import keras

    cell = keras.layers.GRUCell(hidden, reset_after=True)
    x, h = data(batch, width), data(batch, hidden)
    cell.build((batch, width))
    cell.set_weights([data(*w.shape) for w in cell.weights])
    kernel, recurrent, bias = cell.get_weights()
    tally = Tally()
    result = cells.keras_gru_cell(tally, *map(tally.array, (x, h, kernel, recurrent, bias[0], bias[1])))
    close(result, cell(tf.constant(x), tf.constant(h))[0])
    assert graph_work(lambda a, b: cell(a, b)[0], x.shape, h.shape) == tally.work()


def test_gru_block_cell():
    x, h, w_ru, w_c, b_ru, b_c = data(2, 3), data(2, 4), data(7, 8), data(7, 4), data(8), data(4)
    names = dict(zip(("x", "h_prev", "w_ru", "w_c", "b_ru", "b_c"), (x, h, w_ru, w_c, b_ru, b_c), strict=True))
    tally = Tally()
    close(cells.block_gru_cell(tally, *map(tally.array, names.values())), raw.GRUBlockCell(**names).h)
    shapes = [a.shape for a in names.values()]
    assert work_of(make("GRUBlockCell", shapes, [h.shape] * 4)) == tally.work()


@pytest.mark.parametrize("peephole", [False, True])
@pytest.mark.parametrize("steps", [None, 1, 3])
def test_lstm_blocks(peephole, steps):
    x, c, h, w, b = data(steps or 1, 2, 3), data(2, 4), data(2, 4), data(7, 16), data(16)
    peepholes = [data(4) + i for i in range(3)]
    tally = Tally()
    cs, hs, ws, bs, *ps = map(tally.array, (c, h, w, b, *peepholes))
    for step in x:
        hs, cs = cells.block_lstm_cell(tally, tally.array(step), cs, hs, ws, bs, 1.0, ps if peephole else None)
    options = {"use_peephole": peephole, "forget_bias": 1.0, "cell_clip": 0.0}
    arrays = {"cs_prev": c, "h_prev": h, "w": w, **dict(zip(("wci", "wcf", "wco"), peepholes, strict=True)), "b": b}
    if steps is None:
        close(hs, raw.LSTMBlockCell(x=x[0], **arrays, **options).h)
        op = make("LSTMBlockCell", [x[0].shape, *(a.shape for a in arrays.values())], [h.shape] * 7, **options)
    else:
        close(hs, raw.BlockLSTM(seq_len_max=tf.constant(steps, tf.int64), x=x, **arrays, **options).h[-1])
        op = make("BlockLSTM", [(), x.shape, *(a.shape for a in arrays.values())], [(steps, 2, 4)] * 7, **options)
    assert work_of(op) == tally.work()
    clipped = op._replace(attrs={**options, "cell_clip": 3.0})
    assert work_of(clipped) == tally.work() + Work(cmp=2 * len(x) * h.size)


def test_binary_and_many_operand_ops():
    """test_tables holds the expressions."""
    a, b = data(2, 3), data(3)
    for name, expected in {
        "Elu": Work(cmp=6, add=6, special=6), "Softsign": Work(cmp=6, add=6, div=6), "LeakyRelu": Work(cmp=6, mul=6),
    }.items():  # fmt: skip
        function = getattr(raw, name)
        assert graph_work(lambda x, f=function: f(features=x), a.shape) == expected, name
    for name, expected in {
        "Reciprocal": Work(div=6), "Square": Work(mul=6), "Neg": Work(add=6), "Tanh": Work(special=6), "Abs": Work(cmp=6),
        "Sigmoid": Work(special=6), "Erf": Work(special=6), "Floor": Work(special=6),
    }.items():  # fmt: skip
        function = getattr(raw, name)
        assert graph_work(lambda x, f=function: f(x=x), a.shape) == expected, name
    assert graph_work(tf.nn.relu6, a.shape) == Work(cmp=12)
    for name, expected in {
        "AddV2": Work(add=6), "Sub": Work(add=6), "Mul": Work(mul=6), "RealDiv": Work(div=6), "Maximum": Work(cmp=6),
        "Pow": Work(special=6), "SquaredDifference": Work(add=6, mul=6), "DivNoNan": Work(cmp=6, div=6),
        "FloorDiv": Work(div=6, special=6), "FloorMod": Work(div=6), "GreaterEqual": Work(cmp=6),
    }.items():  # fmt: skip
        function = getattr(raw, name)
        assert graph_work(lambda x, y, f=function: f(x=x, y=y), a.shape, b.shape) == expected, name
    assert graph_work(lambda x: tf.add_n([x, x, x]), a.shape) == Work(add=12)
    assert graph_work(tf.nn.l2_loss, a.shape) == Work(mul=12, add=5)
    assert graph_work(tf.nn.bias_add, a.shape, b.shape) == Work(add=6)


def test_resize_bilinear_to_twice_the_size():
    x = data(1, 3, 3, 2)
    tally = Tally()
    source = tally.array(x)
    result = np.empty((1, 6, 6, 2), dtype=object)
    for _, i, j, channel in np.ndindex(result.shape):
        (y, fy), (z, fz) = ((int(v), v - int(v)) for v in (i / 2, j / 2))
        tl, tr, bl, br = (source[0, min(y + dy, 2), min(z + dz, 2), channel] for dy in (0, 1) for dz in (0, 1))
        top, bottom = tl + (tr - tl) * fz, bl + (br - bl) * fz
        result[0, i, j, channel] = top + (bottom - top) * fy
    close(result, raw.ResizeBilinear(images=x, size=[6, 6]))
    assert work_of(make("ResizeBilinear", [x.shape, (2,)], [result.shape])) == tally.work()


def test_data_movement_is_listed_and_free():
    def moves(x):
        y = tf.transpose(tf.reshape(tf.pad(x, [[1, 1], [0, 0]]), [2, 2, 3]), [0, 2, 1])
        y = tf.concat([y, tf.reverse(y, [0])], 0)[1:, :, ::-1]
        return tf.gather(tf.stack(tf.unstack(y)), [0, 1]), tf.random.uniform([3]), tf.where(x > 1e9, x, x)

    ops = graph_ops(moves, (2, 3))
    assert len(ops) > 20
    assert sum(map(work_of, ops), ZERO) == Work(cmp=6)


def test_every_op_that_the_profiler_counts_is_known():
    """tf.profiler's registry: the 46 op types that have a "flops" statistic."""
    from tensorflow.python.framework import ops
    from tensorflow.python.profiler.internal import flops_registry  # noqa: F401

    load()
    counted = [name[: -len(",flops")] for name in ops._stats_registry.list() if name.endswith(",flops")]
    assert len(counted) >= 46
    assert [name for name in counted if find(name) is None] == []


@pytest.mark.parametrize("size", [4, 5])
@pytest.mark.parametrize("kernel", [1, 2, 3])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_pools_that_hang_over_the_edge(size, kernel, stride):
    """The windows of "SAME", clipped to the input; an average is that of what its window reads."""
    x = data(2, size, size, 3)
    out = -(-size // stride)
    before = max((out - 1) * stride + kernel - size, 0) // 2
    for kind, expected in (("Max", tf.nn.max_pool2d), ("Avg", tf.nn.avg_pool2d)):
        tally = counting.Tally()
        found = oracle.windows(
            tally.array(x.transpose(0, 3, 1, 2)), (kernel, kernel), (stride, stride), (out, out), (before, before)
        )
        largest = counting.largest if kind == "Max" else lambda window: counting.total(window) / float(len(window))
        result = oracle.gathered(found, largest)
        close(result.transpose(0, 2, 3, 1), expected(x, kernel, stride, "SAME"))
        sides = {"ksize": [1, kernel, kernel, 1], "strides": [1, stride, stride, 1], "padding": "SAME"}
        small = (2, out, out, 3)
        assert work_of(make(f"{kind}Pool", [x.shape], [small], **sides)) == tally.work()
        around = {"padding": "EXPLICIT", "explicit_paddings": [0, 0, before, kernel, before, kernel, 0, 0]}
        assert work_of(make(f"{kind}Pool", [x.shape], [small], **{**sides, **around})) == tally.work()
        onnx = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2}
        name, shapes = f"onnx.{'Average' if kind == 'Avg' else kind}Pool", ([(2, 3, size, size)], [(2, 3, out, out)])
        for auto in ("SAME_UPPER", "SAME_LOWER"):
            assert work_of(make(name, *shapes, auto_pad=auto, **onnx)) == tally.work()


def test_windows_whose_lists_do_not_fit_are_unknown():
    sides = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
    for wrong in ({"strides": [2, 2]}, {"padding": "CIRCULAR"}):
        with pytest.raises(UnknownWork):
            work_of(make("MaxPool", [(1, 4, 4, 2)], [(1, 2, 2, 2)], **{**sides, **wrong}))
