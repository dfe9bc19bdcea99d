"""From the log of oneDNN in TensorFlow to the trace (log_bridge.py): node by node, by sizes."""

from __future__ import annotations

from collections.abc import Sequence

from ....core.causes import Cause
from ....core.records import Op, Trace
from ..bridge import Bridge, View
from ..cpu_libraries import PRODUCTS
from ..cpu_libraries.log import Product
from ..log_bridge import Logbook, hold
from .rules import BOOK, REMOVED, agrees, products_of
from .sides import UNPADDED

SILENT = "not witnessed: oneDNN wrote no line while {op} ran, so Eigen or another kernel of TensorFlow's computed it"
GONE = (
    "not witnessed: no node of {op} ran, because TensorFlow optimised it away: it folded a constant, or took the result of an "
    "equal product"
)
UNSAID = "not witnessed: oneDNN wrote a line of {op}, {routine}, without its sizes"
NOT_LOGGED = "oneDNN's log is read for products alone"


def bridge(view: View, trace: Trace) -> Bridge:
    """Items of every op that the trace or the run beside the log has."""
    return hold(view, trace, LOG)


def _unexplained(_op: Op, _products: Sequence[Product]) -> tuple[Cause, str] | None:
    """Lines of other products than the op's have no cause that is known."""
    return None


def _silent(op: Op) -> str:
    """Why an op has no line."""
    return (GONE if REMOVED in op.attrs else SILENT).format(op=op.op)


LOG = Logbook(BOOK, (PRODUCTS, REMOVED, UNPADDED), products_of, agrees, _unexplained, _silent, UNSAID, NOT_LOGGED)
