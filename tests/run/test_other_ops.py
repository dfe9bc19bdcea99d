"""A model that does other things under a counter than when it was traced is unexplained, and the reason says so.

A cause is booked where the counter met the op, or something that holds it; never because it has a formula for an op.
"""

from __future__ import annotations

import pytest

from reconcile.core.causes import Cause, State
from reconcile.core.conventions import BUILT_IN, Conventions
from reconcile.engine.settle import settle
from reconcile.launch.request import RunRequest
from reconcile.workflow import run
from tests.conftest import PAIRS

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]

PAIR = str(PAIRS / "other_runs.py")
TORCH = ("thop", "fvcore", "flop_counter")
ROWS, WIDTH = 4, 8


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
