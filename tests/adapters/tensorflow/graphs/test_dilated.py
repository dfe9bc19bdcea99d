"""A dilated convolution runs in TensorFlow as a dense one of its phases, padded to one length: what ran is counted and said."""

from __future__ import annotations

import pytest

from reconcile.adapters.tensorflow.model import TfModel, quiet
from reconcile.adapters.tensorflow.trace import trace_function
from reconcile.model_zoo import pair as pairs
from reconcile.work import work_of

quiet()

import tensorflow as tf  # noqa: E402

pytestmark = pytest.mark.frameworks

IN, OUT, TAPS = 2, 3, 2
layers = tf.keras.layers


class Pair(pairs.Pair):
    """Stands for a pair of one function that takes a sequence or an image."""

    def __init__(self, make, shape):
        self.shape = shape
        self.build_tf = lambda _params: make()

    def inputs(self, _params):
        return [pairs.Input("x", self.shape)]


def traced(make, shape):
    model = TfModel(Pair(make, shape), pairs.Params({}))
    return trace_function(model.concrete, model.scopes, model.fetch, {}, look=model.observed_shapes)


def phased(length: int, rate: int, axes: int = 1) -> tuple[int, int]:
    """Outputs per channel that are computed and kept: each phase of the padded input gives its length - TAPS + 1."""
    each = -(-length // rate)
    return (rate * (each - TAPS + 1)) ** axes, (length - rate * (TAPS - 1)) ** axes


@pytest.mark.parametrize(("length", "rate"), [(7, 2), (8, 2), (10, 3), (11, 3)])
@pytest.mark.parametrize("axes", [1, 2])
def test_a_dilated_convolution(length, rate, axes):
    kind = {1: layers.Conv1D, 2: layers.Conv2D}[axes]
    trace = traced(lambda: kind(OUT, TAPS, dilation_rate=rate, use_bias=False, name="c"), (1, *(length,) * axes, IN))
    computed, kept = phased(length, rate, axes)
    assert sum(work_of(op).mac * op.calls for op in trace.ops) == computed * OUT * IN * TAPS**axes
    assert [note.partition(": ")[2] for note in trace.notes] == (
        []
        if computed == kept
        else [
            f"{(computed - kept) * OUT} of the {computed * OUT} outputs that they compute are dropped, and their "
            "multiply-adds ran"
        ]
    )


def test_the_numbers_of_a_sequence_of_7():
    """72 ran; 60 is the product of the output's 5 places and the window."""
    assert phased(7, 2) == (6, 5)
    assert [places * OUT * IN * TAPS for places in phased(7, 2)] == [72, 60]


def test_the_convolution_of_tf_nn_drops_nothing_of_its_kernel():
    """``tf.nn.conv1d`` hands its dilation to the kernel: the formula and the work are the same."""
    trace = traced(lambda: lambda x: tf.nn.conv1d(x, tf.ones((TAPS, IN, OUT)), 1, "VALID", dilations=2), (1, 7, IN))
    assert sum(work_of(op).mac for op in trace.ops) == 60
    assert trace.notes == ()
