"""The trace of a training step in TensorFlow: what runs, in which phase and layer, against closed forms."""

from __future__ import annotations

from collections import Counter

import pytest

tf = pytest.importorskip("tensorflow")

from reconcile.adapters import tf_graph  # noqa: E402
from reconcile.adapters.tf_profiler.capture import capture  # noqa: E402
from reconcile.adapters.tf_training import TrainingModel, trace  # noqa: E402
from reconcile.align import Alignment  # noqa: E402
from reconcile.bridging import reconcile_ledger  # noqa: E402
from reconcile.causes import Cause  # noqa: E402
from reconcile.conventions import BUILT_IN  # noqa: E402
from reconcile.model_zoo.pair import Input  # noqa: E402
from reconcile.records import (  # noqa: E402
    FORWARD,
    INPUT_GRADIENT,
    LOSS,
    OPTIMIZER,
    RECOMPUTATION,
    WEIGHT_GRADIENT,
)
from reconcile.work import ZERO, Work, work_of  # noqa: E402
from tests.work.counting import Num, Tally  # noqa: E402

F, I, W = FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT  # noqa: E741
L = tf.keras.layers


class Pair:
    """Stands for a pair: what makes the network, the shape and dtype of its input."""

    def __init__(self, make, *shape, dtype="float32"):
        self.build_tf = lambda _params: make()
        self.inputs = lambda _params: [Input("x", shape, dtype)]


def model_of(make, *shape, optimizer="sgd", **options):
    return TrainingModel(Pair(make, *shape, **options), None, optimizer)


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


def work(ops):
    """(layer, phase) -> work."""
    found: dict[tuple[str, str], Work] = {}
    for op in ops:
        found[op.layer, op.phase] = found.get((op.layer, op.phase), ZERO) + work_of(op) * op.calls
    return found


def macs(ops):
    return {key: known.mac for key, known in work(ops).items() if known.mac}


def booked(done):
    """(layer, cause) -> amount."""
    found = Counter()
    for line in done.adjustments:
        found[line.layer, line.cause] += line.amount
    return found


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
        ("first", I): first,  # nobody asks for it: Keras runs groups in a function, whose gradient has both
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


def test_batch_norm(step):
    """Keras composes it of elementary ops, statistics and their gradients included; C channels, N elements."""
    n, c = 2 * 25 * 8, 8
    found = work(step[1].ops)
    moments = Work(add=(n - c) + n + (n - c), mul=n, div=2 * c)  # mean, squared difference, variance
    moving = Work(mul=2, add=1) * (2 * c)
    scale = Work(add=2 * c, special=c, mul=2 * c)
    assert found["norm", F] == moments + moving + scale + Work(mul=n, add=n)
    shift = Work(add=n - c)  # of the last addition
    into = Work(mul=2 * n, add=n - c)  # x * scale: to x, and to the scale
    small = Work(add=c, mul=2 * c) + Work(add=c) + Work(mul=c) + Work(mul=4 * c)  # -mean * scale; gamma; 1 / root
    spread = Work(div=2 * n, mul=2 * n, add=n)  # both means handed back; 2 (x - mean)
    # what reaches x by the product, by the mean and by the variance is added where x was made
    assert found["norm", I] == shift + into + small + spread
    assert found["norm", W] == Work(mul=c)  # gamma's, of what reaches the scale
    assert found["first", I].add == 2 * n


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
    live = tf_graph.live_operations(tf_graph.graph_outputs(graph))
    kinds = Counter(op.type for op in graph.get_operations() if op.name in live)
    assert kinds == Counter(op.op for op in step[1].ops if not op.within)


@pytest.mark.parametrize("convention", ["matmul", "all", "textbook"])
@pytest.mark.parametrize("counter", ["tf.profiler@function", "tf.profiler@runmeta"])
def test_the_profiler_is_explained(step, counter, convention):
    model, found = step
    ledger = capture(counter, model)
    done = reconcile_ledger(ledger, found, Alignment([]), BUILT_IN[convention])
    total = sum(BUILT_IN[convention].flops(work_of(op)) * op.calls for op in found.ops)
    assert done.residuals == ()
    assert ledger.total + sum(line.amount for line in done.adjustments) == total
    if convention == "matmul":
        lines = booked(done)
        first, depth = 2 * 2 * 25 * 8 * (9 * 2), 2 * 2 * 36 * 6 * 9
        assert lines["first", Cause.BODY_NOT_ENTERED] == 3 * first
        assert lines["depth", Cause.OP_NOT_COUNTED] == 2 * depth
        # image / stride^2 in place of the convolution's output: 5 x 5 / 4 for 3 x 3
        counted = int(2 * (2 * 5 * 5 * 8) * (3 * 3 * 8 * 6) / (8 * 2 * 2))
        assert lines["same", Cause.FORMULA_DIFFERS] == 2 * (2 * 2 * 9 * 6 * (9 * 8) - counted)
        # the transposed convolution's image is its output, exactly twice as long: no error
        assert ("up", Cause.FORMULA_DIFFERS) not in lines


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_optimizer(optimizer):
    """SGD p -= lr * g; Adam by loops that compute what Keras' Adam computes."""
    each, once = Work(mul=1, add=1), ZERO
    if optimizer == "adam":
        tally, outside = Tally(), Tally()
        step, rate = Num(1.0, outside), Num(1e-3, outside)
        first = Num(0.9, outside).special(lambda a: a**step.value)
        second = Num(0.999, outside).special(lambda a: a**step.value)
        alpha = rate * (1.0 - second).special(lambda a: a**0.5) / (1.0 - first)
        once = outside.work()
        g, p = Num(0.3, tally), Num(0.5, tally)
        m, v = Num(0.0, tally), Num(0.0, tally)
        m = m + (g - m) * 0.1
        v = v + (g * g - v) * 0.001
        p = p - m * alpha.value / (v.special(lambda a: a**0.5) + 1e-7)
        each = tally.work()
        weight = tf.Variable([0.5])
        tf.keras.optimizers.Adam().apply_gradients([(tf.constant([0.3]), weight)])
        assert p.value == pytest.approx(float(weight[0]), rel=1e-6)
    found = work(ran(chain((2, 3), L.Dense(5, name="line")), 2, 3, optimizer=optimizer))
    assert found["line", OPTIMIZER] == each * 20 + once * 2
    assert {phase for _, phase in found} == {F, LOSS, W, OPTIMIZER}


@pytest.mark.parametrize(("kind", "gates"), [("GRU", 3), ("LSTM", 4)])
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
        ("before", F): before,
        ("before", W): before,
        ("steps", F): inside,
        ("steps", I): inside,
        ("steps", W): inside,
    }
    sums = sum(op.calls * work_of(op).add for op in ops if op.phase == W and op.op == "AddN")
    biases = 6 * hidden if kind == "GRU" else 4 * hidden  # reset_after: two biases
    assert sums == steps * (gates * hidden * (width + hidden) + biases)


def test_a_recurrent_layer_on_the_input():
    """Nobody asks for the gradient with respect to the input, step by step neither; that of the state is needed."""
    batch, steps, width, hidden = 2, 5, 4, 3
    found = macs(ran(chain((batch, steps, width), L.GRU(hidden, name="steps")), batch, steps, width))
    assert {phase: amount for (_, phase), amount in found.items()} == {
        F: steps * batch * 3 * hidden * (width + hidden),
        I: steps * batch * 3 * hidden * hidden,
        W: steps * batch * 3 * hidden * (width + hidden),
    }


class Attention(tf.keras.layers.Layer):
    """Products of activations: both gradients are with respect to inputs."""

    def __init__(self, einsum):
        super().__init__(name="attention")
        self.q = L.Dense(4, use_bias=False, name="q")
        self.einsum = einsum

    def build(self, shape):
        self.q.build(shape)

    def call(self, x):
        q = self.q(x)
        if self.einsum:
            return tf.einsum("bij,bjd->bid", tf.nn.softmax(tf.einsum("bid,bjd->bij", q, x)), x)
        return tf.matmul(tf.nn.softmax(tf.matmul(q, x, transpose_b=True)), x)


@pytest.mark.parametrize("einsum", [False, True])
def test_attention(einsum):
    ops = ran(chain((3, 5, 4), L.Dense(4, use_bias=False, name="before"), Attention(einsum)), 3, 5, 4)
    square, line = 3 * 5 * 5 * 4, 3 * 5 * 16
    assert macs(ops) == {
        ("before", F): line,
        ("before", W): line,
        ("attention.q", F): line,
        ("attention.q", I): line,
        ("attention.q", W): line,
        ("attention", F): 2 * square,
        ("attention", I): 4 * square,
    }
    # x goes three ways: what comes back is added twice where it was made
    assert work(ops)["before", I] == Work(add=2 * 3 * 5 * 4)


class Scores(tf.keras.layers.Layer):
    """Q (5, 4) by R^T (4, 5)."""

    def __init__(self):
        super().__init__(name="scores")
        self.q, self.r = L.Dense(4, use_bias=False, name="q"), L.Dense(4, use_bias=False, name="r")

    def build(self, shape):
        self.q.build(shape)
        self.r.build(shape)

    def call(self, x):
        return tf.matmul(self.q(x), tf.transpose(self.r(x), (0, 2, 1)))


def test_the_profiler_takes_the_wrong_side_of_a_transposed_product():
    """The gradient with respect to the second factor is Q^T (4, 5) by (5, 5): K is 5, and read from Q's 4 columns."""
    model = model_of(chain((3, 5, 2), Scores()), 3, 5, 2)
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


def test_frozen_layers_have_no_gradients():
    layers = [L.Dense(n, use_bias=False, name=f"d{n}", trainable=n == 2) for n in (4, 5, 2)]
    assert macs(ran(chain((7, 3), *layers), 7, 3)) == {("d4", F): 84, ("d5", F): 140, ("d2", F): 70, ("d2", W): 70}


class Saved(tf.keras.layers.Layer):
    def __init__(self):
        super().__init__(name="saved")
        self.a, self.b = L.Dense(6, use_bias=False, name="a"), L.Dense(4, use_bias=False, name="b")

    def build(self, shape):
        self.a.build(shape)
        self.b.build((*shape[:-1], 6))

    def call(self, x):
        return tf.recompute_grad(lambda y: self.b(tf.nn.relu(self.a(y))))(x)


def test_checkpointing_shows_its_recomputation():
    ops = ran(chain((5, 4), L.Dense(4, use_bias=False, name="before"), Saved()), 5, 4)
    found = macs(ops)
    for layer in ("saved.a", "saved.b"):
        assert found[layer, F] == found[layer, I] == found[layer, W] == 5 * 24
    again = {layer: amount for (layer, phase), amount in found.items() if phase == RECOMPUTATION}
    assert again == {"saved.a": 5 * 24}  # what b would give again nobody needs
    assert work(ops)["saved", I] == Work(cmp=5 * 6)  # relu's


class Choice(tf.keras.layers.Layer):
    """A branch by a value, and a loop that runs as often as a value says."""

    def __init__(self):
        super().__init__(name="choice")
        self.a, self.b = L.Dense(4, use_bias=False, name="a"), L.Dense(4, use_bias=False, name="b")

    def build(self, shape):
        self.a.build(shape)
        self.b.build(shape)

    def call(self, x):
        x = tf.cond(tf.reduce_sum(x) < 1e9, lambda: self.a(x), lambda: self.b(x))
        times = tf.cast(tf.reduce_sum(x) * 0, tf.int32) + 3
        return tf.while_loop(lambda i, _: i < times, lambda i, y: (i + 1, self.b(y)), (0, x))[1]


def test_branches_and_loops_by_values():
    found = macs(ran(chain((5, 4), L.Dense(4, use_bias=False, name="before"), Choice()), 5, 4))
    once = 5 * 16
    assert found == {
        ("before", F): once,
        ("before", W): once,
        **{("choice.a", phase): once for phase in (F, I, W)},
        **{("choice.b", phase): 3 * once for phase in (F, I, W)},
    }


def test_embedding():
    make = chain((3, 5), L.Embedding(11, 4, name="words"), L.Dense(4, name="line"))
    found = work(ran(make, 3, 5, dtype="int32"))
    assert found["words", OPTIMIZER] == Work(mul=3 * 5 * 4, add=3 * 5 * 4)  # of the rows that were read alone


def test_what_the_loss_does_not_need_of_the_call_ran_all_the_same():
    def make():
        x = start = L.Input(batch_shape=(3, 4))
        return tf.keras.Model(start, [L.Dense(2, use_bias=False, name="line")(x), L.Dot(1, name="alone")([x, x])])

    found = work(ran(make, 3, 4))
    assert found["alone", F].mac == 3 * 4
    assert ("alone", I) not in found
    assert found["(loss)", LOSS] == Work(mul=3 * 6, add=5, div=7)  # of the one output that can be learned


def test_a_model_with_nothing_to_train_has_a_forward_pass_and_a_loss():
    found = trace(model_of(chain((2, 2), L.ReLU()), 2, 2))
    assert {op.phase for op in found.ops if op.op != "Identity"} == {F, LOSS}  # tf.function's, of what it returns
    assert any(note.startswith("nothing to train") for note in found.notes)
    assert not any(
        note.startswith("nothing to train") for note in trace(model_of(chain((2, 2), L.Dense(1)), 2, 2)).notes
    )


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
