"""Unknown is never zero: an op without a formula is named and the run exits 1, though all counters agree on 0."""

from __future__ import annotations

import pytest

from reconcile.core.causes import State
from reconcile.core.conventions import ALL, Conventions
from reconcile.engine.settle import settle
from reconcile.launch.request import RunRequest
from reconcile.workflow import run
from tests.conftest import PAIRS

pytestmark = pytest.mark.frameworks

PAIR = str(PAIRS / "unknown_ops.py")
NAMED = {
    "eigenvalues": ("SelfAdjointEigV2", "aten._linalg_eigh"),
    "fft": ("RFFT", "aten._fft_r2c"),
    "custom": ("Betainc", "reconcile_test.twice"),
}


@pytest.mark.parametrize(
    "which",
    [pytest.param("eigenvalues", marks=pytest.mark.slow), pytest.param("fft", marks=pytest.mark.slow), "custom"],
)
def test_unknown_op_is_named_and_fails_the_run(collecting, which):
    collected = collecting(PAIR, which=which, n=3)
    result = settle(collected, Conventions(ALL))
    assert result.exit_code == 1
    for trace, op in zip(result.traces, NAMED[which], strict=True):
        assert not trace.complete
        assert set(trace.totals) <= {"matmul"}  # transforms and eigenvalues have no products
        assert (op, "odd") in [(u.op, u.layer) for u in trace.unknown]
        assert op in trace.reason or len(trace.unknown) > 1
    for statement in result.statements:
        assert statement.state is State.NOT_COMPARABLE
        assert statement.residual is None
    assert [led.counter for led in result.ledgers if led.total is None] == []  # what the counters said is still there


FORMULAS = """
from reconcile.work import Work, formula

@formula("reconcile_test.twice", source="its implementation: x + x")
def twice(op):
    n = 1
    for size in op.inputs[0].shape:
        n *= size
    return Work(add=n)

@formula("Betainc", source="one special function per element")
def betainc(op):
    n = 1
    for size in op.outputs[0].shape:
        n *= size
    return Work(special=n)
"""


def test_formulas_complete_the_trace(tmp_path, collecting):
    file = tmp_path / "formulas.py"
    file.write_text(FORMULAS)
    request = RunRequest(PAIR, {"which": "custom", "n": "3"}, convention="all", formulas=(file,))
    for _ in range(2):  # registrations end with the run: a second one is no duplicate
        result = run(request, take=lambda *_: collecting(PAIR, which="custom", n=3))
        assert [t.complete for t in result.traces] == [True, True]
        assert result.exit_code == 0
        assert [s.residual for s in result.statements] == [0] * len(result.statements)
    dense, odd = 3 * 3 * (2 * 3 + 1), 3 * 3
    tensorflow, torch = (t.totals["all"] for t in result.traces)
    assert torch == dense + odd
    assert tensorflow == dense + odd + 2 * odd + odd  # two squares and a sigmoid go into Betainc
