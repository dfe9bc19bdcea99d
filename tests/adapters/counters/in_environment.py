"""A counter itself, in the environment that it needs, on one of our small networks."""

from __future__ import annotations

import reconcile
from reconcile.core.results import LedgerResult, Statement
from reconcile.launch.environments.named import load
from reconcile.launch.environments.provision import ensure


def settled(environment: str, counter: str, factory: str) -> tuple[LedgerResult, Statement]:
    """What the counter reports of ``package.module:function``, and the statement that leads to what ran."""
    result = reconcile.run(torch=factory, python=str(ensure(load()[environment])), counters=(counter,)).result
    (ledger,), (statement,) = result.ledgers, result.statements
    return ledger, statement
