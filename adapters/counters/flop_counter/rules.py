"""Rules of flop_counter: matrix products, convolutions, attention and their gradients, 2 FLOPs per MAC, and what a library's
registered formula gave for its own op; nothing else.

T = torch/utils/flop_counter.py of torch 2.13.0, L = that of torch 2.15.0.  Unit FLOP.
"""

from __future__ import annotations

from functools import partial

from packaging.specifiers import SpecifierSet

from ....core.records import LENGTHS, REGISTERED, REST, Op
from ....work import UnknownWork, Work, prod
from ....work.attention_kernels import UNKNOWN_LENGTHS
from ..op_bridge import bridge_ops
from ..rule_parts import convolution_of_weight, matrix_product
from ..rulebook import Rule, RuleBook, dims, printed_name
from . import COUNTERS

FILE = "torch/utils/flop_counter.py"


def of_library(op: Op) -> Rule | None:
    """The rule of an op whose library registered a formula: the FLOPs that this formula gave for the call, as multiply-adds. A
    kernel's gradients stand in a trace in four parts, and the formula is of all four: it is the first one's."""
    flops = op.attrs.get(REGISTERED)
    if flops and REST in op.attrs:
        flops = 0
    if not isinstance(flops, int) or flops < 0 or flops % 2:
        return None
    return Rule(
        f"{COUNTERS[0].family}/{op.op}",
        op.op,
        SpecifierSet(),
        lambda op: Work(mac=flops // 2 if op.attrs.get("part") in (None, PARTS[0]) else 0),
        f"{FILE}:49",
        "the formula that the library of the op registered (register_flop_formula)",
        SpecifierSet(),
    )


BOOK = RuleBook(
    COUNTERS[0].family, COUNTERS[0].versions_key, {"T": FILE, "L": f"{FILE} (torch 2.15.0)"}, of_library=of_library
)
rule = BOOK.rule


rule("aten.mm", "aten._scaled_mm", source="T:75", formula="2 m n k")(matrix_product())
rule("aten.addmm", source="T:87", formula="2 m n k, the added term is not counted")(matrix_product(1))
rule("aten.bmm", source="T:92", formula="2 b m n k")(matrix_product())
rule("aten.baddbmm", source="T:107", formula="2 b m n k, the added term is not counted")(matrix_product(1))
rule(
    *(f"aten.{name}" for name in ("convolution", "_convolution", "cudnn_convolution")),
    *("aten._slow_conv2d_forward", "aten.convolution_overrideable"),
    source="T:131",
    formula="2 B numel(weight) prod(output positions; of the input if transposed)",
)(convolution_of_weight)


@rule(
    "aten.convolution_backward",
    source="T:180, T:272, T:281",
    formula="input: 2 B numel(weight) prod(output positions; of the input if transposed); "
    "weight: 2 B Cin Cout prod(kernel) prod(those positions), whatever the groups; bias 0",
)
def _convolution_backward(op: Op) -> Work:
    # g (B, Cout, *out), x (B, Cin, *in), weight (Cout, Cin/groups, *k), transposed (Cin, Cout/groups, *k)
    g, x, w = (dims(t.shape) for t in op.inputs[:3])
    positions = prod((x if op.attrs["transposed"] else g)[2:])
    part = op.attrs.get("part")
    wanted = [asked and part in (None, i) for i, asked in enumerate(op.attrs["output_mask"])]
    macs = x[0] * prod(w) * positions if wanted[0] else 0
    return Work(mac=macs + (x[0] * x[1] * g[1] * prod(w[2:]) * positions if wanted[1] else 0))


FORWARD_FORMULA = "2 B Hq Sq Sk (Dq + Dv), a causal mask saves nothing"
BACKWARD_FORMULA = "2 B Hq Sq Sk (3 Dq + 2 Dv): the scores again, and both gradients of both products"


@rule("aten._scaled_dot_product_flash_attention_for_cpu", source="L:897", formula=FORWARD_FORMULA, versions=">=2.15")
@rule(
    "aten._scaled_dot_product_efficient_attention",
    "aten._scaled_dot_product_flash_attention",
    "aten._scaled_dot_product_cudnn_attention",
    source="T:285",
    formula=FORWARD_FORMULA,
)
def _attention(op: Op) -> Work:
    (b, heads, queries, width), (_, _, keys, _), (_, _, _, values) = (dims(t.shape) for t in op.inputs[:3])
    return Work(mac=b * heads * queries * keys * (width + values))


@rule(
    "aten._scaled_dot_product_flash_attention_for_cpu_backward",
    source="L:901",
    formula=BACKWARD_FORMULA,
    versions=">=2.15",
)
@rule(
    "aten._scaled_dot_product_efficient_attention_backward",
    "aten._scaled_dot_product_flash_attention_backward",
    "aten._scaled_dot_product_cudnn_attention_backward",
    source="T:505, T:542",
    formula=BACKWARD_FORMULA,
)
def _attention_backward(op: Op) -> Work:
    # gradient, query (B, Hq, Sq, Dq), key (B, Hk, Sk, Dq), value (B, Hk, Sk, Dv); a trace of a step has the kernel in four parts
    (b, heads, queries, width), (_, _, keys, _), (_, _, _, values) = (dims(t.shape) for t in op.inputs[1:4])
    parts = {"scores": width + values, "value": values, "query": width, "key": width}
    part = op.attrs.get("part")
    return Work(mac=b * heads * queries * keys * (sum(parts.values()) if part is None else parts[part]))


def _literally(op: Op, first: int, transposed: bool) -> list[tuple[tuple[int, ...], ...]]:
    """Query, key and value as the counter reads them: (batch, heads, positions, width), whatever the order of the kernel."""
    given = [dims(t.shape) for t in op.inputs[first : first + 3]]
    lengths = op.attrs.get(LENGTHS)
    if lengths is not None:
        heads = [(t[-2], t[-1]) for t in given]
        rows = [(queries, keys, keys) for queries, keys in zip(*lengths, strict=True)]
        return [tuple((1, h, n, d) for (h, d), n in zip(heads, each, strict=True)) for each in rows]
    if any(len(t) != 4 for t in given):
        raise UnknownWork(f"{op.op} of {UNKNOWN_LENGTHS}")
    order = (0, 2, 1, 3) if transposed else (0, 1, 2, 3)
    return [tuple(tuple(t[i] for i in order) for t in given)]


def _packed_forward(op: Op, transposed: bool = False) -> Work:
    calls = _literally(op, 0, transposed)
    return Work(mac=sum(b * h * n * k[2] * (d + v[3]) for (b, h, n, d), k, v in calls))


def _packed_backward(op: Op, transposed: bool = False) -> Work:
    sizes = [(b * h * n * k[2], d, v[3]) for (b, h, n, d), k, v in _literally(op, 1, transposed)]
    parts = {
        part: sum(s * (d + v if part == "scores" else v if part == "value" else d) for s, d, v in sizes)
        for part in PARTS
    }
    part = op.attrs.get("part")
    return Work(mac=sum(parts.values()) if part is None else parts[part])


PARTS = ("scores", "value", "query", "key")
HEADS_FOR_POSITIONS = (
    ", of heads for positions and positions for heads where the kernel takes (batch, positions, heads, width)"
)

rule("aten._flash_attention_forward", source="T:441", formula=FORWARD_FORMULA + HEADS_FOR_POSITIONS, versions="<2.14")(
    _packed_forward
)
rule(
    "aten._flash_attention_backward", source="T:549", formula=BACKWARD_FORMULA + HEADS_FOR_POSITIONS, versions="<2.14"
)(_packed_backward)
rule("aten._efficient_attention_forward", source="T:473", formula=FORWARD_FORMULA + HEADS_FOR_POSITIONS)(
    _packed_forward
)
rule("aten._efficient_attention_backward", source="T:582", formula=BACKWARD_FORMULA + HEADS_FOR_POSITIONS)(
    _packed_backward
)


@rule("aten._flash_attention_forward", source="L:585", formula=FORWARD_FORMULA, versions=">=2.14")
def _flash_forward(op: Op) -> Work:
    return _packed_forward(op, transposed=True)


@rule("aten._flash_attention_backward", source="L:698", formula=BACKWARD_FORMULA, versions=">=2.14")
def _flash_backward(op: Op) -> Work:
    return _packed_backward(op, transposed=True)


bridge = partial(bridge_ops, book=BOOK, why_not=lambda op: f"{printed_name(op)} is not in flop_counter's registry")
