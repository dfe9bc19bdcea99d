"""Rules of paddle.flops: multiply-adds of layers, with the biases of convolutions; 0, 1, 2 or a window an element elsewhere.

D = paddle/hapi/dynamic_flops.py, lines of 3.3.1.  It goes by exact types of leaf layers (D:249, D:260).
``N``: elements of the first input, ``O``: of the output.
"""

from __future__ import annotations

from ....core.causes import Cause
from ....core.records import Op
from ....work import Work, prod
from ..rule_parts import elements_out, per_input, per_output, shape_in, shape_out
from ..rulebook import Compute, NotCounted, RuleBook
from . import COUNTERS

NN = "paddle.nn."
BOOK = RuleBook(COUNTERS[0].family, COUNTERS[0].versions_key, {"D": "paddle/hapi/dynamic_flops.py"})


def _rule(*names: str, source: str, formula: str, compute: Compute) -> None:
    BOOK.rule(*(NN + name for name in names), source=source, formula=formula)(compute)


def _convolution(op: Op) -> Work:
    """Its channels by group are a quotient of floats; X2Paddle writes convolutions whose groups divide them."""
    terms = shape_in(op)[1] // op.attrs["groups"] * prod(op.attrs["weight"][2:])
    return Work(mac=terms, add=1 if op.given("bias") else 0) * elements_out(op)


def _linear(op: Op) -> Work:
    return Work(mac=op.attrs["weight"][0]) * elements_out(op)


def _adaptive(op: Op) -> Work:
    window = prod(tuple(i // o for i, o in zip(shape_in(op)[2:], shape_out(op)[2:], strict=True)))
    return Work(add=window, div=1) * elements_out(op)


def _count_nothing(op: Op) -> Work:
    raise NotCounted(Cause.OP_NOT_COUNTED, f"paddle.flops counts 0 for a layer {op.op}")


_rule(
    "Conv1D", "Conv2D", "Conv3D",
    source="D:146", formula="O (N_channels / groups prod(kernel) + 1 with a bias)", compute=_convolution,
)  # fmt: skip
_rule(
    "Conv1DTranspose",
    "Conv2DTranspose",
    "Conv3DTranspose",
    source="D:146",
    formula="O (N_channels / groups prod(kernel) + 1 with a bias), as if it were a convolution",
    compute=_convolution,
)
_rule("BatchNorm", "BatchNorm2D", source="D:162", formula="2 N", compute=per_input(mul=1, add=1))
_rule("LeakyReLU", source="D:156", formula="N", compute=per_input(cmp=1))
_rule("Linear", source="D:170", formula="in_features O, without the bias", compute=_linear)
_rule("AvgPool1D", "AvgPool2D", "AvgPool3D", source="D:177", formula="O", compute=per_output(div=1))
_rule(
    "AdaptiveAvgPool1D", "AdaptiveAvgPool2D", "AdaptiveAvgPool3D",
    source="D:185", formula="(prod(size of the input // size of the output) + 1) O", compute=_adaptive,
)  # fmt: skip
_rule("ReLU", "ReLU6", "Dropout", source="D:195", formula="0", compute=_count_nothing)
