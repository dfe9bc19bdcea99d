"""Bridge from the log of MKL and oneDNN to the PyTorch trace, op by op, by the sizes of products (log_bridge.py)."""

from __future__ import annotations

from collections.abc import Sequence

from ....core.causes import Cause
from ....core.records import Op, Sighting, Trace
from ..bridge import Bridge, Item, View, make_item
from . import PRODUCTS
from .gradient_lines import AGAIN, KERNEL
from .log_bridge import Logbook, bridge_log
from .log_lines import Product
from .rules import BOOK, agrees, bias_as_product, products_of, skips_masked

NO_LINE_WRITTEN = "not witnessed: MKL and oneDNN wrote no line while {op} ran, so a kernel of PyTorch's own computed it"
PACKED_KERNELS_KEEP_NO_LOG = (
    "not witnessed: MKL and oneDNN wrote no line while {op} ran, so FBGEMM or QNNPACK computed it, which keep no log: "
    "torch.backends.quantized.engine = 'onednn' does"
)
SIZES_ARE_ADDRESSES = "not witnessed: MKL wrote a line of {op}, {routine}, in which the sizes are addresses"
MASKED_BLOCKS_SKIPPED = (
    "the kernel leaves out blocks whose products a causal mask discards whole: the log has the others, and the trace takes "
    "attention whole"
)
BIAS_AS_PRODUCT = "the bias is added as a product with ones: K is 1 in its line, and the trace has sums"
NOT_LOGGED = "MKL and oneDNN write products alone"


def bridge(view: View, trace: Trace) -> Bridge:
    """Items of every op of the trace, beside the log's lines of it, and of ops that the logged run alone has."""
    return bridge_log(view, trace, LOG)


def _explain_lines(op: Op, products: Sequence[Product]) -> tuple[Cause, str] | None:
    """Why the log's lines of an op are other products than the trace has; None if no reason is known."""
    if bias_as_product(op, products):
        return Cause.FORMULA_DIFFERS, BIAS_AS_PRODUCT
    return (Cause.BLOCKS_SKIPPED, MASKED_BLOCKS_SKIPPED) if skips_masked(op, products) else None


def _why_no_line(op: Op) -> str:
    """Why the log has no line of an op."""
    return (PACKED_KERNELS_KEEP_NO_LOG if op.op.startswith("quantized.") else NO_LINE_WRITTEN).format(op=op.op)


def _list_scores(sighting: Sighting) -> list[Item]:
    """The scores that an attention kernel recomputes for their gradient, which the trace has once."""
    if sighting.op.op != KERNEL or sighting.op.attrs.get("part") != "scores":
        return []
    op = sighting.op._replace(attrs=dict(sighting.op.attrs, part=AGAIN))
    if not products_of(op):
        return []
    rule, counted, cause = BOOK.of(op, {}), BOOK.counts(op, {}), Cause.SCORES_AGAIN
    entry = sighting.entry
    return [make_item(op, rule, counted=counted, seen=op.calls, cause=cause, entry=entry, only=("mac",))]


LOG = Logbook(
    BOOK, (PRODUCTS,), products_of, agrees, _explain_lines, _why_no_line, SIZES_ARE_ADDRESSES, NOT_LOGGED, _list_scores
)
