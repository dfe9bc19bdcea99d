"""A dilated convolution runs in TensorFlow as a dense one of its phases, padded to one length: what ran is counted and said."""

from __future__ import annotations

import pytest
import tensorflow as tf

from reconcile.work import work_of
from tests.adapters.tensorflow.training_steps import trace_call

IN, OUT, TAPS = 2, 3, 2
layers = tf.keras.layers


def phased(length: int, rate: int, axes: int = 1) -> tuple[int, int]:
    """Outputs per channel that are computed and kept: each phase of the padded input gives its length - TAPS + 1."""
    each = -(-length // rate)
    return (rate * (each - TAPS + 1)) ** axes, (length - rate * (TAPS - 1)) ** axes


@pytest.mark.parametrize(("length", "rate", "axes"), [(7, 2, 1), (8, 2, 1), (11, 3, 1), (10, 3, 2)])
def test_a_dilated_convolution(length, rate, axes):
    kind = {1: layers.Conv1D, 2: layers.Conv2D}[axes]
    _, trace = trace_call(
        lambda: kind(OUT, TAPS, dilation_rate=rate, use_bias=False, name="c"), 1, *(length,) * axes, IN
    )
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


def test_the_convolution_of_tf_nn_drops_nothing_of_its_kernel():
    """``tf.nn.conv1d`` hands its dilation to the kernel: the formula and the work are the same."""
    _, trace = trace_call(
        lambda: lambda x: tf.nn.conv1d(x, tf.ones((TAPS, IN, OUT)), 1, "VALID", dilations=2), 1, 7, IN
    )
    assert sum(work_of(op).mac for op in trace.ops) == 60
    assert trace.notes == ()
