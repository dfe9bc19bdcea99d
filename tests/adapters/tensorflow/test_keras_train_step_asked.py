"""What the own training step of a compiled Keras model is given, when another step is asked for, and what stays unchanged."""

from __future__ import annotations

from collections import Counter

import keras
import numpy as np
import pytest
import tensorflow as tf

from reconcile.adapters.tensorflow.graphs import graph as tf_graph
from reconcile.adapters.tensorflow.graphs.liveness import live_operations
from reconcile.adapters.tensorflow.training import trace
from reconcile.core.records import LOSS
from reconcile.work import Work
from tests.adapters.by_phase import work
from tests.adapters.tensorflow.own_steps import CLASSES, FIRST, ROWS, compiled, net, step_of
from tests.adapters.tensorflow.training_steps import L, Pair, TrainingModel


def test_targets():
    """Given ones are taken as they are; a sparse loss among several gets integers, and only its output."""

    def make():
        x = start = L.Input(batch_shape=(ROWS, FIRST))
        model = keras.Model(start, {"kind": L.Dense(CLASSES, name="kind")(x), "size": L.Dense(1, name="size")(x)})
        sparse = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile("sgd", {"kind": sparse, "size": "mae"})
        return model

    _, found = step_of(make)
    assert "zeros of int64 (3,), float32 (3, 1)" in found.notes[0]
    assert "loss: SparseCategoricalCrossentropy, mae" in found.notes[0]
    means = work(op for op in found.ops if op.layer == "(metrics)")
    assert means == {("(metrics)", LOSS): Work(mul=1, add=2, div=1, cmp=1) * 3}  # of the loss, and of each output's
    pair = Pair(compiled("sgd", "mse"), ROWS, FIRST)
    pair.targets = (np.ones((ROWS, 1)),)  # float64, broadcast by the loss
    model = TrainingModel(pair, None, "sgd")
    assert "targets: float32 (3, 1), as given" in trace(model).notes[0]
    assert sorted(value.shape for value in model.feeds().values()) == [(ROWS, 1), (ROWS, FIRST)]


def test_the_optimizer_option_asks_for_the_standard_step():
    make = compiled(keras.optimizers.SGD(momentum=0.9), "mae")
    _, asked = step_of(make, standard=True)
    _, plain = step_of(net)
    assert work(asked.ops) == work(plain.ops)
    assert [note for note in asked.notes if note not in plain.notes] == [
        "the model is compiled: --optimizer asks for this step in place of its own train_step"
    ]


@pytest.mark.slow
def test_the_step_is_what_it_is_unwatched():
    """Keras' own function of the step has the same ops, and nothing of the model or of Keras stays changed."""
    made = compiled(keras.optimizers.AdamW(), "mse", metrics=["mae"])()
    before = (L.Layer.__call__, tf.GradientTape.gradient, set(vars(made.metrics[0])), set(vars(made.optimizer)))
    _, found = step_of(lambda: made)
    after = (L.Layer.__call__, tf.GradientTape.gradient, set(vars(made.metrics[0])), set(vars(made.optimizer)))
    assert after[:3] == before[:3]
    assert not {"apply", "apply_gradients", "update_step"} & after[3]
    batch = (tf.TensorSpec((ROWS, FIRST)), tf.TensorSpec((ROWS, CLASSES)))
    graph = tf.function(made.train_step, autograph=False).get_concrete_function(batch).graph
    live = live_operations(tf_graph.graph_outputs(graph))
    kinds = Counter(op.type for op in graph.get_operations() if op.name in live)
    assert kinds == Counter(op.op for op in found.ops if not op.within)
