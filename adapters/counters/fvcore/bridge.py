"""From an fvcore ledger to the PyTorch trace."""

from __future__ import annotations

from ....core.records import Op, Trace
from ..bridge import Bridge, View
from ..op_bridge import bridge_ops
from ..rulebook import printed
from .rules import BOOK, IGNORED


def _why_not(op: Op) -> str:
    name = op.op.partition(".")[2]
    return f"fvcore ignores {op.op}" if name in IGNORED else f"fvcore does not support {printed(op)}"


def bridge(view: View, trace: Trace) -> Bridge:
    """Items for every op the counter saw, module by module."""
    return bridge_ops(view, trace, BOOK, _why_not, of_graph=True)
