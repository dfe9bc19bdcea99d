"""Compiled Keras models for the tests, and their own training steps traced and counted."""

from __future__ import annotations

import keras

from reconcile.adapters.counters.tf_profiler.capture import capture
from reconcile.adapters.tensorflow.training import trace
from reconcile.align.alignment import Alignment
from reconcile.core.conventions import BUILT_IN
from reconcile.core.records import FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT
from reconcile.engine.ledger import reconcile_ledger
from reconcile.work import known_part
from tests.adapters.tensorflow.training_steps import L, model_of

F, I, W = FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT  # noqa: E741
ROWS, FIRST, WIDE, CLASSES = 3, 4, 5, 2
PRODUCTS = {
    **{("a", phase): ROWS * FIRST * WIDE for phase in (F, W)},
    **{("b", phase): ROWS * WIDE * CLASSES for phase in (F, I, W)},
}
WEIGHTS = {"a": FIRST * WIDE + WIDE, "b": WIDE * CLASSES + CLASSES}


def net(kind=keras.Model, end=None, **options):
    x = start = L.Input(batch_shape=(ROWS, FIRST))
    x = L.Dense(WIDE, name="a", **options)(x)
    return kind(start, L.Dense(CLASSES, name="b", activation=end)(x))


def compiled(*settings, kind=keras.Model, end=None, regular=None, **named):
    def make():
        model = net(kind, end, **({"kernel_regularizer": regular} if regular else {}))
        model.compile(*settings, **named)
        return model

    return make


def step_of(make, *shape, **options):
    model = model_of(make, *(shape or (ROWS, FIRST)), **options)
    return model, trace(model)


def unexplained(model, found, *conventions):
    """Counters of a step whose statement does not arrive at the work that ran under these conventions, with what is left."""
    left = {}
    for counter in ("tf.profiler@function", "tf.profiler@runmeta"):
        ledger = capture(counter, model)
        for name in conventions or ("matmul",):
            done = reconcile_ledger(ledger, found, Alignment([]), BUILT_IN[name])
            total = sum(BUILT_IN[name].flops(known_part(op).work) * op.calls for op in found.ops)
            rest = ledger.total + sum(line.amount for line in done.adjustments) - total
            if done.residuals or rest:
                left[counter, name] = (done.residuals, rest)
    return left
