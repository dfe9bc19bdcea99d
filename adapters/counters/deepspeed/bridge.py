"""From a deepspeed ledger to the PyTorch trace."""

from __future__ import annotations

from ....core.records import Trace
from ..bridge import Bridge, View
from ..call_bridge import Calls, bridge_calls
from ..functional_rules import why_not
from .rules import BOOK


def bridge(view: View, trace: Trace) -> Bridge:
    """Items for every call of a patched function, and for every op outside them."""
    return bridge_calls(view, trace, Calls("deepspeed", BOOK, lambda op: why_not("deepspeed", op)))
