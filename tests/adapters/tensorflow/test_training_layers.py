"""Training steps in TensorFlow by kinds of layers: recurrent, attention, what is computed again."""

from __future__ import annotations

from collections import Counter

import pytest
import tensorflow as tf

from reconcile.adapters.counters.tf_profiler.capture import capture
from reconcile.adapters.tensorflow.training import trace
from reconcile.align.alignment import Alignment
from reconcile.core.causes import Cause
from reconcile.core.conventions import BUILT_IN
from reconcile.core.records import FORWARD, INPUT_GRADIENT, LOSS, OPTIMIZER, RECOMPUTATION, WEIGHT_GRADIENT
from reconcile.engine.ledger import reconcile_ledger
from reconcile.work import Work, work_of
from tests.adapters.by_phase import macs, work
from tests.adapters.tensorflow.training_steps import L, booked, chain, model_of, ran

F, I, W = FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT  # noqa: E741


@pytest.mark.parametrize(("kind", "gates"), [("GRU", 3), pytest.param("LSTM", 4, marks=pytest.mark.slow)])
def test_a_recurrent_layer(kind, gates):
    """A While each way: its gradient runs as often, and what is accumulated in it are gradients of weights."""
    batch, steps, width, hidden = 2, 5, 4, 3
    layer = getattr(L, kind)(hidden, return_sequences=True, name="steps")
    ops = ran(chain((batch, steps, width), L.Dense(width, use_bias=False, name="before"), layer), batch, steps, width)
    inside = steps * batch * gates * hidden * (width + hidden)
    found: Counter[tuple[str, str]] = Counter()
    for (name, phase), amount in macs(ops).items():
        found[name.partition(".")[0], phase] += amount
    before = batch * steps * width * width
    assert found == {
        ("before", F): before, ("before", W): before, ("steps", F): inside, ("steps", I): inside, ("steps", W): inside,
    }  # fmt: skip
    sums = sum(op.calls * work_of(op).add for op in ops if op.phase == W and op.op == "AddN")
    biases = 6 * hidden if kind == "GRU" else 4 * hidden  # reset_after: two biases
    assert sums == steps * (gates * hidden * (width + hidden) + biases)


def test_a_recurrent_layer_on_the_input():
    """No gradient with respect to the input is requested, nor step by step; the gradient of the state is needed."""
    batch, steps, width, hidden = 2, 5, 4, 3
    found = macs(ran(chain((batch, steps, width), L.GRU(hidden, name="steps")), batch, steps, width))
    assert {phase: amount for (_, phase), amount in found.items()} == {
        F: steps * batch * 3 * hidden * (width + hidden),
        I: steps * batch * 3 * hidden * hidden,
        W: steps * batch * 3 * hidden * (width + hidden),
    }


class Holds(tf.keras.layers.Layer):
    """What ``run(layer, x)`` computes with dense layers of these numbers of inputs and outputs."""

    def __init__(self, name, run, **sizes):
        super().__init__(name=name)
        self.run, self.sizes = run, sizes
        for each, (_, wide) in sizes.items():
            setattr(self, each, L.Dense(wide, use_bias=False, name=each))

    def build(self, shape):
        for each, (given, _) in self.sizes.items():
            getattr(self, each).build((*shape[:-1], given))

    def call(self, x):
        return self.run(self, x)


def attend(layer, x):
    """Products of activations: both gradients are with respect to inputs."""
    return tf.matmul(tf.nn.softmax(tf.matmul(layer.q(x), x, transpose_b=True)), x)


def test_attention():
    ops = ran(
        chain((3, 5, 4), L.Dense(4, use_bias=False, name="before"), Holds("attention", attend, q=(4, 4))), 3, 5, 4
    )
    square, line = 3 * 5 * 5 * 4, 3 * 5 * 16
    assert macs(ops) == {
        ("before", F): line, ("before", W): line, ("attention.q", F): line, ("attention.q", I): line,
        ("attention.q", W): line, ("attention", F): 2 * square, ("attention", I): 4 * square,
    }  # fmt: skip
    # x goes three ways: what comes back is added twice where it was made
    assert work(ops)["before", I] == Work(add=2 * 3 * 5 * 4)


def test_the_profiler_takes_the_wrong_side_of_a_transpose():
    """The gradient with respect to the second factor is Q^T (4, 5) by (5, 5): K is 5, and read from Q's 4 columns."""
    run = lambda layer, x: tf.matmul(layer.q(x), tf.transpose(layer.r(x), (0, 2, 1)))  # noqa: E731
    model = model_of(chain((3, 5, 2), Holds("scores", run, q=(2, 4), r=(2, 4))), 3, 5, 2)
    done = reconcile_ledger(capture("tf.profiler@function", model), trace(model), Alignment([]), BUILT_IN["matmul"])
    assert done.residuals == ()
    assert booked(done)["scores", Cause.FORMULA_DIFFERS] == 2 * 3 * (4 * 5) * (5 - 4)


class Masked(tf.keras.layers.Layer):
    """A weight that is computed from a variable alone."""

    def build(self, _shape):
        self.w = self.add_weight(shape=(3, 5), name="w")

    def call(self, x):
        return tf.matmul(x, self.w * tf.ones((3, 5)))


def test_what_only_a_weight_goes_through_is_its_gradient():
    found = work(ran(chain((4, 3), Masked(name="masked"), L.Dense(2, use_bias=False)), 4, 3))
    assert found["masked", W] == Work(mac=4 * 15, accumulators=15, mul=15)
    assert ("masked", I) not in found


def choice(layer, x):
    """A branch by a value, and a loop that runs as often as a value says."""
    x = tf.cond(tf.reduce_sum(x) < 1e9, lambda: layer.a(x), lambda: layer.b(x))
    times = tf.cast(tf.reduce_sum(x) * 0, tf.int32) + 3
    return tf.while_loop(lambda i, _: i < times, lambda i, y: (i + 1, layer.b(y)), (0, x))[1]


def test_checkpointing_shows_its_recomputation():
    run = lambda layer, x: tf.recompute_grad(lambda y: layer.b(tf.nn.relu(layer.a(y))))(x)  # noqa: E731
    saved = Holds("saved", run, a=(4, 6), b=(6, 4))
    ops = ran(chain((5, 4), L.Dense(4, use_bias=False, name="before"), saved), 5, 4)
    found = macs(ops)
    for layer in ("saved.a", "saved.b"):
        assert found[layer, F] == found[layer, I] == found[layer, W] == 5 * 24
    again = {layer: amount for (layer, phase), amount in found.items() if phase == RECOMPUTATION}
    assert again == {"saved.a": 5 * 24}  # what b would give again is not needed
    assert work(ops)["saved", I] == Work(cmp=5 * 6)  # relu's


def test_embedding():
    make = chain((3, 5), L.Embedding(11, 4, name="words"), L.Dense(4, name="line"))
    found = work(ran(make, 3, 5, dtype="int32"))
    assert found["words", OPTIMIZER] == Work(mul=3 * 5 * 4, add=3 * 5 * 4)  # of the rows that were read alone


def test_what_the_loss_does_not_need_ran_all_the_same():
    def make():
        x = start = L.Input(batch_shape=(3, 4))
        return tf.keras.Model(start, [L.Dense(2, use_bias=False, name="line")(x), L.Dot(1, name="alone")([x, x])])

    found = work(ran(make, 3, 4))
    assert found["alone", F].mac == 3 * 4
    assert ("alone", I) not in found
    assert found["(loss)", LOSS] == Work(mul=3 * 6, add=5, div=7)  # of the one output that can be learned


def test_a_model_with_nothing_to_train_has_forward_and_loss():
    found = trace(model_of(chain((2, 2), L.ReLU()), 2, 2))
    assert {op.phase for op in found.ops if op.op != "Identity"} == {F, LOSS}  # tf.function's, of what it returns
    assert [note for note in found.notes if note.startswith("nothing to train")], found.notes
    trained = trace(model_of(chain((2, 2), L.Dense(1)), 2, 2)).notes
    assert [note for note in trained if note.startswith("nothing to train")] == []


def test_a_plain_callable_trains_the_variables_that_it_reads():
    class Product:
        def __init__(self):
            self.a, self.b = tf.Variable(tf.ones((5, 3))), tf.Variable(tf.ones((3, 2)))
            self.fixed = tf.Variable(tf.ones((5, 2)), trainable=False)

        def __call__(self, x):
            return self.a @ self.b + self.fixed * x

    found = work(ran(Product, 5, 2))
    macs = {phase: sum(w.mac for (_, p), w in found.items() if p == phase) for phase in (F, W)}
    assert macs == {F: 5 * 3 * 2, W: 2 * 5 * 3 * 2}  # both factors are weights
    assert sum((w for (_, p), w in found.items() if p == OPTIMIZER), Work()).mul == 5 * 3 + 3 * 2
