"""Groupings and verdicts that the other views share."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconcile.core.causes import Cause, State
from reconcile.core.results import Statement
from reconcile.engine.answer import Answer
from reconcile.engine.breakdown import blocks
from reconcile.engine.verdict import counters_of
from reconcile.report import view
from tests.report import samples


def frozen_with(*amounts: tuple[str, str, Cause, int]) -> Answer:
    """A run whose frozen counter is off by these (layer, op, cause, amount) and nothing else."""
    result = samples.clean()
    lines = tuple(samples.line(cause, layer, samples.FROZEN, n, op) for layer, op, cause, n in amounts)
    start = samples.WORK - sum(n for *_, n in amounts)
    own = samples.statement(samples.FROZEN, samples.TF, start, samples.WORK, *lines)
    return replace(result, statements=(own,))


DEAD, OUT = Cause.DEAD_OP, Cause.OUTSIDE_CONVENTION


def test_lines_of_one_cause_and_layer_are_one_part_of_all_ops() -> None:
    result = frozen_with(("loop", "Mul", DEAD, -3), ("dense", "Add", OUT, -7), ("loop", "Add", DEAD, -4))
    dead, outside = blocks(result.statements[0])
    assert (dead.cause, dead.amount, outside.amount) == ("dead-op", -7, -7)
    assert [(p.layer, p.amount, list(p.ops)) for p in dead.parts] == [("loop", -7, ["Mul", "Add"])]


def test_causes_stand_in_booking_order_and_layers_in_the_models() -> None:
    result = frozen_with(("loop", "Add", OUT, -1), ("dense", "Add", OUT, -2), ("loop", "Mul", DEAD, -3))
    found = blocks(result.statements[0], ["dense", "loop"])
    assert [b.cause for b in found] == ["dead-op", "outside-convention"]
    assert [p.layer for p in found[1].parts] == ["dense", "loop"]


def test_the_largest_cause_is_the_largest_either_way() -> None:
    result = frozen_with(("loop", "Mul", DEAD, -30), ("dense", "Add", OUT, 20))
    verdict = counters_of(result)[0]
    assert verdict.largest == ("dead-op", -30)
    assert view.describe_closing(verdict).startswith(
        "2.7 % above the work that ran; to add: dead-op -30, outside-convention +20."
    )


def test_a_short_sentence_names_the_ops_without_a_formula() -> None:
    """The statement of a large model leaves names of ops out, and which op it was is what a reader asks."""
    ops = [("loop", f"aten.op{index}", Cause.OP_NOT_COUNTED, 5) for index in range(5)]
    result = frozen_with(("dense", "Add", DEAD, -3), *ops)
    said = view.describe_closing(counters_of(result)[0], brief=True)
    assert said.endswith("Not counted: aten.op0, aten.op1, aten.op2 and 2 more.")
    assert "Not counted" not in view.describe_closing(
        counters_of(frozen_with(("dense", "Add", DEAD, -3)))[0], brief=True
    )


def test_a_residual_can_be_the_largest() -> None:
    result = samples.unexplained()
    (thop,) = [v for v in counters_of(result) if v.ledger.counter == "thop"]
    assert thop.state is State.UNEXPLAINED
    assert "-10 FLOP remain unexplained." in view.describe_closing(thop)


@pytest.mark.parametrize(
    ("keep", "ends"),
    [
        (None, (samples.FROZEN, "thop")),
        ({"thop", "fvcore"}, ("thop", samples.TORCH)),
        ({samples.FROZEN}, (samples.FROZEN, samples.TF)),
        ({samples.FUNCTION, samples.FROZEN}, (samples.FROZEN, samples.TF)),
        (set(), (samples.TF, samples.TORCH)),
    ],
)
def test_the_statement_shown_unless_told_otherwise(keep: set[str] | None, ends: tuple[str, str]) -> None:
    result = samples.clean()
    if keep is not None:
        there = keep | {samples.TF, samples.TORCH}
        result = replace(
            result,
            ledgers=tuple(x for x in result.ledgers if x.counter in keep),
            statements=tuple(s for s in result.statements if s.from_ in there and s.to in there),
        )
    shown = view.default_statement(result)
    assert shown is not None
    assert (shown.from_, shown.to) == ends


def test_a_statement_without_totals_is_shown_only_if_alone() -> None:
    result = samples.full()
    blank = replace(result, statements=tuple(s for s in result.statements if s.from_ == samples.FUNCTION))
    shown = view.default_statement(blank)
    assert isinstance(shown, Statement)
    assert shown.state is State.FAILED
    assert view.default_statement(samples.empty()) is None
