"""Sizes of batches, read where MKL's log names their addresses: closed forms, and lines that stay as they are."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import reconcile
from reconcile.adapters.counters.bridge import view
from reconcile.adapters.counters.cpu_libraries import batch_sizes as reading
from reconcile.adapters.counters.cpu_libraries.batch_sizes import with_sizes
from reconcile.adapters.counters.cpu_libraries.bridge import SIZES_ARE_ADDRESSES, bridge
from tests.adapters.counters.small_nets import called

from .witnessed import both, gaps, macs, threaded, unwitnessed

LINE = b"MKL_VERBOSE SGEMM_BATCH(T,N,0x1,0x2,0x3,0x9,0x9,0x4,0x5) 8.47us CNR:OFF"


def test_a_line_of_one_group_gets_its_sizes():
    held = {1: 30, 2: 40, 3: 50, 4: 1, 5: 6}
    assert with_sizes(LINE, held.__getitem__) == LINE + b" sizes:30,40,50,6"


@pytest.mark.parametrize("line", [b"MKL_VERBOSE SGEMM(T,N,128,8,64,0x1) 1us", b"a model that prints", b"", LINE[:40]])
def test_another_line_stays_as_it_is(line):
    assert with_sizes(line, lambda _: 1) == line


def test_sizes_of_several_groups_and_bad_addresses_are_not_told():
    def nowhere(address: int) -> int:
        raise OSError(f"no memory at {address}")

    assert with_sizes(LINE, lambda address: address) == LINE  # 4 groups
    assert with_sizes(LINE, nowhere) == LINE


@settings(max_examples=20)
@given(st.integers(1, 4), st.integers(1, 40), st.integers(1, 40), st.integers(1, 40), st.sampled_from(["", "x", "y"]))
def test_batches_have_a_log_from_a_size_on(batch, m, n, k, transposed):
    """Products of M N K below 400 are PyTorch's own; transposed ones are the same products."""
    x = torch.randn(batch, k, m).transpose(1, 2) if transposed == "x" else torch.randn(batch, m, k)
    y = torch.randn(batch, n, k).transpose(1, 2) if transposed == "y" else torch.randn(batch, k, n)
    ledger, trace = both(called(torch.bmm), x, y)
    assert gaps(ledger, trace) == []
    assert macs(trace.ops) == batch * m * n * k
    if m * n * k >= 400:
        assert (ledger.total, unwitnessed(ledger, trace)) == (batch * m * n * k, [])
    else:
        assert (ledger.total, unwitnessed(ledger, trace)) == (0, ["aten.bmm"])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("threads", [1, 2])
def test_batches_of_each_type(dtype, threads):
    with threaded(threads):
        ledger, trace = both(
            called(torch.bmm), torch.randn(6, 40, 50, dtype=dtype), torch.randn(6, 50, 30, dtype=dtype)
        )
    assert ledger.total == 6 * 40 * 50 * 30 == macs(trace.ops)
    assert (gaps(ledger, trace), unwitnessed(ledger, trace)) == ([], [])


def test_where_sizes_cannot_be_read_the_call_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reading.BatchSizeStream, "record_sizes", lambda _: nullcontext())
    ledger, trace = both(called(torch.bmm), torch.randn(6, 40, 50), torch.randn(6, 50, 30))
    assert ledger.total == 0
    assert (gaps(ledger, trace), unwitnessed(ledger, trace)) == ([], ["aten.bmm"])
    (item,) = [item for item in bridge(view(ledger), trace).items if item.ran.mac]
    assert item.formula == SIZES_ARE_ADDRESSES.format(op="aten.bmm", routine="SGEMM_BATCH")


def test_a_batch_that_is_split_is_one_op():
    """Matrices of which every second column is taken are multiplied one by one."""
    x = torch.randn(3, 40, 2 * 50)[:, :, ::2]
    sums = called(lambda x, y, z: torch.baddbmm(z, x, y) + torch.einsum("bik,bkj->bij", x, y))
    ledger, trace = both(sums, x, torch.randn(3, 50, 30), torch.randn(3, 40, 30))
    assert ledger.total == 2 * 3 * 40 * 50 * 30 == macs(trace.ops)
    assert (gaps(ledger, trace), unwitnessed(ledger, trace)) == ([], [])


def test_a_batch_of_other_sizes_is_a_residual():
    """3 x (40, 50, 30) and 6 x (20, 50, 30) are equal sums."""
    ledger, trace = both(called(torch.bmm), torch.randn(3, 40, 50), torch.randn(3, 50, 30))
    (op,) = [op for op in trace.ops if op.op == "aten.bmm"]
    other = op._replace(
        inputs=(op.inputs[0]._replace(shape=(6, 20, 50)), op.inputs[1]._replace(shape=(6, 50, 30))),
        outputs=(op.outputs[0]._replace(shape=(6, 20, 30)),),
    )
    assert macs([other]) == macs([op])
    assert gaps(ledger, trace._replace(ops=tuple(other if o is op else o for o in trace.ops))) != []
    seen = tuple(
        s._replace(op=other._replace(attrs=s.op.attrs)) if s.op.op == "aten.bmm" else s for s in ledger.sightings
    )
    assert gaps(ledger._replace(sightings=seen), trace._replace(ops=(other,)))[0].startswith("the log says other sizes")


def test_batches_of_a_step_as_it_runs():
    """Beside torch.profiler, which stands around each op as well."""
    x, y = torch.randn(6, 40, 50, requires_grad=True), torch.randn(6, 50, 30, requires_grad=True)
    with reconcile.count(counters=["torch.profiler"], witness=True) as step:
        torch.bmm(x, y).square().mean().backward()
    totals = {ledger.counter: ledger.normalised_total for ledger in step.result.ledgers}
    assert totals["cpu_libraries"] == 2 * 3 * 6 * 40 * 50 * 30
    assert step.result.exit_code == 0
