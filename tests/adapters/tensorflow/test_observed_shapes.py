"""Shapes that a graph leaves open are those of one run, also where TensorFlow would merge equal nodes into one of them."""

from __future__ import annotations

import pytest
import tensorflow as tf

from reconcile.adapters.tensorflow.training import trace as training_trace
from tests.adapters.tensorflow.training_steps import model_of, trace_call

ROWS, WIDE, NARROW = 4, 6, 3


def reshaped(x):
    """The same matrix, in a shape that only its values say."""
    wide = tf.cast(tf.reduce_sum(x * 0), tf.int32) + WIDE
    return tf.reshape(x, [-1, wide])


def projected(x):
    """A product per projection, and each reshapes its input: the reshapes compute the same value."""
    return [tf.reshape(x, tf.shape(x)) @ tf.fill((WIDE, NARROW), value) for value in (2.0, 3.0, 4.0)]


def folded(x):
    """A product of x and a constant in a shape that the graph leaves open; TensorFlow folds constants before it runs."""
    return x @ tf.raw_ops.PlaceholderWithDefault(input=tf.ones((WIDE, NARROW)), shape=(None, None))


def products(trace):
    return [(tuple(t.shape for t in op.inputs), op.outputs[0].shape) for op in trace.ops if op.op == "MatMul"]


@pytest.mark.parametrize(
    ("function", "count"), [(lambda x: tf.add_n(projected(reshaped(x))), 3), (folded, 1)], ids=["merged", "folded"]
)
def test_every_product_has_the_shapes_with_which_it_ran(function, count):
    model, trace = trace_call(lambda: function, ROWS, WIDE)
    in_graph = [t.shape for op in model.concrete.graph.get_operations() if op.type == "MatMul" for t in op.inputs]
    assert len([shape for shape in in_graph if not shape.is_fully_defined()]) == count  # one of the two inputs each
    assert (trace.problems, products(trace)) == ((), [(((ROWS, WIDE), (WIDE, NARROW)), (ROWS, NARROW))] * count)


class Attention(tf.keras.layers.Layer):
    """Three projections of one tensor whose shape the graph leaves open; their weights are trained."""

    def build(self, _shape):
        self.weights_of = [self.add_weight(shape=(WIDE, NARROW), name=f"w{i}") for i in range(3)]

    def call(self, x):
        x = reshaped(x)
        return tf.add_n([tf.reshape(x, tf.shape(x)) @ weight for weight in self.weights_of])


def test_the_products_of_a_training_step_too():
    def make():
        start = tf.keras.Input(batch_shape=(ROWS, WIDE))
        return tf.keras.Model(start, Attention()(start))

    trace = training_trace(model_of(make, ROWS, WIDE))
    open_shapes = [op.id for op in trace.ops if op.op == "MatMul" for t in op.inputs if not t.shape or None in t.shape]
    assert (trace.problems, open_shapes) == ((), [])
    assert products(trace).count((((ROWS, WIDE), (WIDE, NARROW)), (ROWS, NARROW))) == 3
