"""Rules of onnx-opcounter, operator by operator: multiply-adds of products, and 0, 1, 2 or 11 per element elsewhere.

Source: C = onnx_opcounter/onnx_opcounter.py (lines of 0.0.4).  A size that it does not know is 0 (C:66), and so is the product.
``N``: elements of the first input, ``O``: of the first output; a scalar has 1.
"""

from __future__ import annotations

from functools import partial

from ....core.causes import Cause
from ....core.records import Op
from ....work import Work, prod
from ..node_bridge import bridge_nodes
from ..rule_parts import elements_in, elements_out, per_input
from ..rulebook import Compute, NotCounted, RuleBook, dims
from . import COUNTERS

BOOK = RuleBook(COUNTERS[0].family, COUNTERS[0].versions_key, {"C": "onnx_opcounter/onnx_opcounter.py"})
COUNTED_AS_ZERO = (
    "Constant", "Reshape", "Slice", "Shape", "Gather", "ScatterND", "Tile", "Transpose", "Sign", "Squeeze", "Unsqueeze", "Split",
    "Cast",
)  # fmt: skip


def _rule(*names: str, source: str, formula: str, compute: Compute) -> None:
    BOOK.rule(*(f"onnx.{name}" for name in names), source=source, formula=formula)(compute)


def _conv(op: Op) -> Work:
    channels = dims(op.inputs[0].shape)[1]
    terms = channels // op.attrs.get("group", 1) * prod(op.attrs["kernel_shape"])
    return Work(mac=elements_out(op) * terms)


def _gemm(op: Op) -> Work:
    return Work(mac=elements_in(op) * dims(op.outputs[0].shape)[-1])


def _batch_norm(op: Op) -> Work:
    return Work(mul=1, add=1 if op.attrs["given"] == 5 else 0) * elements_out(op)


def _upsample(op: Op) -> Work:
    return Work(mul=11 * elements_out(op) if op.attrs.get("mode") == "linear" else 0)


def _count_nothing(op: Op) -> Work:
    raise NotCounted(Cause.OP_NOT_COUNTED, f"onnx-opcounter counts 0 for {op.op.rpartition('.')[2]}")


_rule("Conv", source="C:119", formula="O (N_channels // group) prod(kernel), without the bias", compute=_conv)
_rule(
    "ConvTranspose",
    source="C:119",
    formula="O (N_channels // group) prod(kernel), as if it were a convolution, without the bias",
    compute=_conv,
)
_rule("Gemm", "MatMul", source="C:131", formula="N O.shape[-1], without the bias", compute=_gemm)
_rule("BatchNormalization", source="C:134", formula="2 O", compute=_batch_norm)
_rule("Upsample", "Resize", source="C:140", formula="11 O linear, 0 nearest", compute=_upsample)
_rule("Relu", source="C:149", formula="N", compute=per_input(cmp=1))
_rule("Add", source="C:149", formula="N, of the first input, however it is broadcast", compute=per_input(add=1))
_rule(*COUNTED_AS_ZERO, source="C:152", formula="0", compute=_count_nothing)


@BOOK.pattern("any other operator", lambda op: True, source="C:192", formula="O")
def _other(op: Op) -> Work:
    return Work(add=elements_out(op))


def why_not(op: Op) -> str:
    """The reason why a node without a rule is not counted; every node has one, unless the ledger is damaged."""
    return f"onnx-opcounter has no number for {op.op}"


bridge = partial(bridge_nodes, book=BOOK, why_not=why_not, one_file=True)
