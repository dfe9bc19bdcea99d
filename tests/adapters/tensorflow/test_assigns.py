"""Models that write variables in their call: what runs is traced, whatever decides it, and one run changes no variable."""

from __future__ import annotations

import re

import pytest
import tensorflow as tf

from reconcile.adapters.counters.tf_profiler.capture import capture
from reconcile.adapters.shared.refusal import BeyondCounter
from reconcile.adapters.tensorflow.model import TfModel
from reconcile.adapters.tensorflow.training import trace as training_trace
from reconcile.core.records import FORWARD, UNENTERED, WEIGHT_GRADIENT
from reconcile.model_zoo import pair as pairs
from reconcile.work import work_of
from tests.adapters.tensorflow.training_steps import Pair, model_of, trace_call

ROWS, IN, OUT = 2, 4, 5
ONE = ROWS * IN * OUT


class Model:
    """Counts its calls in a variable and multiplies."""

    def __init__(self):
        self.calls, self.weight = tf.Variable(1.0), tf.Variable(tf.ones((IN, OUT)))

    def __call__(self, x):
        self.calls.assign_add(1.0)
        return self.product(x)

    def product(self, x):
        return x @ self.weight


class Chooses(Model):
    """One product on the first call, when the variable that it has just written is 2, then two."""

    def product(self, x):
        once = x @ self.weight
        return tf.cond(self.calls < 3, lambda: once, lambda: once + x @ self.weight)


class Counts(Model):
    """As many products as the variable says, less one."""

    def product(self, x):
        def turn(i, total):
            return i + 1, total + x @ self.weight

        turns = tf.cast(self.calls, tf.int32)
        return tf.while_loop(lambda i, _: i < turns, turn, [tf.constant(0), tf.zeros((ROWS, OUT))])[1]


class Scales(Model):
    """Writes the weight itself."""

    def product(self, x):
        self.weight.assign(self.weight * 2.0)
        return x @ self.weight


class Nests(Chooses):
    """The choice inside a function of its own, as a decorated method is."""

    def __call__(self, x):
        return tf.function(super().__call__)(x)


CASES = [(Model, 1), (Chooses, 1), (Counts, 2), (Scales, 1), (Nests, 1)]


@pytest.mark.parametrize(("kind", "products"), CASES)
def test_what_ran(kind, products):
    own = kind()
    _, trace = trace_call(lambda: own, ROWS, IN)
    ran = [op for op in trace.ops if op.op == "MatMul"]
    assert trace.problems == ()
    assert sum(op.calls for op in ran) * ONE == products * ONE
    assert own.calls.numpy() == 1.0


@pytest.mark.parametrize(("kind", "products"), CASES)
def test_the_counters(kind, products):
    """TensorFlow cannot freeze it, and says so of whatever takes the variable; a traced run needs no frozen graph."""
    own = kind()
    model = TfModel(Pair(lambda: own, ROWS, IN), pairs.Params({}))
    with pytest.raises(BeyondCounter, match=r"cannot freeze this model: \S*Assign(Add)?VariableOp takes a variable"):
        capture("tf.profiler@frozen", model)
    ledger = capture("tf.profiler@runmeta", model)
    counted = [entry for entry in ledger.entries if entry.op == "MatMul"]
    static = 2 if isinstance(own, Chooses) else products  # a node that did not run keeps its static count
    assert sum(entry.value for entry in counted) == 2 * static * ONE
    assert ledger.notes == ("the graph is not frozen, as it writes variables",)
    assert own.calls.numpy() == 1.0


@pytest.mark.parametrize(
    ("writes", "words"), [(True, "which is not a variable"), (False, "does not run on its own (You must feed a value")]
)
def test_a_run_that_cannot_be_is_no_trace_without_a_reason(writes, words):
    """A table is no variable: what it decides is named, and the rest of the trace stays."""
    keys = tf.lookup.KeyValueTensorInitializer(tf.constant([1, 2], tf.int64), tf.constant([3, 4], tf.int64))
    table, own = tf.lookup.StaticHashTable(keys, 0), Model()
    called = own if writes else own.product

    def looks_up(x):
        found = table.lookup(tf.cast(tf.reduce_sum(x), tf.int64))
        return called(x) + tf.cond(found < 3, lambda: own.product(x), lambda: x @ tf.ones((IN, OUT)) + own.product(x))

    model, trace = trace_call(lambda: looks_up, ROWS, IN)
    assert [op.op for op in trace.ops if UNENTERED in op.attrs] == ["If"]
    assert [op.calls for op in trace.ops if op.op == "MatMul"] == [1]
    assert [note for note in trace.notes if "which is not a variable" in note]
    with pytest.raises(BeyondCounter, match=re.escape(words)):
        capture("tf.profiler@runmeta", model)


class Decides(tf.keras.layers.Layer):
    """One product or two, as its input says, inside a function of its own."""

    def build(self, _shape):
        self.weight = self.add_weight(shape=(IN, OUT), name="weight")

    def call(self, x):
        chosen = tf.function(
            lambda x: tf.cond(
                tf.reduce_sum(x * x) < 0, lambda: x @ self.weight, lambda: x @ self.weight + x @ self.weight
            )
        )
        return chosen(x)


def test_what_decides_inside_a_call_of_a_training_step():
    """A step writes its variables: forward two products, and for each the gradient of the weight. The function's own gradient
    gives those of its inputs as well."""

    def make():
        start = tf.keras.Input(batch_shape=(ROWS, IN))
        return tf.keras.Model(start, Decides()(start))

    trace = training_trace(model_of(make, ROWS, IN))
    assert trace.problems == ()
    found = dict.fromkeys((FORWARD, WEIGHT_GRADIENT), 0)
    for op in trace.ops:
        if op.phase in found:
            found[op.phase] += work_of(op).mac * op.calls
    assert found == {FORWARD: 2 * ONE, WEIGHT_GRADIENT: 2 * ONE}
