"""From an mmengine ledger to the PyTorch trace."""

from __future__ import annotations

from ....core.records import Op, Trace
from ..bridge import Bridge, View
from ..fvcore.rules import IGNORED
from ..op_bridge import bridge_ops
from .rules import BOOK


def _why_not(op: Op) -> str:
    ignored = op.op.partition(".")[2] in IGNORED
    return f"mmengine {'ignores' if ignored else 'does not support'} {op.op}"


def bridge(view: View, trace: Trace) -> Bridge:
    """Items for every op the counter saw, module by module."""
    return bridge_ops(view, trace, BOOK, _why_not)
