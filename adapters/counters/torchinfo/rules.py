"""What torchinfo includes: every parameter of a module without children, times positions of the module's output. Unit MAC.

L = torchinfo/layer_info.py, S = torchinfo/model_statistics.py; lines of 1.8.0. A module is taken by its parameters' names, by
"Conv" in the name of its class, and by the size of its output, in which the first dimension is the batch. Of a parameter with
two dimensions or more, each count is a multiply-add; of a scale (fewer, or of a norm), a product; of a bias, a sum.
"""

from __future__ import annotations

from ....core.causes import Cause
from ....core.records import Op
from ....work import ZERO, Work, prod
from ..rulebook import NotCounted, RuleBook, dims
from . import COUNTERS

BOOK = RuleBook(
    COUNTERS[0].family,
    COUNTERS[0].versions_key,
    {"L": "torchinfo/layer_info.py", "S": "torchinfo/model_statistics.py"},
)


def counted(op: Op) -> bool:
    """Whether it counts a module: one without children, with a parameter in whose name is weight or bias."""
    return bool(op.attrs["leaf"]) and any("weight" in name or "bias" in name for name, _, _ in op.attrs["parameters"])


def _is_convolution(op: Op) -> bool:
    return counted(op) and "Conv" in _class(op)


def _class(op: Op) -> str:
    return op.op.rpartition(".")[2]


@BOOK.pattern(
    "any class with Conv in its name",
    _is_convolution,
    source="L:238, S:33",
    formula="(weight + bias) times the output's size without its second dimension",
)
def _convolution(op: Op) -> Work:
    out = _output(op)
    return _parameters(op, prod(out[:1] + out[2:]))


@BOOK.pattern(
    "any other class with a weight or a bias",
    counted,
    source="L:242, L:245, S:33",
    formula="(weight + bias) times the output's first dimension; of other names with weight or bias in them, its first two",
)
def _other(op: Op) -> Work:
    return _parameters(op, _output(op)[0] if _output(op) else 0)


def _output(op: Op) -> tuple[int, ...]:
    if not op.outputs:
        raise NotCounted(Cause.SHAPE_UNKNOWN, "torchinfo knows the size of no output of this module")
    return dims(op.outputs[0].shape)


def _parameters(op: Op, positions: int) -> Work:
    work, others = ZERO, prod(_output(op)[:2])
    for name, elements, rank in op.attrs["parameters"]:
        times = positions if name in ("weight", "bias") else others
        if "bias" in name:
            work = work + Work(add=elements * times)
        elif "weight" in name:
            product = rank < 2 or "Norm" in _class(op)
            work = work + (Work(mul=elements * times) if product else Work(mac=elements * times))
    return work
