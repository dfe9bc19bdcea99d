"""Bridge from the log of oneDNN in TensorFlow to the trace, node by node, by the sizes of products (log_bridge.py)."""

from __future__ import annotations

from collections.abc import Sequence

from ....core.causes import Cause
from ....core.records import Op, Trace
from ...tensorflow.graphs.graph import CALLS
from ..bridge import Bridge, View
from ..cpu_libraries import PRODUCTS
from ..cpu_libraries.log_bridge import Logbook, bridge_log
from ..cpu_libraries.log_lines import Product
from .convolution_sizes import UNPADDED
from .logged_products import REMOVED, agrees, products_of, with_zeros
from .rules import BOOK

NO_LINE_WRITTEN = (
    "not witnessed: oneDNN wrote no line while {op} ran, so a kernel without a log did: one of Eigen's, or of XLA's"
)
NO_NODE_RAN = (
    "not witnessed: no node that TensorFlow ran is this {op}: it optimises a graph first, and removed it, took the result of an "
    "equal one, or made another node of it"
)
GRADIENT_OVER_ZEROS = (
    "XLA compiles this gradient of a convolution, and makes it a convolution over zeros, too: those of padding, and those "
    "between groups"
)
LINE_WITHOUT_SIZES = "not witnessed: oneDNN wrote a line of {op}, {routine}, without its sizes"
NOT_LOGGED = "oneDNN's log is read for products alone"


def bridge(view: View, trace: Trace) -> Bridge:
    """Items of every op that the trace or the run beside the log has."""
    return bridge_log(view, trace, LOG)


def _explain_lines(op: Op, products: Sequence[Product]) -> tuple[Cause, str] | None:
    """Why the lines are other products than those of the trace's op."""
    return (
        (Cause.FORMULA_DIFFERS, GRADIENT_OVER_ZEROS) if not agrees(op, products) and with_zeros(op, products) else None
    )


def _why_no_line(op: Op) -> str:
    """Why an op has no line."""
    return (NO_NODE_RAN if REMOVED in op.attrs else NO_LINE_WRITTEN).format(op=op.op)


NAMES = tuple(name for names in CALLS.values() for name in names)
"""Attributes that name functions, by numbers that differ between processes."""
LOG = Logbook(
    BOOK,
    (PRODUCTS, REMOVED, UNPADDED, *NAMES),
    products_of,
    agrees,
    _explain_lines,
    _why_no_line,
    LINE_WITHOUT_SIZES,
    NOT_LOGGED,
)
