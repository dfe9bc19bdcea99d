"""How often ops run is read from constants, even where a function computes it, else counted in one run; else it is named."""

from __future__ import annotations

import gc

import pytest
import tensorflow as tf

from reconcile.adapters.tensorflow.graphs import loops
from reconcile.adapters.tensorflow.graphs.graph import function_graph
from reconcile.adapters.tensorflow.model import TfModel
from reconcile.adapters.tensorflow.trace import trace_function
from reconcile.core.records import UNENTERED
from reconcile.model_zoo import pair as pairs
from tests.adapters.tensorflow.training_steps import Pair

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
        return model.count_runs(wanted)

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


def by_value(x, number):
    """A number that only a run knows."""
    return tf.cast(tf.reduce_sum(x * 0), tf.int32) + number


def times(x, count, change=lambda i, y: y @ tf.ones((WIDE, WIDE)) * 0.1):
    """What is changed so many times, in a loop."""
    return tf.while_loop(
        lambda i, _: i < count, lambda i, y: (i + 1, tf.ensure_shape(change(i, y), (1, WIDE))), (0, x)
    )[1]


def times_of_turn(i, x):
    return times(x, i)


def loop_three_deep(x):
    return times(x, 3, lambda i, y: times(y, i + 1, times_of_turn))


def loop_in_a_condition(x):
    """Whether the loop goes on is asked four times."""

    def more(i, y):
        return tf.cast(i, tf.float32) + tf.reduce_sum(times(y, i)) * 0 < 3

    return tf.while_loop(more, lambda i, y: (i + 1, y), (0, x))[1]


def branch_in_a_loop(x):
    return times(x, 5, lambda i, y: chosen(i % 2 == 0, y))


def cases_in_a_loop(x):
    """The last case is that of any number beyond: 0 1 2 3 4 5 have 0, 1, 2, 2, 2 and 2 products."""
    product = lambda y: y @ tf.ones((WIDE, WIDE))  # noqa: E731
    return times(x, 6, lambda i, y: tf.switch_case(i, [lambda: y, lambda: product(y), lambda: product(product(y))]))


def branch_in_a_branch(x):
    return tf.cond(tf.reduce_sum(x) < 99, lambda: by_the_input(x, 3.0), lambda: x)


def loop_of_an_unused_result(x, used=lambda y: y):
    """TensorFlow drops what is computed for a result that nothing uses."""
    wide = (1, WIDE)
    return tf.while_loop(
        lambda i, *_: i < by_value(x, 3),
        lambda i, y, z: (i + 1, used(y), tf.ensure_shape(times(z, i), wide)),
        (0, x, x),
    )[1]


def loop_with_a_side_effect(x):
    """Such a loop runs whole, whichever of its results is used."""
    return loop_of_an_unused_result(x, lambda y: y + tf.random.normal((1, WIDE)))


def calls_of_one_function(x):
    """Each call has turns of its own: 2 + 3."""
    inner = tf.function(lambda y, n: times(y, by_value(y, 0) + n))
    return inner(inner(x, 2), 3)


def no_turn(x):
    return times(x, by_value(x, 0), times_of_turn)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (loop_three_deep, 0 + (0 + 1) + (0 + 1 + 2)),
        (loop_in_a_condition, 0 + 1 + 2 + 3),
        (cases_in_a_loop, 0 + 1 + 4 * 2),
        (branch_in_a_branch, 1),
        (loop_of_an_unused_result, 0),
        (loop_with_a_side_effect, 0 + 1 + 2),
        (calls_of_one_function, 2 + 3),
        (no_turn, 0),
    ],
)
def test_at_any_depth_one_run_counts_what_constants_do_not_decide(function, expected):
    trace, taken = traced(function)
    assert (trace.problems, products(trace), taken) == ((), expected, 1)


def test_branches_that_ran_more_or_less_often_than_their_choice_are_named():
    model = TfModel(Pair(lambda: branch_in_a_loop, 1, WIDE), pairs.Params({}))
    trace = trace_function(model.concrete, model.scopes, lambda wanted: dict.fromkeys(wanted, 2), {})
    assert [op.op for op in trace.ops if UNENTERED in op.attrs] == ["StatelessIf"]


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
