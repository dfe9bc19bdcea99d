"""Bridge from an onnx-tool ledger to the ONNX trace, node by node."""

from __future__ import annotations

from ....core.records import Op, Trace
from ..bridge import Bridge, View
from ..node_bridge import bridge_nodes
from .rules import BOOK


def why_not(op: Op) -> str:
    """The reason why a node without a rule is not counted."""
    return f"onnx-tool counts 0 for {op.op.rpartition('.')[2]}"


def bridge(view: View, trace: Trace) -> Bridge:
    """See ``bridge_nodes``."""
    return bridge_nodes(view, trace, BOOK, why_not, one_file=True)
