"""XLA's counters on programs that JAX does not hand over one equation by one: to residual 0, by closed forms."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from reconcile.cli import cli

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(1800)]

ROWS, WIDTH = 5, 4
PRODUCT = 2 * ROWS * WIDTH * WIDTH
SQUARE = 2 * WIDTH * WIDTH * WIDTH
MODELS = f"""
import jax
import jax.numpy as jnp
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
}


@pytest.mark.parametrize("name", WORK)
def test_every_unit_has_a_cause(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "programs.py").write_text(MODELS)
    monkeypatch.chdir(tmp_path)
    words = f"run --jax programs:{name} --environment xla --counter xla@lowered --counter xla@compiled --out out -q"
    done = CliRunner().invoke(cli, words.split(), prog_name="reconcile")
    assert done.exit_code == 0, done.output
    (file,) = Path("out").glob("*.json")
    report = json.loads(file.read_text())
    assert [trace["totals"]["matmul"] for trace in report["traces"]] == [WORK[name]]
    assert [one["residual"] for one in report["statements"] if one["residual"]] == []
