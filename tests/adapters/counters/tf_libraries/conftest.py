"""What the log says of the networks of layers.py, each run once in workers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reconcile.core.records import Ledger, Trace
from reconcile.launch.request import RunRequest
from reconcile.launch.runner import collect

Both = tuple[Ledger, Trace]


@pytest.fixture(scope="session")
def heard() -> Callable[..., Both]:
    """``heard(factory, training="")``: the ledger of the log and the trace."""
    done: dict[tuple[str, str], Both] = {}

    def both(factory: str, training: str = "") -> Both:
        if (factory, training) not in done:
            where = f"tests.adapters.counters.tf_libraries.layers:{factory}"
            request = RunRequest(None, {}, counters=("tf_libraries",), factories={"tf": where}, training=training)
            found = collect(request)
            (trace,), (ledger,) = found.traces, found.ledgers
            assert isinstance(trace, Trace), trace
            assert isinstance(ledger, Ledger), ledger
            done[factory, training] = ledger, trace
        return done[factory, training]

    return both
