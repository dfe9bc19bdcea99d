"""Quantised layers: oneDNN writes their products, and FBGEMM writes nothing, which is named."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import nn

from reconcile.adapters.counters.bridge import view
from reconcile.adapters.counters.cpu_libraries.bridge import bridge
from tests.adapters.counters.small_nets import Does, called

from .witnessed import both, gaps, macs, threaded, unwitnessed

pytestmark = [pytest.mark.filterwarnings("ignore")]  # PyTorch's own


@contextmanager
def engine(name: str) -> Iterator[None]:
    before = torch.backends.quantized.engine
    torch.backends.quantized.engine = name
    try:
        yield
    finally:
        torch.backends.quantized.engine = before


def dynamic() -> Any:
    chain = Does(lambda m, x: m.narrow(m.wide(x).relu()), wide=nn.Linear(64, 128), narrow=nn.Linear(128, 5))
    return torch.ao.quantization.quantize_dynamic(chain, {nn.Linear}, dtype=torch.qint8), torch.randn(2, 4, 64)


def static() -> Any:
    stubs = {"give": torch.ao.quantization.QuantStub(), "take": torch.ao.quantization.DeQuantStub()}
    conv, head = nn.Conv2d(4, 8, 3, stride=2, padding=1, groups=2), nn.Linear(8 * 9, 5)
    run = lambda m, x: m.take(m.head(m.conv(m.give(x)).flatten(1)))  # noqa: E731
    net, given = Does(run, **stubs, conv=conv, head=head).eval(), torch.randn(2, 4, 6, 6)
    net.qconfig = torch.ao.quantization.default_qconfig
    prepared = torch.ao.quantization.prepare(net)
    prepared(given)
    return torch.ao.quantization.convert(prepared), given


LAYERS = {
    dynamic: {"quantized.linear_dynamic": 2 * 4 * (64 * 128 + 128 * 5)},
    static: {"quantized.conv2d": 2 * 3 * 3 * 8 * 2 * 9, "quantized.linear": 2 * 72 * 5},
}


@pytest.mark.parametrize("make", LAYERS)
@pytest.mark.parametrize("threads", [1, 2])
def test_onednn_writes_the_products_of_int8(make, threads):
    with threaded(threads), engine("onednn"):
        ledger, trace = both(*make())
    found: dict[str, int] = {}
    for entry in ledger.entries:
        found[entry.op] = found.get(entry.op, 0) + entry.value
    assert found == LAYERS[make]
    assert (gaps(ledger, trace), unwitnessed(ledger, trace)) == ([], [])
    assert ledger.total == macs(trace.ops)


@pytest.mark.parametrize("make", LAYERS)
def test_fbgemm_writes_nothing_and_is_named(make):
    with engine("fbgemm"):
        ledger, trace = both(*make())
    assert ledger.total == 0
    assert gaps(ledger, trace) == []
    assert set(unwitnessed(ledger, trace)) == set(LAYERS[make])
    reasons = [item.formula for item in bridge(view(ledger), trace).items if item.ran.mac]
    assert [reason for reason in reasons if "FBGEMM or QNNPACK computed it" not in reason] == []


def test_a_product_of_integers_has_a_line():
    left, right = (torch.randint(-5, 5, shape, dtype=torch.int8) for shape in ((32, 64), (64, 128)))
    ledger, trace = both(called(torch._int_mm), left, right)
    assert ledger.total == 32 * 64 * 128 == macs(trace.ops)
    assert (gaps(ledger, trace), unwitnessed(ledger, trace)) == ([], [])


def test_another_product_of_int8_is_a_residual():
    """The trace says a weight of other sizes with as many products."""
    with engine("onednn"):
        ledger, trace = both(*dynamic())
    ops = tuple(
        op._replace(inputs=(op.inputs[0]._replace(shape=(2, 2, 128)), op.inputs[1]._replace(shape=(128, 128))))
        if op.layer == "wide"
        else op
        for op in trace.ops
    )
    assert gaps(ledger, trace._replace(ops=ops)) != []
