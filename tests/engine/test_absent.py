"""A counter that is not installed: a note where nobody asked for it, a failure where somebody did."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconcile.core.causes import State
from reconcile.core.conventions import BUILT_IN, MATMUL, Conventions
from reconcile.core.errors import EXIT_FAILED, EXIT_OK
from reconcile.core.registry import known_counters
from reconcile.engine.reconcile import Missing
from reconcile.engine.settle import Collected, settle, without_absent
from reconcile.launch.runner import absent
from reconcile.work import load
from tests.drift.takes import take


def taken(*lacking: Missing) -> Collected:
    found = take()
    return replace(found, ledgers=(*found.ledgers, *lacking))


FVCORE = absent(known_counters()["fvcore"], "in this environment", "cpu")


@pytest.mark.parametrize(
    ("asked", "code", "left"), [((), EXIT_OK, ["thop"]), (("thop", "fvcore"), EXIT_FAILED, ["thop", "fvcore"])]
)
def test_it_is_a_failure_only_if_it_was_asked_for(asked: tuple[str, ...], code: int, left: list[str]) -> None:
    load()
    answer = settle(without_absent(taken(FVCORE), asked), Conventions(MATMUL, BUILT_IN))
    assert (answer.exit_code, [x.counter for x in answer.ledgers]) == (code, left)
    assert bool([note for note in answer.traces[0].notes if "fvcore" in note]) == (not asked)


@pytest.mark.parametrize(
    "other", [replace(FVCORE, absent=""), Missing("fvcore", "torch", State.FAILED, "it crashed"), replace(FVCORE, framework="tf")]
)  # fmt: skip
def test_another_reason_stays(other: Missing) -> None:
    """A crash, a framework without what the counter needs, and a framework that is not there itself."""
    assert without_absent(taken(other), ()) == taken(other)
