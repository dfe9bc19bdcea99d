"""Rules of torchinfo: each weight and bias of a leaf module, times positions of a Conv's output, or the batch. Unit MAC.

L = torchinfo/layer_info.py, S = torchinfo/model_statistics.py; lines of 1.8.0. A module is taken by its parameters' names, by
"Conv" in the name of its class, and by the size of its output, in which the first dimension is the batch. Of a parameter with
two dimensions or more, each count is a multiply-add; of a scale (fewer, or of a norm), a product; of a bias, a sum.
"""

from __future__ import annotations

from functools import partial

from ....core.causes import Cause
from ....core.records import Op
from ....work import ZERO, Work, prod
from ..module_bridge import Hooks, bridge_modules
from ..rule_parts import shape_out
from ..rulebook import NotCounted, RuleBook

BOOK = RuleBook("torchinfo", "torchinfo", {"L": "torchinfo/layer_info.py", "S": "torchinfo/model_statistics.py"})


def _is_counted(op: Op) -> bool:
    """Whether it counts a module: one without children, with a parameter in whose name is weight or bias."""
    return bool(op.attrs["leaf"]) and any("weight" in name or "bias" in name for name, _, _ in op.attrs["parameters"])


def _is(word: str, op: Op) -> bool:
    return word in op.op.rpartition(".")[2]


@BOOK.pattern(
    "any other class with a weight or a bias",
    _is_counted,
    source="L:242, L:245, S:33",
    formula="(weight + bias) times the output's first dimension; of other names with weight or bias in them, its first two",
)
@BOOK.pattern(
    "any class with Conv in its name",
    lambda op: _is_counted(op) and _is("Conv", op),
    source="L:238, S:33",
    formula="(weight + bias) times the output's size without its second dimension",
)
def _parameters(op: Op) -> Work:
    if not op.outputs:
        raise NotCounted(Cause.SHAPE_UNKNOWN, "torchinfo knows the size of no output of this module")
    out, work = shape_out(op), ZERO
    positions = prod(out[:1] + out[2:]) if _is("Conv", op) else out[0] if out else 0
    for name, elements, rank in op.attrs["parameters"]:
        times = elements * (positions if name in ("weight", "bias") else prod(out[:2]))
        if "bias" in name:
            work = work + Work(add=times)
        elif "weight" in name:
            work = work + (Work(mul=times) if rank < 2 or _is("Norm", op) else Work(mac=times))
    return work


def why_not(module: Op) -> tuple[Cause, str]:
    """Why it counts nothing of a module that was called."""
    if not module.attrs["leaf"]:
        return Cause.CALL_NOT_SEEN, f"work of {module.op} itself: torchinfo counts modules without children only"
    names = ", ".join(name for name, _, _ in module.attrs["parameters"])
    only = f"its parameters are named {names}, without weight or bias" if names else "it has none"
    return Cause.OP_NOT_COUNTED, f"torchinfo counts the parameters of {module.op}: {only}"


bridge = partial(bridge_modules, hooks=Hooks("torchinfo", BOOK, hides=False, containers=(), why_not=why_not))
