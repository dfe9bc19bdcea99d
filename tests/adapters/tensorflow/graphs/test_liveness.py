"""What is counted of loops, branches and calls is what TensorFlow runs, as the events of a profiled run tell."""

from __future__ import annotations

import pytest
import tensorflow as tf

from reconcile.adapters.tensorflow.graphs.graph import Scopes
from reconcile.adapters.tensorflow.graphs.liveness import LOWERED
from reconcile.adapters.tensorflow.trace import Tracer, trace_function

TURNS, WIDE = 3, 4
SHAPE = (1, WIDE)


def product(x):
    return tf.ensure_shape(tf.matmul(x, tf.ones((WIDE, WIDE)) + x[0, 0]), SHAPE)


def half_used(x, used=product, unused=product, start=lambda x: x):
    """A loop of two variables, of which one is used."""
    return tf.while_loop(lambda i, *_: i < TURNS, lambda i, y, z: (i + 1, used(y), unused(z)), (0, x, start(x)))


def random(x):
    return product(x) + tf.random.normal(SHAPE)


def waited_for(x):
    """An edge of control alone does not make a loop without side effects run whole."""
    results = half_used(x)
    with tf.control_dependencies([results[0].op.inputs[0].op]):
        return tf.identity(x) + results[1]


def read_by_the_condition(x):
    return tf.while_loop(
        lambda i, y, z: (i < TURNS) & (z[0, 0] < float("inf")), lambda i, y, z: (i + 1, y, product(z)), (0, x, x)
    )[1]


def read_by_the_other(x):
    """A variable of a loop that only another one reads."""
    return tf.while_loop(lambda i, *_: i < TURNS, lambda i, y, z: (i + 1, product(y + z), product(z)), (0, x, x))[1]


def branch(x):
    both = lambda y: (product(y), product(y + 1))  # noqa: E731
    return tf.cond(tf.constant(1) > 0, lambda: both(x), lambda: (x, x))[0]


def called(**how):
    return lambda x: tf.function(lambda y, z: (product(y), product(z)), **how)(x, product(x))[0]


def as_it_is(x, apart=False):
    """A loop that nothing marks as one to take apart."""
    scalar, row = tf.TensorSpec((), tf.int32), tf.TensorSpec(SHAPE)
    cond = tf.function(lambda i, y, z: i < TURNS).get_concrete_function(scalar, row, row)
    body = tf.function(lambda i, y, z: (i + 1, product(y), product(z))).get_concrete_function(scalar, row, row)
    results = tf.raw_ops.StatelessWhile(input=[tf.constant(0), x, x], cond=cond, body=body)
    if apart:
        results[0].op._set_attr(LOWERED, tf.compat.v1.AttrValue(b=True))
    return results[1]


def gradient_of(body, frozen, *wanted):
    """A step of a frozen layer and of a loop behind it: the tape follows all that is a variable, whatever is asked for."""
    first, last = tf.Variable(tf.ones((WIDE, WIDE))), tf.Variable(tf.ones((WIDE, WIDE)))

    def step(x):
        with tf.GradientTape() as tape:
            value = tf.reduce_sum(tf.square(body(x @ first, last)))
        return tape.gradient(value, [last] if frozen else [first, last])[-1 if frozen else slice(None)]

    step.variables = (first, last)
    return step


def mapped(x, weight):
    return tf.map_fn(lambda row: row @ weight, tf.stack([x] * TURNS))


def branched(x, weight):
    return tf.cond(tf.constant(1) > 0, lambda: x @ weight, lambda: x)


def once_more(x, weight):
    return tf.recompute_grad(lambda y: tf.tanh(y @ weight))(x)


CASES = {
    "a loop": (lambda x: half_used(x)[1], TURNS),
    "all of a loop": (lambda x: sum(half_used(x)[1:]), 2 * TURNS),
    "what a variable starts from": (lambda x: half_used(x, start=product)[1], TURNS),
    "a loop with a side effect": (lambda x: half_used(x, random)[1], 2 * TURNS),
    "a loop that is waited for": (waited_for, TURNS),
    "a loop in an unused one": (lambda x: half_used(x, unused=lambda z: half_used(z)[1])[1], TURNS),
    "a loop in a used one": (lambda x: half_used(x, used=lambda y: half_used(y)[1])[1], TURNS * TURNS),
    "what the condition reads": (read_by_the_condition, TURNS),
    "what another variable reads": (read_by_the_other, 2 * TURNS),
    "a branch": (branch, 1),
    "a call": (called(), 1),
    "a call that is not taken apart": (called(experimental_attributes={"_noinline": True}), 1 + 1),
    "a loop not marked": (as_it_is, 2 * TURNS),
    "a loop marked": (lambda x: as_it_is(x, True), TURNS),
    "several values at once": (lambda x: tf.identity_n([product(x), product(x + 1)])[0], 1),
    "the gradient of a map": (gradient_of(mapped, True), 1 + 2 * TURNS),
    "both gradients of a map": (gradient_of(mapped, False), 1 + 3 * TURNS + 1),
    "the gradient of a branch": (gradient_of(branched, True), 1 + 2),
    "the gradient of what is computed again": (gradient_of(once_more, True), 1 + 3),
}
"""What runs, and how many products of it: those of the used results alone, but where all of it runs."""


def products(concrete):
    trace = trace_function(concrete, {}, lambda wanted: dict.fromkeys(wanted, TURNS), {})
    assert trace.problems == ()
    return matrix_products(trace.ops)


def matrix_products(ops):
    return sum(op.calls for op in ops if op.op == "MatMul")


def events(run, folder):
    """How many products TensorFlow runs."""
    xplane = pytest.importorskip("tensorflow.tsl.profiler.protobuf.xplane_pb2")
    run()
    with tf.profiler.experimental.Profile(str(folder), tf.profiler.experimental.ProfilerOptions(host_tracer_level=3)):
        run()
    space = xplane.XSpace()
    for file in folder.rglob("*.xplane.pb"):
        space.MergeFromString(file.read_bytes())
    return sum(
        plane.event_metadata[event.metadata_id].name.endswith("MatMul")
        for plane in space.planes for line in plane.lines for event in line.events
    )  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_runs_is_counted(case, tmp_path):
    function, expected = CASES[case]
    concrete = tf.function(function, autograph=False).get_concrete_function(tf.TensorSpec(SHAPE))
    ran = events(lambda: concrete(tf.ones(SHAPE)), tmp_path)
    assert (products(concrete), ran) == (expected, expected)


def products_compiled(function):
    """The products of a function that XLA compiles, and those that it leaves."""
    compiled = tf.function(function, jit_compile=True, autograph=False)
    text = compiled.experimental_get_compiler_ir(tf.ones(SHAPE))(stage="optimized_hlo")
    around = tf.function(lambda x: compiled(x), autograph=False).get_concrete_function(tf.TensorSpec(SHAPE))
    return products(around), text.count(" dot(")


def test_what_xla_compiles():
    """It gives all its results; within it XLA drops what they do not need, also of a loop with side effects."""
    both = tf.function(lambda x: (product(x), product(x + 1)), jit_compile=True)
    around = tf.function(lambda x: both(x)[0], autograph=False).get_concrete_function(tf.TensorSpec(SHAPE))
    assert products(around) == 2
    variable = tf.Variable(tf.ones(SHAPE))
    assert products_compiled(lambda x: half_used(x, lambda y: product(y) + variable)[1]) == (
        TURNS,
        1,
    )  # once in its loop


def test_in_a_session_a_side_effect_alone_runs_nothing(tmp_path):
    """Nothing waits for a loop of which a session fetches one result."""
    with tf.Graph().as_default() as graph:
        used = half_used(tf.compat.v1.placeholder_with_default(tf.ones(SHAPE), SHAPE), random)[1]
    tracer = Tracer(Scopes({}), lambda wanted: {})
    tracer.trace(graph, [used])
    with tf.compat.v1.Session(graph=graph) as session:
        ran = events(lambda: session.run(used), tmp_path)
    assert (matrix_products(tracer.ops), ran) == (TURNS, TURNS)
