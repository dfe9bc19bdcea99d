"""A model that does other things under a counter than when it was traced is unexplained, and the reason says so.

A cause is booked where the counter met the op, or something that holds it; never because it has a formula for an op.
"""

from __future__ import annotations

import pytest

from reconcile.align.alignment import Alignment
from reconcile.core.causes import Cause, State
from reconcile.core.conventions import ALL, BUILT_IN, MATMUL, Conventions
from reconcile.core.records import DEAD, Ledger, Op, Tensor
from reconcile.engine.ledger import reconcile_ledger
from reconcile.engine.settle import settle
from reconcile.launch.request import RunRequest
from reconcile.work import work_of
from reconcile.workflow import run
from tests.conftest import PAIRS

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]

PAIR = str(PAIRS / "other_runs.py")
TORCH = ("thop", "fvcore", "flop_counter")
ROWS, WIDTH = 4, 8
UNCOUNTED = (Cause.OP_NOT_COUNTED, Cause.BODY_NOT_ENTERED, Cause.SHAPE_UNKNOWN)


def ran(*counters, convention="matmul", **overrides):
    """The result of a run, and each counter's statement to the trace."""
    result = run(RunRequest(PAIR, overrides, counters=counters or TORCH, convention=convention))
    return result, {s.from_: s for s in result.statements}


def said(counter):
    return (
        f"the model ran other ops here under {counter} than when it was traced",
        f"If the model keeps state between calls (a cache), run this counter alone with --counter {counter}; "
        "if it has a random generator of its own, seed that; if it does neither, the two are matched wrongly here: report it",
    )


def test_what_a_cache_kept_is_no_difference_of_formulas():
    """The trace, which comes first, fills the cache: the others do not meet its product."""
    result, statements = ran(how="dict")
    assert result.exit_code == 1
    linear, table = 2 * ROWS * WIDTH * WIDTH, 2 * ROWS * WIDTH
    for counter in ("fvcore", "flop_counter"):
        statement = statements[counter]
        assert (statement.state, statement.from_total, statement.residual) == (State.UNEXPLAINED, linear, table)
        assert statement.adjustments == ()
        (residual,) = statement.residuals
        assert "aten.mm (4, 1) x (1, 8) is in the trace" in residual.reason
        assert [words for words in said(counter) if words not in residual.reason] == []
    assert statements["thop"].by_cause() == {Cause.CALL_NOT_SEEN: table}  # no module: its hooks cannot see it


def test_a_cache_of_functools_is_emptied_before_every_model():
    result, statements = ran()
    assert result.exit_code == 0
    assert statements["flop_counter"].state is State.EQUAL


@pytest.mark.parametrize("convention", ["matmul", "all"])
def test_another_branch_than_traced_is_unexplained_everywhere(collecting, convention):
    result = settle(collecting(PAIR, how="branch"), Conventions(BUILT_IN[convention]))
    assert result.exit_code == 1
    for counter, statement in {s.from_: s for s in result.statements}.items():
        assert statement.state is State.UNEXPLAINED
        assert Cause.FORMULA_DIFFERS not in statement.by_cause()
        assert [r.layer for r in statement.residuals] == ["first", "second"]
        for residual in statement.residuals:
            assert [words for words in said(counter) if words not in residual.reason] == []
        # Linear layers: WIDTH outputs of WIDTH terms ran, twice as many were counted.
        if convention == "matmul":
            assert [r.amount for r in statement.residuals] == [2 * ROWS * WIDTH * WIDTH, -4 * ROWS * WIDTH * WIDTH]


def test_an_op_that_a_graph_drops_is_no_difference_of_formulas():
    """Only a decision of Python's depends on the product: PyTorch takes it out of the graph that fvcore counts."""
    result, statements = ran("fvcore", how="dropped")
    assert result.exit_code == 0
    statement = statements["fvcore"]
    assert statement.by_cause() == {Cause.CALL_NOT_SEEN: 2 * ROWS * ROWS * WIDTH}
    (line,) = statement.adjustments
    (evidence,) = line.evidence
    assert evidence.formula == "the counter's graph leaves it out: no output of the model depends on it"
    assert [op.op for op in evidence.seen] == ["aten.matmul"]


# Traces that lie, of real ledgers.


@pytest.fixture(scope="module", params=["gru_demo"])
def parts(request, collecting):
    found = collecting(request.param)
    traces = {t.framework: t for t in found.traces}
    return [(led, traces[led.framework]) for led in found.ledgers if isinstance(led, Ledger)]


def reconciled(ledger, trace, convention=MATMUL):
    return reconcile_ledger(ledger, trace, Alignment([]), convention)


def uncounted(ledger, trace, op):
    """Whether the counter counts nothing of an op, however often it runs: with the true trace it says so, too."""
    lines = [line for line in reconciled(ledger, trace).adjustments if line.cause in UNCOUNTED]
    proofs = [e for line in lines for e in line.evidence]
    return any(op.id in e.ops or (e.layer, op.op) in [(s.layer, s.op) for s in e.seen] for e in proofs)


def products(trace):
    return [op for op in trace.ops if work_of(op).mac]


def lies(op, trace):
    """The trace without this op, with it once more in this number of calls, or on tensors twice as large."""
    others = tuple(o for o in trace.ops if o is not op)
    wider = [t._replace(shape=t.shape and (2 * t.shape[0], *t.shape[1:])) for t in (*op.inputs, *op.outputs)]
    size = len(op.inputs)
    yield trace._replace(ops=others)
    yield trace._replace(ops=(*others, op._replace(calls=op.calls + 1)))
    yield trace._replace(ops=(*others, op._replace(inputs=tuple(wider[:size]), outputs=tuple(wider[size:]))))


def test_no_lie_about_an_op_that_a_counter_met_is_explained(parts):
    """Remove, repeat or enlarge any op of the trace that multiplies matrices: a counter with a rule for it cannot explain it."""
    held = 0
    for ledger, trace in parts:
        for op in products(trace):
            if uncounted(ledger, trace, op):
                continue
            for lie in lies(op, trace):
                if sum(work_of(o).mac * o.calls for o in lie.ops) == sum(work_of(o).mac * o.calls for o in trace.ops):
                    continue  # twice as large in name only
                found = reconciled(ledger, lie)
                if ledger.framework == "tf" and lie.ops[-1].calls == op.calls + 1 and one_graph(ledger, op):
                    continue  # a node of a static graph stands there once, however often it runs
                assert found.residuals, (ledger.counter, op)
                assert found.ledger.state is State.UNEXPLAINED
                held += 1
    assert held > 3 * len({ledger.counter for ledger, _ in parts})


def one_graph(ledger, op):
    return all(s.op.calls == 1 for s in ledger.sightings if s.op.id == op.id)


def test_an_op_that_nobody_met_is_unexplained(parts):
    """A product in a layer of its own, which is in no counter's graph, and for which no module was called."""
    x = Tensor((ROWS, WIDTH), "float32")
    kinds = {"torch": "aten.mm", "tf": "MatMul"}
    for ledger, trace in parts:
        square = Tensor((WIDTH, WIDTH), "float32")
        attrs = {"transpose_a": False, "transpose_b": False, "T": 1} if ledger.framework == "tf" else {}
        op = Op("invented", kinds[ledger.framework], "invented", (x, square), (x,), attrs)
        found = reconciled(ledger, trace._replace(ops=(*trace.ops, op)))
        assert [(r.layer, r.amount) for r in found.residuals] == [("invented", 2 * ROWS * WIDTH * WIDTH)]


def test_nothing_is_explained_by_what_is_not_multiplied_either(parts):
    """The same of every op that does anything, under a convention that counts it, for the counter that meets every op."""
    for ledger, trace in parts:
        if ledger.counter == "flop_counter":
            names = {s.op.op for s in ledger.sightings}
            for op in trace.ops:
                if work_of(op) and op.op in names:
                    lie = trace._replace(ops=tuple(o for o in trace.ops if o is not op))
                    twice = trace._replace(ops=(*lie.ops, op._replace(calls=2 * op.calls)))
                    assert reconciled(ledger, twice, ALL).residuals, op


def test_true_traces_are_explained(parts):
    for ledger, trace in parts:
        for convention in BUILT_IN.values():
            assert not reconciled(ledger, trace, convention).residuals
        assert DEAD not in {s.role for s in ledger.sightings if ledger.framework == "torch"}
