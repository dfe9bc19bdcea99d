"""What fvcore cannot trace on meta has one sentence, and the other numbers stand."""

from __future__ import annotations

import pytest

import reconcile
from reconcile.core.causes import State

pytestmark = pytest.mark.frameworks


def test_a_convolution_that_cannot_be_traced_on_meta_has_one_sentence() -> None:
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Flatten(), torch.nn.Linear(144, 5)).to("meta")
    macs = 4 * 6 * 6 * 3 * 9 + 144 * 5
    found = reconcile.run(torch=net, inputs=torch.empty(1, 3, 8, 8, device="meta"), counters=("fvcore", "flop_counter"))
    ledgers = {ledger.counter: ledger for ledger in found.result.ledgers}
    assert ledgers["flop_counter"].total == 2 * macs
    fvcore = ledgers["fvcore"]
    if fvcore.state is State.NOT_COMPARABLE:  # by PyTorch; from 2.13 on
        assert "cannot trace a convolution on meta" in fvcore.reason
        assert "Traceback" not in fvcore.reason
    else:
        assert fvcore.total == macs
