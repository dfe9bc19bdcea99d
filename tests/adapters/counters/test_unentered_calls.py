"""A branch that a trace could not enter has a user's formula: which of the counter's nodes it stands for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconcile.core.causes import Cause, State
from reconcile.core.records import LIVE, UNENTERED, Op
from reconcile.work import load, restore_registry
from reconcile.work.formula_files import load_formulas
from tests.adapters.counters.test_lies import IN, MACS, OUT, RAN, B, Case, node, profiled, tensor

load()
CALL = Op("if", "If", "a", (tensor(B, IN),), (tensor(B, OUT),), {UNENTERED: "which branch runs is not known"})
THEN, ELSE = node(id="if/then/MatMul"), (node(id="if/else/MatMul"), node(id="if/else/MatMul_1"))
ENTERED = profiled(RAN, *((each, LIVE, 2 * MACS) for each in (THEN, *ELSE)))
NOT_ENTERED = profiled(RAN, (CALL._replace(attrs={}), LIVE, 0))


@pytest.fixture(autouse=True)
def registry() -> Iterator[None]:
    with restore_registry():
        yield


def amounts(ledger: object, products: int, tmp_path: Path) -> tuple[State, dict[Cause, int], int]:
    """What is booked if the formula gives so many of the products of a node."""
    file = tmp_path / "given.py"
    work = f"Work(mac={products * MACS}, accumulators={products * B * OUT})"
    file.write_text(
        f"from reconcile.work import Work, formula\n\n@formula('If', source='by hand')\ndef give(op):\n    return {work}\n"
    )
    load_formulas((file,))
    (statement,) = Case(ledger, (CALL,), "if").result((CALL,)).statements  # type: ignore[arg-type]
    assert statement.residual is not None
    return statement.state, {line.cause: line.amount for line in statement.adjustments}, statement.residual


def test_the_branch_that_does_its_work_ran_and_the_other_did_not(tmp_path: Path) -> None:
    assert amounts(ENTERED, 1, tmp_path) == (State.EXPLAINED, {Cause.UNTAKEN_BRANCH: -2 * 2 * MACS}, 0)


def test_it_may_be_the_other_branch(tmp_path: Path) -> None:
    assert amounts(ENTERED, 2, tmp_path) == (State.EXPLAINED, {Cause.UNTAKEN_BRANCH: -2 * MACS}, 0)


def test_a_formula_that_no_branch_does_is_unexplained(tmp_path: Path) -> None:
    assert amounts(ENTERED, 3, tmp_path) == (State.UNEXPLAINED, {}, 3 * 2 * MACS - 3 * 2 * MACS)


def test_a_graph_that_holds_the_call_holds_none_of_its_work(tmp_path: Path) -> None:
    assert amounts(NOT_ENTERED, 3, tmp_path) == (State.EXPLAINED, {Cause.BODY_NOT_ENTERED: 3 * 2 * MACS}, 0)
