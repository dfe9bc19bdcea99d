"""Every pair on the two newest releases of PyTorch, a call and a step: each counter closes, or says why it cannot count."""

from __future__ import annotations

import pytest

from reconcile.core.causes import State
from reconcile.core.conventions import MATMUL, Conventions
from reconcile.engine.settle import settle
from reconcile.launch.environments.definitions import load
from reconcile.launch.environments.runs import collect_in
from reconcile.launch.request import PASSES, run_request
from reconcile.model_zoo.loading import zoo_names
from reconcile.products.scorecard.run import settings
from reconcile.work import load as load_work

pytestmark = [pytest.mark.heavy, pytest.mark.frameworks, pytest.mark.timeout(1800)]

NEWEST = ("2.15.0", "2.14.1")
CLOSED = {State.EQUAL, State.EXPLAINED}


@pytest.mark.parametrize("pass_", PASSES)
@pytest.mark.parametrize("model", zoo_names())
@pytest.mark.parametrize("release", NEWEST)
def test_every_counter_closes(release: str, model: str, pass_: str) -> None:
    load_work()
    overrides, device = settings(model, pass_)
    request = run_request(model=model, overrides=overrides, device=device, pass_=pass_, timeout=1800)
    result = settle(collect_in(load()[f"torch-{release}"])(request, lambda _event: None), Conventions(MATMUL))
    assert result.exit_code == 0, [(ledger.counter, ledger.state, ledger.reason) for ledger in result.ledgers]
    counted = [statement for statement in result.statements if statement.state is not State.NOT_COMPARABLE]
    assert {(statement.state in CLOSED, statement.residual) for statement in counted} == {(True, 0)}
    assert "flop_counter" in {statement.from_ for statement in counted}
    assert result.environment["torch"].startswith(release)
