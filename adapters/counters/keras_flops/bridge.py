"""Bridge from a keras-flops ledger to the TensorFlow trace: node by node, as for tf.profiler."""

from __future__ import annotations

from ....core.records import Trace
from ..bridge import Bridge, View
from ..node_bridge import bridge_nodes
from ..tf_profiler.rules import why_not
from .rules import BOOK


def bridge(view: View, trace: Trace) -> Bridge:
    """See ``bridge_nodes``."""
    return bridge_nodes(view, trace, BOOK, why_not)
