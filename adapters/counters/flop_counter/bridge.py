"""From a flop_counter ledger to the PyTorch trace."""

from __future__ import annotations

from ....core.records import Trace
from ..bridge import Bridge, View
from ..op_bridge import bridge_ops
from ..rulebook import printed
from .rules import BOOK


def bridge(view: View, trace: Trace) -> Bridge:
    """Items for every op the counter saw, module by module."""
    return bridge_ops(view, trace, BOOK, lambda op: f"{printed(op)} is not in flop_counter's registry")
