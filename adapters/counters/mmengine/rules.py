"""Rules of mmengine's FlopAnalyzer: those of fvcore, except for a product with a vector. Unit MAC, any other operation at 1.

mmengine copied its handles from fvcore and changed one of them. J = mmengine/analysis/jit_handles.py, C =
mmengine/analysis/complexity_analysis.py; lines of 0.10.7. Its list of ignored operators is fvcore's.

Besides the rules (``BOOK``), the module exports ``bridge``, which makes the items between the counter's ledger and the trace.
"""

from __future__ import annotations

from functools import partial

from ....core.records import Op
from ....work import Work
from ..fvcore.rules import BOOK as FVCORE
from ..fvcore.rules import IGNORED
from ..op_bridge import bridge_ops
from ..rulebook import RuleBook, dims, size
from . import COUNTERS

BOOK = RuleBook(
    COUNTERS[0].family,
    COUNTERS[0].versions_key,
    {"J": "mmengine/analysis/jit_handles.py", "C": "mmengine/analysis/complexity_analysis.py"},
)

FVCORE_VERSION = {"fvcore": "0.1.5.post20221221"}
SAME_AS_FVCORE = {
    "aten.addmm": "J:83",
    "aten.linear": "J:98",
    "aten.bmm": "J:110",
    "aten._convolution": "J:122",
    "aten.einsum": "J:175",
    "aten.batch_norm": "J:251",
    "aten.group_norm": "J:231",
    "aten.layer_norm": "J:231",
    "aten.instance_norm": "J:231",
    "aten.upsample_nearest2d": "C:34",
    "aten.upsample_bilinear2d": "C:35",
    "aten.adaptive_avg_pool2d": "C:36",
    "aten.grid_sampler": "C:37",
}
"""Operators whose handle does what fvcore's does, and its line."""

for _op, _source in SAME_AS_FVCORE.items():
    _rule = FVCORE.find(_op, FVCORE_VERSION)
    if _rule is None:
        raise LookupError(f"fvcore has no rule for {_op}")
    BOOK.rule(_op, source=_source, formula=_rule.formula)(_rule.compute)


@BOOK.rule(
    "aten.matmul",
    "aten.mm",
    source="J:216",
    formula="N(a) b[-1], N(a) if b is a vector: batch dimensions of b alone are missed",
)
def _matmul(op: Op) -> Work:
    b = dims(op.inputs[-1].shape)
    return Work(mac=size(op.inputs[0].shape) * (b[-1] if len(b) > 1 else 1))


def _why_not(op: Op) -> str:
    ignored = op.op.partition(".")[2] in IGNORED
    return f"mmengine {'ignores' if ignored else 'does not support'} {op.op}"


bridge = partial(bridge_ops, book=BOOK, why_not=_why_not, of_graph=True)
