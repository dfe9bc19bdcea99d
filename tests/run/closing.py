"""What every run of a model that is known has to give."""

from __future__ import annotations

from reconcile.core.causes import State
from reconcile.core.conventions import BUILT_IN, Conventions
from reconcile.core.records import Ledger
from reconcile.engine.settle import Collected, settle
from reconcile.products.recompute import recompute


def reconciles(collected: Collected) -> Collected:
    """Under every convention each statement closes, and no rule is broken. An assertion fails if not; the run comes back."""
    assert [ledger for ledger in collected.ledgers if not isinstance(ledger, Ledger)] == []
    for convention in BUILT_IN.values():
        result = settle(collected, Conventions(convention))
        assert result.exit_code == 0
        assert {s.state for s in result.statements} <= {State.EQUAL, State.EXPLAINED}
        assert {s.residuals for s in result.statements} <= {()}
        assert [s.residual for s in result.statements] == [0] * len(result.statements)
        assert [led.counter for led in result.ledgers if (led.unchecked, led.mismatches) != (0, ())] == []
    return collected


def follows_from_evidence(collected: Collected) -> int:
    """Every amount is that of its evidence, which holds ops, rules and run counts, and no amount. Returns how many there are."""
    ops = {f"{t.framework}:{op.id}": op for t in collected.traces for op in t.ops}  # type: ignore[union-attr]
    assert len(ops) == sum(len(t.ops) for t in collected.traces)  # type: ignore[union-attr]  # no two share a name
    versions = {ledger.counter: ledger.versions for ledger in collected.ledgers if isinstance(ledger, Ledger)}
    checked = 0
    for convention in BUILT_IN.values():
        for statement in settle(collected, Conventions(convention)).statements:
            for line in statement.adjustments:
                assert recompute(line, ops, versions, convention) == line.amount, (statement.from_, statement.to, line)
                checked += 1
    return checked
