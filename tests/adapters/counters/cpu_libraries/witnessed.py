"""A network beside the log: its ledger, its trace, and what a bridge says of both."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import torch

from reconcile.adapters.counters.bridge import view
from reconcile.adapters.counters.cpu_libraries.bridge import bridge
from reconcile.adapters.counters.cpu_libraries.capture import capture
from reconcile.adapters.pytorch.trace import _record, finished
from reconcile.core.records import Ledger, Op, Trace
from reconcile.work import known_part


def model_of(net: torch.nn.Module, *inputs: torch.Tensor) -> Any:
    """What a capture and a tracer take, of a network that is made already."""
    return SimpleNamespace(device="cpu", build=lambda _: net.eval(), example=lambda _: inputs)


def both(net: torch.nn.Module, *inputs: torch.Tensor) -> tuple[Ledger, Trace]:
    """The ledger of the log, and the trace, of one call each."""
    model = model_of(net, *inputs)
    return capture("cpu_libraries", model), finished(_record(model, "cpu"), "cpu", ())


def gaps(ledger: Ledger, trace: Trace) -> list[str]:
    """Why something cannot be booked."""
    return [item.gap for item in bridge(view(ledger), trace).items if item.gap]


def unwitnessed(ledger: Ledger, trace: Trace) -> list[str]:
    """The ops whose products left no line."""
    items = bridge(view(ledger), trace).items
    return [item.op for item in items if item.cause is not None and item.ran.mac]


def macs(ops: Sequence[Op]) -> int:
    """Multiply-adds of ops by the formulas of reconcile/work."""
    return sum(known_part(op).work.mac * op.calls for op in ops)
