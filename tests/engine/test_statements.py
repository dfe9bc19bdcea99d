"""Any two ends of a run have a statement, and it does not matter which way it is put together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcile.core.causes import Cause, State
from reconcile.core.results import Adjustment, Residual, Statement
from reconcile.engine.answer import Answer
from reconcile.engine.statements import (
    UNATTRIBUTED,
    chain_statements,
    close_statement,
    reverse_statement,
    statement_between,
)
from reconcile.report import foot
from tests.report import samples

SAMPLES = samples.PAIRED


def names(result: Answer) -> list[str]:
    return [*(x.counter for x in result.ledgers), *(t.name for t in result.traces)]


def sums(statement: Statement) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for line in statement.adjustments:
        key = (line.cause.value, line.layer)
        found[key] = found.get(key, 0) + line.amount
    return found


@pytest.mark.parametrize("sample", SAMPLES)
def test_any_two_ends_have_a_statement_that_foots(sample: Callable[[], Answer]) -> None:
    result = sample()
    for from_, to in permutations(names(result), 2):
        made = statement_between(result, from_, to)
        assert made is not None, (from_, to)
        assert (made.from_, made.to) == (from_, to)
        foot.check(replace(result, statements=(made,)))


@pytest.mark.parametrize("sample", SAMPLES)
def test_backwards_is_the_mirror_image(sample: Callable[[], Answer]) -> None:
    result = sample()
    for from_, to in permutations(names(result), 2):
        there, back = statement_between(result, from_, to), statement_between(result, to, from_)
        assert there is not None
        assert back is not None
        assert sums(back) == {key: -amount for key, amount in sums(there).items()}
        assert (there.from_total, there.to_total, there.state) == (back.to_total, back.from_total, back.state)


def test_put_together_it_equals_the_engines_own() -> None:
    result = samples.clean()
    own = result.statement(samples.FROZEN, "thop")
    without = replace(result, statements=tuple(s for s in result.statements if s is not own))
    made = statement_between(without, samples.FROZEN, "thop")
    assert made is not None
    assert (sums(made), made.from_total, made.to_total) == (sums(own), own.from_total, own.to_total)


def test_the_runs_own_statement_comes_first() -> None:
    result = samples.clean()
    assert statement_between(result, samples.FROZEN, "thop") is result.statement(samples.FROZEN, "thop")


def test_what_two_counters_miss_alike_cancels() -> None:
    result = samples.clean()
    made = statement_between(result, "thop", "flop_counter")
    assert made is not None
    assert sums(made) == {("outside-convention", "loop"): -2 * samples.T * samples.GATES}


def test_a_residual_is_carried_along() -> None:
    made = statement_between(samples.unexplained(), "fvcore", "thop")
    assert made is not None
    assert (made.state, made.residual) == (State.UNEXPLAINED, 2 * samples.WRONG)


def test_the_side_of_the_evidence_turns_too() -> None:
    own = samples.clean().statement("thop", samples.TORCH)
    assert [e.side for a in own.adjustments for e in a.evidence] == ["from"]
    assert [e.side for a in reverse_statement(own).adjustments for e in a.evidence] == ["to"]


def test_no_statement_for_a_name_that_is_not_there() -> None:
    assert statement_between(samples.clean(), "thop", "nothing") is None
    assert statement_between(samples.clean(), "thop", "thop") is None


def step(start: int, end: int, *amounts: int, left: dict[str, int] | None = None) -> Statement:
    """A statement of lines of one cause at layers a, b, ... and of the residuals in `left`."""
    lines = [Adjustment(Cause.DEAD_OP, layer, "op", "", n, ()) for layer, n in zip("abcd", amounts, strict=False)]
    residuals = [Residual(layer, n, f"{layer} is open") for layer, n in (left or {}).items()]
    return close_statement(str(start), str(end), (start, end), lines, residuals)


STEPS = st.lists(st.tuples(*[st.integers(-9, 9)] * 4), min_size=3, max_size=5)


@settings(max_examples=30)
@given(STEPS)
def test_chaining_may_begin_anywhere(parts: list[tuple[int, ...]]) -> None:
    steps, at = [], 100
    for *amounts, left in parts:
        to = at + sum(amounts) + left
        steps.append(step(at, to, *amounts, left={"d": left} if left else {}))
        at = to
    whole, halves = chain_statements(steps), chain_statements([chain_statements(steps[:2]), *steps[2:]])
    assert sums(whole) == sums(halves)
    assert len(whole.adjustments) == len(
        [key for key, amount in sums(whole).items() if amount]
    )  # no two offset each other
    assert whole.residual == halves.residual == sum(left for *_, left in parts)
    assert (whole.state is State.UNEXPLAINED) == any(left for *_, left in parts)


def test_residuals_that_cancel_are_not_an_explanation() -> None:
    made = chain_statements([step(0, 5, left={"gru": 5}), step(5, 0, left={"gru": -5})])
    assert (made.residual, made.residuals) == (0, ())
    assert (made.state, made.reason) == (State.UNEXPLAINED, "gru is open")


def test_steps_that_do_not_meet_leave_a_residual() -> None:
    made = chain_statements([step(0, 5, 5), step(7, 9, 2)])
    assert made.residuals == (Residual(UNATTRIBUTED, 2, "no layer accounts for this part"),)
    assert made.state is State.UNEXPLAINED


def test_different_work_of_the_same_amount_is_unexplained() -> None:
    made = step(100, 100, left={"d": 0})
    assert (made.state, made.residual, made.residuals, made.reason) == (State.UNEXPLAINED, 0, (), "d is open")
    assert chain_statements([made, step(100, 100)]).state is State.UNEXPLAINED
