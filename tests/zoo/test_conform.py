"""The conformance kit where a case's model cannot be made."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from reconcile.core.results import State
from reconcile.engine.reconcile import Missing
from reconcile.zoo.conform import Case, _checks, checks

NO_LAYER = "AttributeError: module 'keras.layers' has no attribute 'RMSNormalization'"


def missing(name: str, reason: str) -> Missing:
    return Missing(name, "tf", State.FAILED, reason, "FLOP", "graph")


@pytest.mark.parametrize(
    ("elsewhere", "traced", "counted", "marks"),
    [
        (True, NO_LAYER, NO_LAYER, (False, True)),  # the environment's Keras has no such layer: nothing is wrong
        (False, NO_LAYER, NO_LAYER, (True, False)),  # here, every model of the zoo can be made
        (True, NO_LAYER, "KeyError: 3", (True, False)),  # the counter fails in its own way
    ],
)
def test_a_model_that_another_environment_cannot_make_is_skipped(
    elsewhere: bool, traced: str, counted: str, marks: tuple[bool, bool]
) -> None:
    collected = SimpleNamespace(ledgers=[missing("mine", counted)], traces=[missing("trace@tf", traced)])
    (check,) = _checks("family_norm", collected, elsewhere)  # type: ignore[arg-type]
    assert (bool(check.problem), bool(check.skipped)) == marks
    assert NO_LAYER in check.problem + check.skipped


def test_checks_pass_it_on() -> None:
    collected = SimpleNamespace(ledgers=[missing("thop", NO_LAYER)], traces=[missing("trace@tf", NO_LAYER)])
    case = Case("family_norm", (), "forward")
    found = [
        check.skipped != ""
        for elsewhere in (True, False)
        for _, done in checks("thop", [case], lambda request: collected, elsewhere)  # type: ignore[arg-type,return-value]
        for check in done
    ]
    assert found == [True, False]
