"""A compiled Keras model runs its own training step: what runs, in which phase and layer, against closed forms."""

from __future__ import annotations

import keras
import pytest
import tensorflow as tf

from reconcile.core.records import LOSS, LOSS_LAYER, OPTIMIZER
from reconcile.work import Work
from tests.adapters.by_phase import macs, work
from tests.adapters.tensorflow.own_steps import (
    CLASSES,
    FIRST,
    PRODUCTS,
    ROWS,
    WEIGHTS,
    F,
    I,
    W,
    compiled,
    step_of,
    unexplained,
)
from tests.adapters.tensorflow.training_steps import L


@pytest.mark.slow
def test_softmax_cross_entropy_with_adamw():
    """AdamW: m += (g - m) a; v += (g g - v) b; p -= m alpha / (root v + eps), and before it p -= p decay rate."""
    optimizer = keras.optimizers.AdamW(weight_decay=0.01)
    make = compiled(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"], end="softmax")
    model, found = step_of(make)
    (softmax,) = [op for op in found.ops if op.op == "SparseSoftmaxCrossEntropyWithLogits"]  # its work has no formula
    ops = [op for op in found.ops if op is not softmax]
    done = work(ops)
    assert (softmax.layer, softmax.phase) == (LOSS_LAYER, LOSS)
    assert macs(ops) == PRODUCTS
    moving, decay = Work(add=6, mul=4, div=1, special=1), Work(add=1, mul=2)
    alpha = Work(special=3, add=2, mul=1, div=1)  # rate root(1 - b^t) / (1 - a^t), for each variable
    # Keras decays every weight before it updates any: those ops are in no variable's own update
    assert done["", OPTIMIZER] == decay * sum(WEIGHTS.values())
    assert {layer: done[layer, OPTIMIZER] for layer in WEIGHTS} == {
        layer: moving * count + alpha * 2 for layer, count in WEIGHTS.items()
    }
    assert unexplained(model, found) == {}
    assert "optimizer: keras.optimizers.AdamW(weight_decay=0.01)" in found.notes[0]
    assert "targets: zeros of int64 (3,)" in found.notes[0]
    assert ("(metrics)", LOSS) in done


def test_squared_error_with_momentum():
    model, found = step_of(compiled(keras.optimizers.SGD(0.1, momentum=0.9), "mse"))
    done, elements = work(found.ops), ROWS * CLASSES
    assert found.problems == ()
    assert macs(found.ops) == PRODUCTS
    # m = 0.9 * m - lr * g; p = p + m
    assert {layer: done[layer, OPTIMIZER] for layer in WEIGHTS} == {
        layer: Work(mul=2, add=2) * count for layer, count in WEIGHTS.items()
    }
    # (y - p)^2, the mean of each row, that of the rows; handed back: / rows, / classes, 2 (y - p) g and its sign
    value = Work(add=elements + ROWS * (CLASSES - 1) + ROWS - 1, mul=elements, div=ROWS + 1, cmp=1)
    assert done[LOSS_LAYER, LOSS] == value + Work(div=1 + elements, cmp=1, mul=2 * elements, add=elements)
    assert done["(metrics)", LOSS] == Work(mul=1, add=2, div=1, cmp=1)  # the mean of the loss over the batches so far
    assert unexplained(model, found, "matmul", "all", "textbook") == {}
    assert "keras.optimizers.SGD(learning_rate=0.1, momentum=0.9)" in found.notes[0]
    assert "targets: zeros of float32 (3, 2)" in found.notes[0]


class Twice(keras.Model):
    """Two calls of the model, their distance in the loss, and gradients that are clipped."""

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            first, second = self(x, training=True), self(x * 0.5, training=True)
            loss = tf.reduce_mean(tf.square(first - second)) + self.compute_loss(y=y, y_pred=first)
        gradients, _ = tf.clip_by_global_norm(tape.gradient(loss, self.trainable_variables), 1.0)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": loss}


def test_an_overridden_step_calls_its_model_twice():
    model, found = step_of(compiled("sgd", "mse", kind=Twice))
    done, weights = work(found.ops), sum(WEIGHTS.values())
    assert macs(found.ops) == {place: 2 * amount for place, amount in PRODUCTS.items()}
    assert done["", OPTIMIZER].mul >= weights  # every gradient is scaled
    assert {layer: done[layer, OPTIMIZER] for layer in WEIGHTS} == {
        layer: Work(mul=1, add=1) * count for layer, count in WEIGHTS.items()
    }
    assert "its own train_step, which Twice overrides," in found.notes[0]
    assert unexplained(model, found) == {}


class Dreams(keras.Model):
    """A step on what it draws itself: those numbers are inputs as well."""

    def train_step(self, x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self(tf.random.normal((ROWS, FIRST)), training=True)))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": loss}


@pytest.mark.slow
def test_a_step_on_numbers_that_it_draws():
    _, found = step_of(compiled("sgd", kind=Dreams))
    assert macs(found.ops) == PRODUCTS


class Critic(keras.Model):
    """A penalty on the gradient by the input: a gradient of a gradient. Its batch is x alone."""

    def __init__(self):
        super().__init__()
        self.score = L.Dense(1, use_bias=False, name="score")
        self.score.build((ROWS, FIRST))

    def call(self, x):
        return self.score(x)

    def compile(self, optimizer):
        super().compile()
        self.mine = optimizer

    def train_step(self, x):
        with tf.GradientTape() as tape:
            with tf.GradientTape() as inner:
                inner.watch(x)
                score = self.score(x)
            slope = inner.gradient(score, x)
            loss = tf.reduce_mean(score) + tf.reduce_mean(tf.square(slope))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.mine.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": loss}


class Pretrained(Critic):
    """A step that applies no optimizer."""

    def train_step(self, x):
        return {"loss": tf.reduce_mean(self.score(x))}


def step_with_sgd(kind):
    model = kind()
    model.compile(keras.optimizers.SGD())
    return step_of(lambda: model)


def test_an_optimizer_that_no_step_applies_is_not_named():
    assert "; optimizer: none that Keras made; " in step_with_sgd(Pretrained)[1].notes[0]


def test_a_gradient_of_a_gradient():
    model, found = step_with_sgd(Critic)
    each = ROWS * FIRST  # the slope is ones times the weights: its own gradient has one product more
    assert macs(found.ops) == {("score", F): each, ("score", I): each, ("score", W): 2 * each}
    assert work(found.ops)["score", OPTIMIZER] == Work(mul=1, add=1) * FIRST
    assert "loss: its own, none is compiled" in found.notes[0]
    # compile() without an optimizer makes an RMSprop, as in Keras' own WGAN-GP, and this step does not apply it
    assert "; optimizer: keras.optimizers.SGD; " in found.notes[0]
    assert found.notes[0].endswith("targets: none")
    assert unexplained(model, found, "all") == {}


@pytest.mark.slow
def test_regularizers_and_added_losses_are_loss():
    class Added(L.Layer):
        def call(self, x):
            self.add_loss(keras.ops.sum(x * x))
            return x

    def make(regular, added):
        def made():
            x = start = L.Input(batch_shape=(ROWS, FIRST))
            x = L.Dense(CLASSES, name="a", kernel_regularizer=regular)(x)
            model = keras.Model(start, Added(name="added")(x) if added else x)
            model.compile("sgd", "mse")
            return model

        return step_of(made)

    plain = work(make(None, False)[1].ops)
    _, found = make(keras.regularizers.L2(0.1), False)
    done, n = work(found.ops), FIRST * CLASSES
    # 0.1 * sum(w^2), added to the loss; its gradient 2 w * 0.1 g, and Keras sums a list of losses
    more = done[LOSS_LAYER, LOSS] - plain[LOSS_LAYER, LOSS]
    assert more == Work(mul=n + 1 + 1 + 2 * n, add=n - 1 + 1)
    assert done["a", W] == plain["a", W] + Work(add=n)  # the two gradients of the kernel
    model, found = make(None, True)
    elements = ROWS * CLASSES
    assert work(found.ops)["added", F] == Work(mul=elements, add=elements - 1)
    assert unexplained(model, found, "all") == {}
