"""What torch really dispatches, as op records."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from reconcile.adapters.pytorch.tracing.call_records import record_dispatch
from reconcile.core.records import Op
from reconcile.work import ZERO, Work, work_of


class Recorder(TorchDispatchMode):
    """Keeps a record of every dispatched op."""

    def __init__(self) -> None:
        super().__init__()
        self.ops: list[Op] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        self.ops.append(record_dispatch(func, args, kwargs or {}, out, "", ""))
        return out


def record(function: Any, *args: Any, **kwargs: Any) -> list[Op]:
    """The ops dispatched by one call, without gradients."""
    with torch.no_grad(), Recorder() as recorder:
        function(*args, **kwargs)
    return recorder.ops


def work_dispatched(function: Any, *args: Any, **kwargs: Any) -> Work:
    """Sum of the work of the dispatched ops."""
    return sum((work_of(op) for op in record(function, *args, **kwargs)), ZERO)
