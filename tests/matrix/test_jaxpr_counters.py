"""roofline and pl.estimate_cost on real programs: what they report and why it is not what ran, by closed forms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import reconcile
from reconcile.core.causes import Cause
from reconcile.core.conventions import BUILT_IN, MATMUL, Conventions
from reconcile.engine.settle import settle
from reconcile.launch.environments import definitions as environments
from reconcile.launch.environments import runs
from reconcile.launch.request import run_request
from reconcile.model_zoo import loading
from reconcile.work import load
from tests.matrix.reports import python_of
from tests.programs import output_of

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(1800)]

ROWS, WIDTH = 5, 4
ONE = ROWS * WIDTH
PRODUCT = 2 * ONE * WIDTH
HEADS = 2 * 3
SCORES = HEADS * ROWS * ROWS
MODELS = f"""
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas

W, X = jnp.eye({WIDTH}), jnp.ones(({ROWS}, {WIDTH}))


def loop(x, turns): return lax.scan(lambda h, _: (h @ W + 1, None), x, None, length=turns)[0]
def dense(): return (lambda x: jax.nn.relu(x @ W)), X
def scan(): return (lambda x: loop(x, 6)), X
def no_turn(): return (lambda x: loop(x, 0) @ W), X
def while_(): return (lambda x: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] @ W), (0, x))[1] @ W), X
def cond(): return (lambda x: lax.cond(x[0, 0] > 0, lambda x: x @ W, lambda x: x, x) @ W), X
def attention():
    return (lambda x: jax.nn.softmax(jnp.einsum("bhqd,bhkd->bhqk", x, x), -1) @ x), jnp.ones((2, 3, {ROWS}, {WIDTH}))
def conv():
    kernel = jnp.ones((3, 3, 2, 4))
    return (lambda x: lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))), jnp.ones(
        (1, 5, 5, 2))
def dead(): return (lambda x: (x @ W @ W, x @ W)[1]), X
def gradient(): return jax.grad(lambda x: (x @ W).sum()), X
def kernel():
    def body(x, out): out[...] = x[...] @ x[...]
    return (lambda x: pallas.pallas_call(body, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)), W
def mapped():
    mesh = jax.sharding.Mesh(jax.devices(), ("d",))
    spec = jax.sharding.PartitionSpec("d")
    return jax.shard_map(lambda x: x @ W, mesh=mesh, in_specs=spec, out_specs=spec), X
def applied(): return (lambda x: x.at[0].apply(jnp.exp) @ W), X
def negative_power(): return (lambda x: x ** -2), X
def power_of_two(): return jnp.exp2, X
"""
CONV = 2 * 2 * 4 * (3 * 5) ** 2
PADDED = CONV - 2 * 2 * 4 * (3 * 5 - 2) ** 2
SOFTMAX = {"max": HEADS * ROWS, "sub": SCORES, "exp": SCORES, "sum": HEADS * ROWS * (ROWS - 1), "div": SCORES}
ATTENTION = 2 * 2 * SCORES * WIDTH
CUBE = 2 * WIDTH**3
NONE: dict[str, int] = {}
EXPECTED: dict[str, tuple[int, list[tuple[int | None, dict[str, int]]]]] = {
    # the work that ran, then of roofline, of its flops alone and of pl.estimate_cost the total and the causes
    "dense": (
        PRODUCT, [(PRODUCT + ONE, {"outside-convention": -ONE}), (PRODUCT, NONE), (PRODUCT, NONE)],
    ),  # pl.estimate_cost does not enter the relu
    "scan": (6 * PRODUCT, [
        (PRODUCT + ONE, {"loop-counted-once": 5 * PRODUCT, "outside-convention": -ONE}),
        (PRODUCT, {"loop-counted-once": 5 * PRODUCT}), (0, {"body-not-entered": 6 * PRODUCT}),
    ]),
    "no_turn": (PRODUCT, [
        (2 * PRODUCT + ONE, {"untaken-branch": -PRODUCT - ONE}), (2 * PRODUCT, {"untaken-branch": -PRODUCT}), (PRODUCT, NONE),
    ]),
    "while_": (4 * PRODUCT, [(PRODUCT, {"body-not-entered": 3 * PRODUCT})] * 3),
    "cond": (2 * PRODUCT, [
        (PRODUCT + 1, {"body-not-entered": PRODUCT, "outside-convention": -1}), (PRODUCT, {"body-not-entered": PRODUCT}),
        (PRODUCT, {"body-not-entered": PRODUCT}),
    ]),
    "attention": (ATTENTION, [
        (ATTENTION + sum(SOFTMAX.values()), {"outside-convention": -sum(SOFTMAX.values())}), (ATTENTION, NONE),
        (ATTENTION + HEADS * ROWS + 2 * SCORES, {"outside-convention": -HEADS * ROWS - 2 * SCORES}),
    ]),
    "conv": (CONV, [(CONV - PADDED, {"padding-not-counted": PADDED}), *[(0, {"op-not-counted": CONV})] * 2]),
    "dead": (PRODUCT, [(PRODUCT, NONE), (PRODUCT, NONE), (3 * PRODUCT, {"dead-op": -2 * PRODUCT})]),
    "gradient": (PRODUCT, [(PRODUCT, NONE), (PRODUCT, NONE), (2 * PRODUCT, {"dead-op": -PRODUCT})]),
    "kernel": (CUBE, [(None, NONE), (None, NONE), (0, {"body-not-entered": CUBE})]),
    "mapped": (PRODUCT, [(None, NONE), (None, NONE), (0, {"body-not-entered": PRODUCT})]),
    "applied": (PRODUCT, [(None, NONE), (None, NONE), (PRODUCT, NONE)]),
    "negative_power": (0, [(ONE, {"outside-convention": -ONE}), (0, NONE), (None, NONE)]),
    "power_of_two": (0, [(0, NONE)] * 3),
}  # fmt: skip
NEWER = {
    # x * x, of which the estimate takes 2, and the reciprocal
    "negative_power": (0, [*EXPECTED["negative_power"][1][:2], (3 * ONE, {"outside-convention": -3 * ONE})]),
    "power_of_two": (0, [(ONE, {"outside-convention": -ONE}), (0, NONE), (0, NONE)]),
}
"""What JAX 0.12 counts otherwise."""
COUNTERS = ("roofline", "roofline@flops", "estimate_cost")
RUNS = """
import json, sys
import programs, reconcile
from reconcile.core.conventions import BUILT_IN

names, counters = json.loads(sys.argv[1])
found = {}
for name in names:
    results = [
        reconcile.run(jax=getattr(programs, name), counters=tuple(counters), convention=one).result for one in BUILT_IN
    ]
    (first,) = (result for result in results if result.convention.name == "matmul")
    statements = {one.from_: one for one in first.statements}
    found[name] = {
        "work": first.traces[0].totals["matmul"],
        "open": [(s.from_, s.residual) for result in results for s in result.statements if s.residual],
        "mismatches": [ledger.counter for ledger in first.ledgers if ledger.mismatches or ledger.unchecked],
        "told": [
            [ledger.total, {c.value: n for c, n in statements[ledger.counter].by_cause().items()}] for ledger in first.ledgers
        ],
    }
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What is said of every program, in one process."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / "programs.py").write_text(MODELS)
    words = ("-c", RUNS, json.dumps([[*EXPECTED], COUNTERS]))
    printed = output_of(*words, python=python_of("roofline"), folder=folder, paths=[folder], JAX_PLATFORMS="cpu")
    told: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return told


@pytest.mark.parametrize("name", EXPECTED)
def test_every_unit_has_a_cause(found: dict[str, Any], name: str) -> None:
    work, told = EXPECTED[name]
    assert (found[name]["open"], found[name]["mismatches"]) == ([], [])
    assert (found[name]["work"], found[name]["told"]) == (work, [[total, causes] for total, causes in told])


@pytest.mark.parametrize("name", EXPECTED)
def test_jax_0_12_counts_as_its_rules_say(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "programs.py").write_text(MODELS)
    monkeypatch.syspath_prepend(tmp_path)
    python = str(python_of("jax-0.12", Path(__file__).with_name("jax.toml")))
    result = reconcile.run(jax=f"programs:{name}", python=python, counters=COUNTERS).result
    statements = {one.from_: one for one in result.statements}
    assert [
        (one.counter, one.mismatches, one.unchecked) for one in result.ledgers if one.mismatches or one.unchecked
    ] == []
    assert [(one.from_, one.residual) for one in result.statements if one.residual] == []
    told = [
        (one.total, {cause.value: amount for cause, amount in statements[one.counter].by_cause().items()})
        for one in result.ledgers
    ]
    assert (result.traces[0].totals["matmul"], told) == {**EXPECTED, **NEWER}[name]


@pytest.mark.parametrize("training", [False, True])
def test_a_loop_of_a_zoo_model_and_its_step(training: bool) -> None:
    """A GRU in a scan: its products and their gradients count once for all frames, in roofline, and never in the other."""
    load()
    proof = dict(loading.load_pair(loading.pair_path("gru_demo")).proof)
    step = {"pass_": "training", "optimizer": "sgd"} if training else {}
    request = run_request(model="gru_demo", overrides=proof, counters=COUNTERS, **step)
    collected = runs.collect_in(environments.load()["roofline"])(request, lambda _event: None)
    for convention in BUILT_IN.values():
        result = settle(collected, Conventions(convention))
        assert [(s.from_, s.residual) for s in result.statements] == [(name, 0) for name in COUNTERS]
    causes = {s.from_: set(s.by_cause()) for s in settle(collected, Conventions(MATMUL)).statements}
    assert causes["roofline"] == {Cause.LOOP_COUNTED_ONCE, Cause.OUTSIDE_CONVENTION}
    assert causes["roofline@flops"] == {Cause.LOOP_COUNTED_ONCE, Cause.OP_NOT_COUNTED}
    assert causes["estimate_cost"] == {Cause.BODY_NOT_ENTERED, Cause.OP_NOT_COUNTED, Cause.OUTSIDE_CONVENTION}
