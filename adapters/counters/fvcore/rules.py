"""Rules of fvcore's FlopCountAnalysis. Unit MAC ("one fused multiply-add as one flop"); any other operation is one as well.

J = fvcore/nn/jit_handles.py, F = fvcore/nn/flop_count.py, A = fvcore/nn/jit_analysis.py; lines of 0.1.5.post20221221.
"""

from __future__ import annotations

from functools import partial

from ....core.records import Op
from ....work import Work, prod
from ..op_bridge import bridge_ops
from ..rule_parts import (
    convolution_of_weight,
    elements_in,
    elements_out,
    matrix_product,
    per_input,
    per_output,
    printed_flops,
    shape_in,
)
from ..rulebook import RuleBook, dims, printed_name
from . import COUNTERS

BOOK = RuleBook(
    COUNTERS[0].family,
    COUNTERS[0].versions_key,
    {
        "J": "fvcore/nn/jit_handles.py",
        "F": "fvcore/nn/flop_count.py",
        "OLD": "fvcore/nn/jit_handles.py (0.1.5.post20211023)",
        "OLDEST": "fvcore/nn/flop_count.py (0.1.5.post20210518)",
    },
)
rule = BOOK.rule

# We read every handle of the releases since 0.1.5.post20210328: only these changed.
SINCE_MM = ">=0.1.5.post20210719"
SINCE_EVAL = ">=0.1.5.post20210604"
SINCE_TRANSPOSED = ">=0.1.5.post20220119"

IGNORED = frozenset((
    "Int", "ScalarImplicit", "__and__", "arange", "bitwise_not", "cat", "chunk", "clamp", "constant_pad_nd", "contiguous",
    "copy", "detach", "dropout", "empty", "eq", "expand", "flatten", "floor", "floor_divide", "full", "full_like", "gather",
    "ge", "gt", "index", "index_put", "masked_fill", "max", "narrow", "new_empty", "new_full", "new_zeros", "nonzero",
    "ones", "permute", "relu", "remainder", "reshape", "roll", "select", "size", "slice", "split", "split_with_sizes",
    "squeeze", "stack", "t", "to", "transpose", "type_as", "unbind", "unsqueeze", "view", "zeros", "zeros_like",
))  # fmt: skip
"""A:28, ops that fvcore holds to be no flops at all; in-place forms are spelled without their underscore here."""


rule("aten.addmm", source="J:82", formula="batch in out")(matrix_product(1))
rule("aten.linear", source="J:99", formula="N out")(lambda op: Work(mac=elements_in(op) * shape_in(op, 1)[0]))
for _op, _versions in (("aten.mm", SINCE_MM), ("aten.matmul", "")):
    _formula = "N(a) b[-1]: batch dimensions of b alone are missed"
    rule(_op, source="J:217", formula=_formula, versions=_versions)(matrix_product())
rule("aten.bmm", source="J:113", formula="n c t d")(matrix_product())
rule(
    "aten._convolution",
    source="J:127",
    formula="B numel(weight) prod(output positions; of the input if transposed)",
    versions=SINCE_TRANSPOSED,
)(convolution_of_weight)


@rule(
    "aten._convolution",
    source="OLD:122",
    formula="O numel(weight[0]), transposed or not",
    versions="<0.1.5.post20220119",
)
def _convolution_by_its_output(op: Op) -> Work:
    """The first axis of a transposed convolution's weight has the input's channels, which thus do not count."""
    return Work(mac=elements_out(op) * prod(shape_in(op, 1)[1:]))


@rule("aten.einsum", source="J:174", formula="two patterns exact; else half of numpy's optimised flop count, 4 digits")
def _einsum(op: Op) -> Work:
    equation = str(op.attrs["equation"]).replace(" ", "")
    letters = {letter: chr(97 + i) for i, letter in enumerate(dict.fromkeys(c for c in equation if c.isalpha()))}
    pattern = "".join(letters.get(c, c) for c in equation)
    shapes = [dims(t.shape) for t in op.inputs]
    if pattern == "abc,abd->acd":
        return Work(mac=prod(shapes[0]) * shapes[-1][-1])
    if pattern == "abc,adc->adb":
        return Work(mac=prod(shapes[0]) * shapes[-1][1])
    return Work(mac=printed_flops(pattern, shapes) // 2)


@rule("aten.batch_norm", source="J:251", formula="eval: 2N affine, N plain; training: 5N, 4N", versions=SINCE_EVAL)
def _batch_norm(op: Op) -> Work:
    if op.attrs.get("training"):
        return _norm(op)
    n = elements_in(op)
    return Work(mul=n, add=n if op.given("weight") else 0)


@rule("aten.batch_norm", source="OLDEST:34", formula="5N affine, 4N plain", versions="<0.1.5.post20210604")
@rule("aten.group_norm", "aten.layer_norm", "aten.instance_norm", source="J:230", formula="5N affine, 4N plain")
def _norm(op: Op) -> Work:
    n = elements_in(op)
    return Work(add=2 * n, mul=2 * n + (n if op.given("weight") else 0))


rule("aten.upsample_nearest2d", source="F:39", formula="O")(per_output(mul=1))
rule("aten.upsample_bilinear2d", "aten.grid_sampler", source="F:40", formula="4 O")(per_output(mul=4))
rule("aten.adaptive_avg_pool2d", source="F:41", formula="N")(per_input(add=1))


def _why_not(op: Op) -> str:
    name = op.op.partition(".")[2]
    return f"fvcore ignores {op.op}" if name in IGNORED else f"fvcore does not support {printed_name(op)}"


bridge = partial(bridge_ops, book=BOOK, why_not=_why_not, of_graph=True)
