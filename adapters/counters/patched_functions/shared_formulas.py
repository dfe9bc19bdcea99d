"""Table of the functions and classes that DeepSpeed's FLOPs profiler and calflops count, each with its formula (rules.py).

Each counter has two numbers: FLOPs, and MACs, which some formulas leave out. A record says which of them it is for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ....core.causes import Cause
from ....core.records import Op
from ....work import Work
from ..rule_parts import AXES, CELLS, LAYERS, functional, per_input
from ..rulebook import Compute, NotCounted, RuleBook
from .rules import addmm, cell, convolution, count_nothing, einsum, linear, matmul, norm, of_torch, recurrent

MACS = "macs"


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula and the functions or classes for which it is registered. ``macs`` says whether it returns any MACs."""

    ops: tuple[str, ...]
    compute: Compute
    text: str
    macs: bool = False
    versions: str = ""


def register_formulas(book: RuleBook, formulas: Mapping[str, Formula], lines: Mapping[str, str]) -> None:
    """Register each formula with its source."""
    for name, formula in formulas.items():
        book.rule(*formula.ops, source=lines[name], formula=formula.text, versions=formula.versions)(
            _of_number(formula)
        )


def _of_number(formula: Formula) -> Compute:
    def compute(op: Op) -> Work:
        if op.attrs["number"] != MACS:
            return formula.compute(op)
        if not formula.macs:
            raise NotCounted(Cause.OP_NOT_COUNTED, f"its formula for {op.op} returns no MACs")
        return Work(mac=formula.compute(op).mac)

    return compute


_RNN = "2 numel(w_ih) + 2 numel(w_hh) - 2 gates + RNN H, GRU 7 H, LSTM 10 H + both biases"
_POOLS = [f"{kind}{axes}d" for kind in ("{}_pool", "adaptive_{}_pool") for axes in AXES]

SHARED: dict[str, Formula] = {
    "linear": Formula(functional("linear"), linear, "2 numel(x) out, no bias", macs=True),
    "conv": Formula(
        functional(*(f"conv{axes}d" for axes in AXES)),
        convolution,
        '2 B prod(output) prod(kernel) Cin (Cout // groups) + Cout B prod(output) if bias; "same" pads both sides alike',
        macs=True,
    ),
    "relu": Formula(functional("relu"), per_input(cmp=1), "N"),
    "relu6": Formula(functional("relu6"), per_input(cmp=1), "N"),
    "prelu": Formula(functional("prelu"), per_input(mul=1), "N"),
    "leaky_relu": Formula(functional("leaky_relu"), per_input(mul=1), "N"),
    "elu": Formula(functional("elu"), per_input(special=1), "N"),
    "silu": Formula(functional("silu"), per_input(special=1), "N"),
    "gelu": Formula(functional("gelu"), per_input(special=1), "N"),
    "softmax": Formula(functional("softmax"), per_input(special=1), "N"),
    "avg_pool": Formula(functional(*(name.format("avg") for name in _POOLS)), per_input(add=1), "N of the input"),
    "max_pool": Formula(functional(*(name.format("max") for name in _POOLS)), per_input(cmp=1), "N of the input"),
    "batch_norm": Formula(functional("batch_norm"), norm(Work(mul=1), Work(mul=1, add=1)), "2 N; N without weight"),
    "norm": Formula(
        functional("layer_norm", "group_norm", "instance_norm"),
        norm(Work(mul=2, add=2), Work(mul=2, add=3)),
        "5 N; 4 N without weight",
    ),
    "embedding": Formula(functional("embedding"), count_nothing, "0"),
    "matmul": Formula(of_torch("matmul"), matmul, "2 numel(x) other.shape[-1]", macs=True),
    "addmm": Formula(
        (*of_torch("addmm"), "torch.baddbmm"), addmm, "2 numel(mat1) mat2.shape[-1] + numel(input)", macs=True
    ),
    "einsum": Formula(
        ("torch.einsum",), einsum, "numpy.einsum_path's optimized count, of which four digits are printed"
    ),
    "recurrent": Formula(
        LAYERS,
        recurrent,
        f"x.shape[0] x.shape[1], twice if bidirectional, times for each layer: {_RNN}",
    ),
    "cell": Formula(CELLS, cell, f"x.shape[0] times {_RNN}"),
}
"""The formulas that both have, by the name under which each cites them."""

TRANSPOSED = functional(*(f"conv_transpose{axes}d" for axes in AXES))
RESIZING = functional("interpolate", "upsample")
TWICE_GROUPED = (
    "2 B prod(input) prod(kernel) Cin (weight.shape[1] // groups) + weight.shape[1] B prod(a convolution's output)"
)
FROM_THE_LEFT = (
    "elements of both together, their dimensions compared from the first on; of the one tensor; 1 of two numbers"
)

CALLED = {
    "linear": "torch.nn.functional.linear",
    "addmm": "torch.addmm",
    "mm": "torch.matmul",
    "bmm": "torch.matmul",
    "baddbmm": "torch.baddbmm",
    "mul": "torch.mul",
    "add": "torch.add",
    "relu": "torch.nn.functional.relu",
    "_softmax": "torch.nn.functional.softmax",
    "convolution": "the convolutions of torch.nn.functional",
    "native_layer_norm": "torch.nn.functional.layer_norm",
}
"""The function that is patched, by the op that it calls."""


def why_not(name: str, op: Op) -> tuple[Cause, str]:
    """Why the counter of this name does not see an op that ran outside the functions that it patches."""
    patched = CALLED.get(op.op.removeprefix("aten."))
    if patched is None:
        return Cause.OP_NOT_COUNTED, f"{name} patches no function for {op.op}"
    return (
        Cause.CALL_NOT_SEEN,
        f"{op.op} was called, as by an operator, without {patched}, which {name} patches",
    )
