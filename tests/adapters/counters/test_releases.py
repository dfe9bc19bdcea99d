"""A release that came after the rules: each op that it counts otherwise is named, and none of these is said to be left out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import torch

from reconcile.core.causes import Cause, State
from reconcile.core.conventions import MATMUL, Conventions
from reconcile.core.records import Entry, Ledger
from reconcile.core.registry import known_counters
from reconcile.engine.ledger import release_age
from reconcile.engine.settle import Collected, settle
from reconcile.engine.verdict import counters_of
from reconcile.launch.in_process import collect_live
from reconcile.launch.request import RunRequest
from reconcile.report.view import describe_closing
from tests.adapters.counters.small_nets import called

nn = torch.nn

CONVOLUTION = 2 * (4 * 6 * 6) * (3 * 3 * 3)
"""FLOPs of the convolution: 4 x 6 x 6 outputs, each of 3 x 3 x 3 products."""
LINEAR = 2 * (4 * 36) * 5
ATTENTION = 2 * 2 * (2 * 6 * 6 * 8)
"""Scores and values of two heads, 6 by 6 positions, 8 wide."""


def counted(model: Any, x: Any) -> Collected:
    return collect_live({"torch": model}, (x,), RunRequest(counters=("flop_counter",)), lambda _event: None)


@pytest.fixture(scope="module")
def of_net() -> Collected:
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(4 * 36, 5))
    return counted(net.eval(), torch.zeros(1, 3, 8, 8))


def released(collected: Collected, version: str, change: Callable[[Ledger], tuple[Entry, ...]]) -> Any:
    """The result if flop_counter were of that release of PyTorch and had counted these entries."""
    ledger = collected.ledgers[0]
    assert isinstance(ledger, Ledger)
    entries = change(ledger)
    later = ledger._replace(versions={"torch": version}, entries=entries, total=sum(e.value for e in entries))
    return settle(dataclasses.replace(collected, ledgers=(later,)), Conventions(MATMUL))


def doubled(ledger: Ledger) -> tuple[Entry, ...]:
    return tuple(e._replace(value=2 * e.value) if "convolution" in e.op else e for e in ledger.entries)


def test_a_formula_that_a_later_release_doubles_is_named(of_net: Collected) -> None:
    result = released(of_net, "2.99.0", doubled)
    assert result.exit_code == 1
    assert result.ledgers[0].notes[-1] == (
        "flop_counter 2.99.0 is newer than the releases that its rules were checked on (2.1 to 2.15.0); 1 of 2 ops agree; "
        f"aten.convolution differs: expected {CONVOLUTION:,}, reported {2 * CONVOLUTION:,} FLOP"
    )


def test_a_later_release_without_a_change_reconciles_by_name(of_net: Collected) -> None:
    result = released(of_net, "2.99.0", lambda ledger: ledger.entries)
    assert (result.exit_code, result.ledgers[0].total) == (0, CONVOLUTION + LINEAR)
    assert result.ledgers[0].notes[-1].endswith("(2.1 to 2.15.0); all 2 ops agree")


def test_a_release_between_those_that_were_checked_has_no_note(of_net: Collected) -> None:
    result = released(of_net, "2.15.0+cu132", lambda ledger: ledger.entries)
    assert result.ledgers[0].notes == ()
    counter = known_counters()["flop_counter"]
    assert [release_age(counter, v)[:5] for v in ("2.0.1", "2.1", "2.15.0", "2.15.1", "")] == [
        "older", "", "", "newer", "",
    ]  # fmt: skip


def test_what_has_an_entry_is_never_booked_as_not_counted() -> None:
    """As of 2.15, where attention on the CPU has a formula, under rules of 2.13, which have none for it."""

    def learned(ledger: Ledger) -> tuple[Entry, ...]:
        (sighting,) = [s for s in ledger.sightings if "attention" in s.op.op]
        return (*ledger.entries, Entry(sighting.entry, sighting.op.layer, sighting.op.op, ATTENTION, 1))

    collected = counted(called(lambda x: nn.functional.scaled_dot_product_attention(x, x, x)), torch.zeros(1, 2, 6, 8))
    result = released(collected, "2.14.1", learned)
    (verdict,) = counters_of(result)
    assert (result.exit_code, verdict.off, verdict.state) == (1, 0, State.UNEXPLAINED)
    assert [a.cause for s in result.statements for a in s.adjustments] == []
    assert "offset each other" not in describe_closing(verdict)
    assert released(collected, "2.15.0", learned).exit_code == 0
    before = released(collected, "2.14.1", lambda ledger: ledger.entries)
    assert [(a.cause, a.amount) for s in before.statements for a in s.adjustments] == [
        (Cause.OP_NOT_COUNTED, ATTENTION)
    ]
