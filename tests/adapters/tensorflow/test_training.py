"""The trace of a training step in TensorFlow: what runs, in which phase and layer, against closed forms."""

from __future__ import annotations

from collections import Counter

import pytest
import tensorflow as tf

from reconcile.adapters.counters.tf_profiler.capture import capture
from reconcile.adapters.tensorflow.graphs import graph as tf_graph
from reconcile.adapters.tensorflow.graphs.liveness import live_operations
from reconcile.adapters.tensorflow.training import trace
from reconcile.align.alignment import Alignment
from reconcile.core.causes import Cause
from reconcile.core.conventions import BUILT_IN
from reconcile.core.records import FORWARD, INPUT_GRADIENT, LOSS, OPTIMIZER, WEIGHT_GRADIENT
from reconcile.engine.ledger import reconcile_ledger
from reconcile.work import Work, work_of
from tests.adapters.by_phase import macs, work
from tests.adapters.tensorflow.training_steps import L, booked, chain, model_of, ran
from tests.zoo.choice import REPORTED

F, I, W = FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT  # noqa: E741


SHAPE = (2, 11, 11, 4)  # first: 5 x 5, same: 3 x 3, up: 6 x 6, depth: 6 x 6, pools: 3 x 3, 2 x 2


def net():
    """One of each: grouped, strided, padded, transposed and depthwise convolutions, pools, norms, a residual, a shared layer."""
    x = start = L.Input(batch_shape=SHAPE)
    x = L.Conv2D(8, 3, strides=2, groups=2, name="first")(x)
    x = L.BatchNormalization(name="norm")(x)
    x = L.ReLU(name="relu")(x)
    x = L.Conv2D(6, 3, strides=2, padding="same", name="same")(x)
    x = L.Conv2DTranspose(6, 2, strides=2, name="up")(x)
    y = L.DepthwiseConv2D(3, padding="same", name="depth")(x)
    x = L.Add(name="sum")([x, y])
    x = L.MaxPooling2D(2, name="largest")(x)
    x = L.AveragePooling2D(2, strides=1, name="average")(x)
    twice = L.Dense(6, name="twice")
    return tf.keras.Model(start, twice(twice(x)))


@pytest.fixture(scope="module")
def step():
    model = model_of(net, *SHAPE)
    return model, trace(model)


def test_products_of_a_network(step):
    first, same, up, depth = 2 * 25 * 8 * (9 * 2), 2 * 9 * 6 * (9 * 8), 2 * 9 * 6 * (4 * 6), 2 * 36 * 6 * 9
    dense = 2 * (2 * 4) * 6 * 6
    each = {"same": same, "up": up, "depth": depth, "twice": dense}
    assert macs(step[1].ops) == {
        **{(layer, phase): amount for layer, amount in each.items() for phase in (F, I, W)},
        ("first", F): first,
        ("first", W): first,
        ("first", I): first,  # not requested: Keras runs groups in a function, whose gradient has both
    }


def test_sums_of_gradients(step):
    found = work(step[1].ops)
    rows, x = 8, 2 * 25 * 8
    # bias gradients: a sum per use; the two uses' weight and bias gradients are added where they are needed
    assert found["twice", W].add == 2 * (rows * 6 - 6) + 36 + 6
    assert found["twice", I] == Work(mac=2 * rows * 36, accumulators=2 * rows * 6)
    assert found["relu", I] == Work(cmp=x)
    assert found["up", I].add == 2 * 36 * 6  # both paths of the residual arrive at what made it
    assert ("sum", I) not in found
    assert found["largest", I] == Work(cmp=2 * 9 * 6 * 3, add=2 * 9 * 6)
    assert found["average", I] == Work(div=2 * 4 * 6, add=2 * 4 * 6 * 4)
    assert found["(loss)", LOSS] == Work(mul=rows * 6 * 3, add=rows * 6 - 1, div=rows * 6 + 1)


@pytest.mark.skipif(not REPORTED, reason="composed of other ops in other releases of Keras")
def test_the_step_is_what_it_is_unwatched(step):
    """The same step, built with nothing watching: the same ops."""
    model = net()
    optimizer = tf.keras.optimizers.SGD()
    optimizer.build(model.trainable_variables)

    @tf.function(autograph=False)
    def plain(x):
        with tf.GradientTape() as tape:
            out = model(x, training=True)
            loss = tf.reduce_mean(tf.square(out))
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables, strict=True))
        return loss, out

    graph = plain.get_concrete_function(tf.TensorSpec(SHAPE)).graph
    live = live_operations(tf_graph.graph_outputs(graph))
    kinds = Counter(op.type for op in graph.get_operations() if op.name in live)
    assert kinds == Counter(op.op for op in step[1].ops if not op.within)


@pytest.mark.parametrize("counter", ["tf.profiler@function", "tf.profiler@runmeta"])
def test_the_profiler_is_explained(step, counter):
    model, found = step
    ledger = capture(counter, model)
    for convention in ("all", "textbook", "matmul"):
        done = reconcile_ledger(ledger, found, Alignment([]), BUILT_IN[convention])
        total = sum(BUILT_IN[convention].flops(work_of(op)) * op.calls for op in found.ops)
        assert done.residuals == ()
        assert ledger.total + sum(line.amount for line in done.adjustments) == total
    lines = booked(done)
    first, depth = 2 * 2 * 25 * 8 * (9 * 2), 2 * 2 * 36 * 6 * 9
    assert lines["first", Cause.BODY_NOT_ENTERED] == 3 * first
    assert lines["depth", Cause.OP_NOT_COUNTED] == 2 * depth
    # image / stride^2 in place of the convolution's output: 5 x 5 / 4 for 3 x 3
    counted = int(2 * (2 * 5 * 5 * 8) * (3 * 3 * 8 * 6) / (8 * 2 * 2))
    assert lines["same", Cause.FORMULA_DIFFERS] == 2 * (2 * 2 * 9 * 6 * (9 * 8) - counted)
    # the transposed convolution's image is its output, exactly twice as long: no error
    assert ("up", Cause.FORMULA_DIFFERS) not in lines


def test_optimizer():
    """SGD: p -= lr * g, of 20 weights."""
    found = work(ran(chain((2, 3), L.Dense(5, name="line")), 2, 3))
    assert found["line", OPTIMIZER] == Work(mul=20, add=20)
    assert {phase for _, phase in found} == {F, LOSS, W, OPTIMIZER}
