"""A network beside the log: its ledger, its trace, and what a bridge says of both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from reconcile.adapters.counters.bridge import view
from reconcile.adapters.counters.cpu_libraries.bridge import bridge
from reconcile.adapters.counters.cpu_libraries.capture import capture
from reconcile.adapters.counters.cpu_libraries.rules import products_of
from reconcile.adapters.pytorch.trace import _record, finish_trace
from reconcile.adapters.pytorch.training import record
from reconcile.core.records import Ledger, Op, Trace
from reconcile.work import known_part

LOGGED = [torch.float32, torch.float64, *([torch.bfloat16] if torch.ops.mkldnn._is_mkldnn_bf16_supported() else [])]
"""The dtypes whose products the libraries multiply on this CPU."""


def need_log(*inputs: Any) -> None:
    """Skip a test whose products no library multiplies: PyTorch's own kernels write no log."""
    if (
        any(isinstance(each, torch.Tensor) and each.dtype in (torch.bfloat16, torch.int8) for each in inputs)
        and len(LOGGED) < 3
    ):
        pytest.skip(
            "oneDNN multiplies no bfloat16 and no int8 on this CPU (no AVX-512), and PyTorch's own kernels write no log"
        )


def model_of(net: torch.nn.Module, *inputs: torch.Tensor, training: str = "") -> Any:
    """What a capture and a tracer take, of a network that is made already."""
    called = {"build": lambda _: net.eval(), "example": lambda _: inputs}
    return SimpleNamespace(device="cpu", training=training, quick=False, trains_inputs=False, **called)


def both(net: torch.nn.Module, *inputs: torch.Tensor) -> tuple[Ledger, Trace]:
    """The ledger of the log, and the trace, of one call each."""
    need_log(*inputs)
    model = model_of(net, *inputs)
    return capture("cpu_libraries", model), finish_trace(_record(model, "cpu"), "cpu", ())


def trained(net: torch.nn.Module, *inputs: torch.Tensor, optimizer: str = "sgd") -> tuple[Ledger, Trace]:
    """The same of one training step each, of the same weights."""
    need_log(*inputs)
    model = model_of(net, *inputs, training=optimizer)
    model.build = lambda _: deepcopy(net)
    return capture("cpu_libraries", model), finish_trace(record(model, "cpu"), "cpu", ())


@contextmanager
def threaded(threads: int) -> Iterator[None]:
    """PyTorch computes in so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def gaps(ledger: Ledger, trace: Trace) -> list[str]:
    """Why something cannot be booked, and the entries that the rules do not add up to."""
    items = bridge(view(ledger), trace).items
    expected = Counter[str]()
    for item in items:
        expected[item.entry] += item.counted.mac * item.seen
    others = [f"{e.id} is {e.value}, not {expected[e.id]}" for e in ledger.entries if e.value != expected[e.id]]
    return [item.gap for item in items if item.gap] + others


def unwitnessed(ledger: Ledger, trace: Trace) -> list[str]:
    """The ops whose products left no line."""
    items = bridge(view(ledger), trace).items
    return [item.op for item in items if item.cause is not None and item.ran.mac]


def phases(ledger: Ledger) -> dict[str, int]:
    """Multiply-adds that the log says, by phase."""
    found = Counter[str]()
    for op in (s.op for s in ledger.sightings):
        found[op.phase] += op.calls * sum(product.macs for product in products_of(op))
    return {phase: count for phase, count in found.items() if count}


def macs(ops: Sequence[Op]) -> int:
    """Multiply-adds of ops by the formulas of reconcile/work."""
    return sum(known_part(op).work.mac * op.calls for op in ops)
