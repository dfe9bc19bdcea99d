"""A frozen graph is run without its weights where they decide nothing, and with them where they do."""

from __future__ import annotations

import contextlib
import gc
from collections import Counter

import pytest
import tensorflow as tf

from reconcile.adapters.tensorflow.graphs.shapes import _drop_colocation
from reconcile.adapters.tensorflow.model import TfModel
from reconcile.core.framework import pause_garbage_collection
from tests.adapters.tensorflow.training_steps import Pair

WIDE = 80  # squared, more elements than a constant keeps


class Product:
    """A product with a wide weight."""

    def __init__(self):
        self.weight = tf.Variable(tf.ones((WIDE, WIDE)))

    def __call__(self, x):
        return x @ self.weight


class Choice(Product):
    """A product, but only if its weight is positive."""

    def __call__(self, x):
        return tf.cond(tf.reduce_sum(self.weight) > 0, lambda: x @ self.weight, lambda: x)


def runs(model, **how):
    stats = model.traced_run(**how)[2].step_stats
    return Counter(node.node_name for device in stats.dev_stats for node in device.node_stats)


def products(counts):
    return sum(times for name, times in counts.items() if name.lower().endswith("matmul"))


def test_where_weights_decide_nothing_the_run_needs_none():
    model = TfModel(Pair(Product, 1, WIDE), None)
    assert (len(model.frozen.weights), model.frozen.weights_may_steer_control_flow) == (1, False)
    assert runs(model) == runs(model, weights=True)
    assert model.traced_run()[0].as_graph_def().ByteSize() < WIDE * WIDE


def test_where_weights_decide_it_is_run_with_them():
    model = TfModel(Pair(Choice, 1, WIDE), None)
    assert (len(model.frozen.weights), model.frozen.weights_may_steer_control_flow) == (1, True)
    assert products(runs(model)) == 1


@pytest.mark.parametrize("collecting", [True, False])
def test_garbage_is_looked_for_again_afterwards(collecting: bool) -> None:
    before = gc.isenabled()
    (gc.enable if collecting else gc.disable)()
    try:
        with contextlib.suppress(KeyError), pause_garbage_collection():
            assert not gc.isenabled()
            raise KeyError
        assert gc.isenabled() == collecting
    finally:
        (gc.enable if before else gc.disable)()


def test_a_node_beside_one_that_is_not_there_stands_alone() -> None:
    """As Keras 2.15 exports an Embedding."""
    definition = tf.compat.v1.GraphDef()
    for name, beside in (("a", ""), ("b", "loc:@a"), ("c", "loc:@a/115")):
        node = definition.node.add(name=name, op="NoOp")
        if beside:
            node.attr["_class"].list.s.append(beside.encode())
    with pytest.raises(ValueError, match="expects to be colocated with unknown node"), tf.Graph().as_default():
        tf.import_graph_def(definition, name="")
    _drop_colocation(definition)
    assert {node.name: list(node.attr["_class"].list.s) for node in definition.node if "_class" in node.attr} == {
        "b": [b"loc:@a"]
    }
    with tf.Graph().as_default():
        tf.import_graph_def(definition, name="")
