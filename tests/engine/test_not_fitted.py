"""An explanation cannot be fitted: what a counter reports moves the residual and nothing else."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcile.adapters.counters.bridge import View
from reconcile.core.conventions import ALL, MATMUL, Conventions
from reconcile.core.records import Ledger, Trace
from reconcile.core.results import Adjustment, Evidence
from reconcile.engine.booking import flops_per_unit
from reconcile.engine.ledger import reconcile_ledger
from reconcile.engine.settle import settle
from tests.run.closing import follows_from_evidence

pytestmark = pytest.mark.frameworks


@pytest.fixture(scope="module", params=["gru_demo", pytest.param("family_recurrent", marks=pytest.mark.slow)])
def collected(request, collecting):
    return collecting(request.param)


def _parts(collected):
    align = collected.declared_layers
    traces = {t.framework: t for t in collected.traces}
    return align, [(ledger, traces[ledger.framework]) for ledger in collected.ledgers]


def test_any_change_of_any_entry_is_residual_at_its_layer(collected):
    align, parts = _parts(collected)

    @settings(max_examples=25, deadline=None)
    @given(data=st.data(), n=st.integers(-(2**60), 2**60).filter(bool), convention=st.sampled_from([MATMUL, ALL]))
    def check(data, n, convention):
        ledger, trace = data.draw(st.sampled_from(parts))
        entry = data.draw(st.sampled_from(ledger.entries))
        before = reconcile_ledger(ledger, trace, align, convention)
        entries = tuple(e._replace(value=e.value + n) if e is entry else e for e in ledger.entries)
        after = reconcile_ledger(ledger._replace(entries=entries, total=ledger.total + n), trace, align, convention)
        assert after.adjustments == before.adjustments
        assert before.residuals == ()
        (residual,) = after.residuals
        (mismatch,) = after.ledger.mismatches
        assert mismatch.reported - mismatch.expected == n  # in the counter's own unit, at that entry
        assert (mismatch.entry, residual.amount) == (entry.id, -n * flops_per_unit(ledger.unit))
        assert residual.layer == align.layer(ledger.framework, entry.layer)

    check()


def test_a_wrong_entry_is_seen_in_every_statement_it_enters(collected):
    ledger = collected.ledgers[0]
    wrong = ledger._replace(
        entries=(ledger.entries[0]._replace(value=ledger.entries[0].value + 1), *ledger.entries[1:]),
        total=ledger.total + 1,
    )
    result = settle(dataclasses.replace(collected, ledgers=(wrong, *collected.ledgers[1:])), Conventions(MATMUL))
    assert result.exit_code == 1
    for statement in result.statements:
        assert statement.residual == (-1 if ledger.counter == statement.from_ else 0)


def test_every_amount_follows_from_its_evidence(collected):
    assert follows_from_evidence(collected) > 50


def test_evidence_has_no_room_for_an_amount():
    """No field of Evidence could hold one but the two run counts; what a bridge gets to see has no values at all."""
    numbers = [f.name for f in dataclasses.fields(Evidence) if f.type in ("int", "float")]
    assert numbers == ["seen_times", "times"]
    assert "amount" in {f.name for f in dataclasses.fields(Adjustment)}
    assert {f.name for f in dataclasses.fields(View)} == {
        "counter",
        "framework",
        "unit",
        "versions",
        "sightings",
        "notes",
    }


def test_sightings_do_not_depend_on_values(collected):
    """Every record of what was seen is made whether or not the counter reported anything for it."""
    for ledger in collected.ledgers:
        assert isinstance(ledger, Ledger)
        assert [sighting for sighting in ledger.sightings if not sighting.entry] == []
    assert [trace for trace in collected.traces if not isinstance(trace, Trace)] == []
