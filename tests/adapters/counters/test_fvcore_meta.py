"""fvcore counts on meta what it counts on the CPU, convolutions as well; where PyTorch does not let it, one sentence says so."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
import torch

import reconcile
from reconcile.core.causes import State
from tests.adapters.counters.small_nets import Does

nn = torch.nn


def sized() -> Does:
    """It computes with the sizes of what a convolution gives."""
    return Does(
        lambda m, x: m.out((y := m.conv(x)).reshape(y.shape[0], -1, y.shape[3])),
        conv=nn.Conv2d(3, 4, 3),
        out=nn.Linear(6, 2),
    )


NETS = {
    "Conv1d, padded": (lambda: nn.Conv1d(3, 4, 3, padding=1), (1, 3, 8), 4 * 8 * 3 * 3),
    "groups, not batched": (lambda: nn.Conv2d(4, 4, 3, groups=2), (4, 8, 8), 4 * 6 * 6 * 2 * 9),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(3, 4, 3, stride=2), (1, 3, 8, 8), 4 * 8 * 8 * 3 * 9),
    "sizes": (sized, (2, 3, 8, 8), 2 * 4 * 6 * 6 * 3 * 9 + 2 * 4 * 6 * 6 * 2),
}


@pytest.mark.parametrize("name", NETS)
def test_a_convolution_on_meta_is_counted_as_on_the_cpu(name: str) -> None:
    make, shape, macs = NETS[name]
    before = torch._C._dispatch_dump("aten::convolution")
    ledgers = {}
    for device in ("cpu", "meta"):
        x = torch.empty(shape, device=device)
        result = reconcile.run(torch=nn.Sequential(make()).to(device), inputs=x, counters=("fvcore",)).result
        (ledgers[device],) = result.ledgers
    assert {device: ledger.total for device, ledger in ledgers.items()} == {"cpu": macs, "meta": macs}
    assert {ledger.state for ledger in ledgers.values()} <= {State.EQUAL, State.EXPLAINED}
    assert torch._C._dispatch_dump("aten::convolution") == before


def test_where_pytorch_cannot_trace_it_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from reconcile.adapters.pytorch.tracing import meta_kernels

    monkeypatch.setattr(meta_kernels, "traceable", nullcontext)
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(144, 5)).to("meta")
    macs = 4 * 6 * 6 * 3 * 9 + 144 * 5
    run = reconcile.run(torch=net, inputs=torch.empty(1, 3, 8, 8, device="meta"), counters=("fvcore", "flop_counter"))
    ledgers = {ledger.counter: ledger for ledger in run.result.ledgers}
    assert ledgers["flop_counter"].total == 2 * macs
    assert ledgers["fvcore"].state is State.NOT_COMPARABLE
    assert "cannot trace a convolution on meta" in ledgers["fvcore"].reason
