"""XLA's counters on programs that JAX does not hand over one equation by one: to residual 0, by closed forms."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.matrix.reports import python_of
from tests.programs import output_of

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(1800)]

ROWS, WIDTH = 5, 4
PRODUCT = 2 * ROWS * WIDTH * WIDTH
SQUARE = 2 * WIDTH * WIDTH * WIDTH
MODELS = f"""
import jax
import jax.numpy as jnp
import optax
from jax import lax

W, TALL, SQUARE = jnp.eye({WIDTH}), jnp.ones(({ROWS}, {WIDTH})), jnp.eye({WIDTH})


def turns(length, unroll):
    return lambda x: lax.scan(lambda h, _: (h @ W, None), x, None, length=length, unroll=unroll)[0]


def by_two(): return turns(6, 2), TALL
def by_two_and_one(): return turns(7, 2), TALL
def all_at_once(): return turns(6, True), TALL
def fewer_than_a_turn(): return turns(2, 4), TALL
def nested():
    return (lambda x: lax.scan(lambda h, _: (turns(4, 2)(h), None), x, None, length=6, unroll=3)[0]), TALL
def no_turn():
    return (lambda x: lax.while_loop(lambda s: s[0] < 0, lambda s: (s[0] + 1, s[1] @ W), (0, x))[1] @ W), TALL
def no_turn_of_a_scan(): return (lambda x: turns(0, 1)(x) @ W), TALL
def qr():
    def run(x):
        q, r = jnp.linalg.qr(x)
        return q @ jnp.triu(r)
    return run, TALL
def qr_of_lax(): return (lambda x: lax.linalg.qr(x, full_matrices=False)[0] @ W), TALL
def svd():
    def run(x):
        u, s, v = jnp.linalg.svd(x, full_matrices=False)
        return (u * s) @ v
    return run, TALL
def pinv(): return (lambda x: x @ jnp.linalg.pinv(x)), TALL
def eigh(): return (lambda x: jnp.linalg.eigh(x)[1] @ x), SQUARE
def lstsq(): return (lambda x: jnp.linalg.lstsq(x, x)[0] @ x), SQUARE
def fft(): return (lambda x: jnp.abs(jnp.fft.fft(x)) @ W), TALL


GROUPS = jnp.array([{ROWS} - 2, 0, 2])
EXPERTS = jnp.ones((3, {WIDTH}, {WIDTH}))


def experts(x): return lax.ragged_dot(jax.nn.relu(lax.ragged_dot(x, EXPERTS, GROUPS)), EXPERTS, GROUPS)
def of_experts(): return experts, TALL
def experts_in_a_loop(): return (lambda x: lax.scan(lambda h, _: (experts(h), None), x, None, length=6)[0]), TALL
def step_of_experts():
    def loss(x, weights):
        return (lax.ragged_dot(lax.ragged_dot(x, weights, GROUPS), weights, GROUPS) ** 2).sum()
    return (lambda x: jax.grad(loss, argnums=1)(x, EXPERTS)), TALL
def linear_recurrence():
    # a layer of a state space model: h' = l h + x B, in parallel, then C h
    decay, states = jnp.exp(1j * jnp.arange({WIDTH})), W.astype(jnp.complex64)
    def run(x):
        given = x.astype(jnp.complex64) @ states
        step = lambda a, b: (b[0] * a[0], b[0] * a[1] + b[1])
        return (lax.associative_scan(step, (jnp.broadcast_to(decay, given.shape), given))[1] @ states).real
    return run, TALL
def step_of_recurrence():
    run, x = linear_recurrence()
    return (lambda x: jax.grad(lambda x: run(x).sum())(x)), x
def conjugates(): return (lambda x: (jnp.conj(jnp.exp(1j * x)) @ W.astype(jnp.complex64)).real), TALL
def of_integers(): return (lambda x: lax.dot(x, x.T, preferred_element_type=jnp.int32)), TALL.astype(jnp.int8)


def nothing_added(): return (lambda x: x @ W + 1.0 + 0.0), TALL
def nothing_added_in_a_loop(): return (lambda x: lax.scan(lambda h, _: (h @ W + 0.0 + 1.0, None), x, None, length=6)[0]), TALL
def pooled(x): return lax.reduce_window(x, -jnp.inf, lax.max, ({ROWS}, 1), ({ROWS}, 1), "VALID")
def gradient_of_max_pool(): return jax.grad(lambda x: pooled(x @ W).sum()), TALL
def tangent_of_max_pool(): return (lambda x: jax.jvp(lambda x: pooled(x @ W), (x,), (x + 1,))), TALL
def own_reduction(): return (lambda x: lax.reduce(x @ W, 0.0, lambda a, b: a * b + 1, (1,))), TALL
def gradient_of_median(): return jax.grad(lambda x: jnp.median(x @ W, axis=1).sum()), TALL
def step_of_adam():
    optimizer = optax.adam(1e-3)
    def step(w, state, x):
        updates, state = optimizer.update(jax.grad(lambda w: (x @ w).sum())(w), state)
        return optax.apply_updates(w, updates), state
    return step, (W, optimizer.init(W), TALL)
"""
WORK = {
    "by_two": 6 * PRODUCT,
    "by_two_and_one": 7 * PRODUCT,
    "all_at_once": 6 * PRODUCT,
    "fewer_than_a_turn": 2 * PRODUCT,
    "nested": 24 * PRODUCT,
    "no_turn": PRODUCT,
    "no_turn_of_a_scan": PRODUCT,
    "qr": PRODUCT,
    "qr_of_lax": PRODUCT,
    "svd": PRODUCT,
    "pinv": PRODUCT + 2 * ROWS * WIDTH * ROWS,  # V / S by U^T, and x by what that gives
    "eigh": SQUARE,
    "lstsq": 3 * SQUARE,  # U^T by b, V by that, and the model's own
    "fft": PRODUCT,
    "of_experts": 2 * PRODUCT,
    "experts_in_a_loop": 12 * PRODUCT,
    "step_of_experts": 5 * PRODUCT,  # two forward, the gradients of both weights, and that of what is between
    "linear_recurrence": 2 * 4 * PRODUCT,
    "step_of_recurrence": 2 * 4 * PRODUCT,  # the gradient of what is linear needs no value
    "conjugates": 4 * PRODUCT,
    "of_integers": 2 * ROWS * WIDTH * ROWS,
    "nothing_added": PRODUCT,
    "nothing_added_in_a_loop": 6 * PRODUCT,
    "gradient_of_max_pool": 2 * PRODUCT,
    "tangent_of_max_pool": 2 * PRODUCT,
    "own_reduction": PRODUCT,
    "gradient_of_median": 2 * PRODUCT,
    "step_of_adam": PRODUCT,  # the gradient of what is linear needs no value
}
ONE = ROWS * WIDTH
CAUSES = {
    # one addition is left, and it is the model's own
    "nothing_added": {"outside-convention": -ONE},
    # the counter of the loop and its test are integers
    "nothing_added_in_a_loop": {"loop-counted-once": 5 * PRODUCT, "outside-convention": -ONE, "integer-op": -2},
    # per window of {ROWS} values {ROWS} - 1 comparisons and an addition
    "gradient_of_max_pool": {"outside-convention": -WIDTH * ROWS},
    # per value 6 products, 5 sums of which XLA drops that with 0, and 3 quotients; two corrections of bias. Of integers the
    # number of the step: + 1, a test, a choice and two conversions
    "step_of_adam": {"outside-convention": -((6 + 4 + 3) * WIDTH * WIDTH + 2), "integer-op": -5},
}
"""From the lowered program to the trace."""


RUNS = """
import json, sys
import programs, reconcile

found = {}
for name in json.loads(sys.argv[1]):
    result = reconcile.run(jax=getattr(programs, name), counters=("xla@lowered", "xla@compiled")).result
    found[name] = {
        "work": [trace.totals["matmul"] for trace in result.traces],
        "left": [one.residual for one in result.statements if one.residual],
        "statements": {one.from_: {c.value: n for c, n in one.by_cause().items()} for one in result.statements},
    }
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What is said of every program, in one process."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / "programs.py").write_text(MODELS)
    words = ("-c", RUNS, json.dumps([*WORK]))
    printed = output_of(*words, python=python_of("xla"), folder=folder, paths=[folder], JAX_PLATFORMS="cpu")
    told: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return told


@pytest.mark.parametrize("name", WORK)
def test_every_unit_has_a_cause(found: dict[str, Any], name: str) -> None:
    assert (found[name]["work"], found[name]["left"]) == ([WORK[name]], [])
    assert {"xla@lowered", "xla@compiled"} <= set(found[name]["statements"])
    causes = found[name]["statements"]["xla@lowered"]
    assert "compiler-rewrote" not in causes  # no compiler has run
    assert causes == CAUSES.get(name, causes)
