"""What decides which ops run is read from constants, even where a function computes it, else from one run; else it is named."""

from __future__ import annotations

import gc

import pytest

from reconcile.adapters.tensorflow.graphs import loops
from reconcile.adapters.tensorflow.graphs.graph import function_graph
from reconcile.adapters.tensorflow.model import TfModel, quiet
from reconcile.adapters.tensorflow.trace import trace_function
from reconcile.model_zoo import pair as pairs
from tests.adapters.tensorflow.training_steps import Pair

quiet()

import tensorflow as tf  # noqa: E402

pytestmark = pytest.mark.frameworks

WIDE = 3


def chosen(predicate, x):
    """A product, but only if the predicate holds."""
    return tf.cond(predicate, lambda: x @ tf.ones((WIDE, WIDE)), lambda: x)


def doubled(number):
    """A number that comes out of a cond: a function in the graph computes it."""
    return tf.cond(number > 2, lambda: number * 2, lambda: number)


def by_constants(x, first):
    return chosen(doubled(tf.constant(first)) > 5, x)


def twice_removed(x, first):
    return chosen(doubled(doubled(tf.constant(first))) > 11, x)


def by_a_loop(x, first):
    return chosen(tf.while_loop(lambda i: i < 6, lambda i: i + 3, [tf.constant(first)])[0] > 7, x)


def by_a_called_function(x, first):
    return tf.function(lambda y: by_constants(y, first))(x)


def by_the_input(x, first):
    return chosen(doubled(tf.reduce_sum(x) * 0 + first) > 5, x)


def traced(function):
    runs = []
    model = TfModel(Pair(lambda: function, 1, WIDE), pairs.Params({}))

    def run(wanted):
        runs.append(wanted)
        return model.fetch(wanted)

    return trace_function(model.concrete, model.scopes, run, {}), len(runs)


def products(trace):
    return sum(op.calls for op in trace.ops if op.op == "MatMul")


@pytest.mark.parametrize(
    ("function", "holds", "fails", "runs"),
    [
        (by_constants, 3, 2, 0),
        pytest.param(twice_removed, 3, 2, 0, marks=pytest.mark.slow),
        (by_a_loop, 2, 1, 0),  # 2, 5, 8 and 1, 4, 7
        (by_a_called_function, 3, 2, 0),
        (by_the_input, 3.0, 2.0, 1),
    ],
)
def test_a_predicate_out_of_a_function_decides(function, holds, fails, runs):
    for first, expected in ((holds, 1), (fails, 0)):
        trace, taken = traced(lambda x, first=first: function(x, first))
        assert (trace.problems, products(trace), taken) == ((), expected, runs)


def test_where_the_function_is_missing_one_run_decides(monkeypatch):
    monkeypatch.setattr(loops, "definition", lambda _graph, _name: None)
    trace, taken = traced(lambda x: by_constants(x, 3))
    assert (trace.problems, products(trace), taken) == ((), 1, 1)


@pytest.mark.parametrize(("first", "expected"), [(3.0, 1), pytest.param(2.0, 0, marks=pytest.mark.slow)])
def test_inside_a_call_the_same_run_decides(first, expected):
    """Twice the same function: each of its calls has values of its own."""
    inner = tf.function(lambda y, z: by_the_input(y, z))
    trace, taken = traced(lambda x: inner(inner(x, 2.0), first))
    assert (trace.problems, products(trace), taken) == ((), expected, 1)


def test_where_nothing_decides_the_op_is_named():
    """Inside a branch that is chosen by data nothing can be fetched."""
    trace, _ = traced(lambda x: tf.cond(tf.reduce_sum(x) < 99, lambda: by_the_input(x, 3.0), lambda: x))
    assert [p.op for p in trace.problems] == ["StatelessIf", "StatelessIf"]
    assert {p.reason for p in trace.problems} == {"which branch runs is not constant and could not be read from a run"}
    assert products(trace) == 0


def test_a_value_that_tensorflow_refuses_to_compute_is_unknown():
    with tf.Graph().as_default():
        assert loops.Constants().value(tf.constant(7) // tf.constant(0), None) is None
        assert loops.Constants().value(tf.constant(7) // tf.constant(2), None) == 3


@pytest.mark.slow
def test_a_tensor_that_is_gone_lends_its_value_to_no_other():
    constants = loops.Constants()
    gc.freeze()  # what TensorFlow itself holds need not be looked through each time
    for value in range(50):
        with tf.Graph().as_default():
            assert constants.value(tf.constant(value), None) == value
        gc.collect()
    gc.unfreeze()


def test_a_function_of_a_file_is_read_once():
    """Its tensors are told from others by identity."""
    made = tf.function(lambda x: tf.while_loop(lambda i, _: i < 5, lambda i, y: (i + 1, y @ y), (0, x)))
    definition = made.get_concrete_function(tf.TensorSpec((3, 3))).graph.as_graph_def()
    with tf.Graph().as_default() as graph:
        tf.graph_util.import_graph_def(definition, name="")
    name = next(function.signature.name for function in definition.library.function)
    assert function_graph(graph, name) is function_graph(graph, name)
