"""Calls and training steps of TensorFlow for the tests: a network's traced, and what was found by layer and phase."""

from __future__ import annotations

from collections import Counter

import tensorflow as tf

from reconcile.adapters.tensorflow.model import TfModel
from reconcile.adapters.tensorflow.trace import trace_function
from reconcile.adapters.tensorflow.training import TrainingModel, trace
from reconcile.model_zoo import pair as pairs

L = tf.keras.layers


class Pair(pairs.Pair):
    """Stands for a pair: what makes the network, the shape and dtype of its input."""

    def __init__(self, make, *shape, dtype="float32"):
        self.build_tf = lambda _params: make()
        self.inputs = lambda _params: [pairs.Input("x", shape, dtype)]


def trace_call(make, *shape):
    """The model of a call, and its trace."""
    model = TfModel(Pair(make, *shape), pairs.Params({}))
    return model, trace_function(model.concrete, model.scopes, model.count_runs, {}, look=model.observed_shapes)


def model_of(make, *shape, optimizer="sgd", standard=False, **options):
    return TrainingModel(Pair(make, *shape, **options), None, optimizer, standard)


def chain(shape, *layers):
    def make():
        x = start = L.Input(batch_shape=shape)
        for layer in layers:
            x = layer(x)
        return tf.keras.Model(start, x)

    return make


def ran(make, *shape, **options):
    found = trace(model_of(make, *shape, **options))
    assert found.problems == ()
    return found.ops


def booked(done):
    """(layer, cause) -> amount."""
    found = Counter()
    for line in done.adjustments:
        found[line.layer, line.cause] += line.amount
    return found
