"""Rules of torchscan's two numbers: FLOPs (products at 2K - 1, biases, elementwise) and MACs (products, batch norms, pools).

F = torchscan/modules/flops.py, M = torchscan/modules/macs.py, lines of 0.2.0.  It goes by ``isinstance``, and looks at leaf
modules and at nn.MultiheadAttention.  A formula that fails is a diagnostic in its report, and counts 0.
``N``: elements of the input.  ``O``: elements of the output.  ``K``: terms of a dot product.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ....core.causes import Cause
from ....core.records import Op, Tensor
from ....work import ZERO, Work, prod
from ..module_bridge import Hooks, bridge_modules
from ..rule_parts import (
    classes,
    dots,
    elements_in,
    elements_out,
    flat_window,
    max_pool,
    per_input,
    shape_in,
    shrunk_window,
)
from ..rulebook import Compute, NotCounted, RuleBook, dims
from . import COUNTERS, HOLDS, MACS, NUMBER

BOOK = RuleBook(
    COUNTERS[0].family,
    COUNTERS[0].versions_key,
    {"F": "torchscan/modules/flops.py", "M": "torchscan/modules/macs.py"},
    inherited=True,
)
ATTENTION = classes("activation", "MultiheadAttention")


def register_rule(ops: Sequence[str], flops: Compute, macs: Compute | None, source: str, formula: str) -> None:
    """Register the rule of both numbers for these ops; without ``macs``, torchscan counts 0 MACs and warns."""

    def compute(op: Op) -> Work:
        if op.attrs.get(HOLDS) and op.op not in ATTENTION:
            raise NotCounted(Cause.OP_NOT_COUNTED, f"{op.op} holds modules, and torchscan counts those that hold none")
        if op.attrs.get(NUMBER) != MACS:
            return flops(op)
        if macs is None:
            raise NotCounted(Cause.OP_NOT_COUNTED, f"torchscan has no formula for the multiply-adds of {op.op}")
        return macs(op)

    BOOK.rule(*ops, source=source, formula=formula)(compute)


ONE = Op("", "", "", (Tensor((1,), "float32"),), (), {})
"""A call on one element."""


def count_nothing(op: Op) -> Work:
    """The rule of a module that is in its list and counts 0: raises NotCounted."""
    raise NotCounted(Cause.OP_NOT_COUNTED, f"torchscan counts 0 for {op.op}")


def _linear(op: Op) -> Work:
    out = prod(shape_in(op)[:-1]) * op.attrs["out_features"]
    return dots(op.attrs["in_features"], out, op.given("bias"))


register_rule(
    classes("linear", "Linear"),
    _linear,
    lambda op: Work(mac=op.attrs["in_features"] * elements_out(op)),
    "F:74, M:55",
    "(2 K - 1) O, and O with a bias; MACs: K O",
)


def _terms(op: Op) -> int:
    return prod(op.attrs["kernel_size"]) * (shape_in(op)[1] // op.attrs["groups"])


def _convolution(op: Op) -> Work:
    return dots(_terms(op), elements_out(op), op.given("bias"))


def _convolution_macs(op: Op) -> Work:
    return Work(mac=_terms(op) * elements_out(op))


def _padded_transposed(each: int, convolution: Compute) -> Compute:
    """The rule of a transposed convolution: that of a ``convolution``, and ``each`` operations for the padding of each axis."""
    return lambda op: convolution(op) + Work(add=each * len(op.attrs["kernel_size"]))


CONVOLUTION_FORMULA = "(2 K - 1) O, and O with a bias; MACs: K O; K = prod(kernel) channels of the input / groups"
register_rule(classes("conv", "_ConvNd"), _convolution, _convolution_macs, "F:135, M:68", CONVOLUTION_FORMULA)
register_rule(
    classes("conv", "_ConvTransposeNd"),
    _padded_transposed(8, _convolution),
    _padded_transposed(4, _convolution_macs),
    "F:128, M:61",
    f"{CONVOLUTION_FORMULA}, though each input has its dot products; and 8 (MACs: 4) for each axis",
)

register_rule(classes("linear", "Identity"), count_nothing, count_nothing, "F:32, M:33", "0")
register_rule(classes("flatten", "Flatten"), count_nothing, count_nothing, "F:32, M:33", "0")
for _name, _flops, _line in (
    ("ReLU", per_input(cmp=1), "F:90"),
    ("ELU", per_input(cmp=2, special=1, mul=1, add=2), "F:96"),
    ("LeakyReLU", per_input(cmp=2, mul=1, add=1), "F:102"),
    ("ReLU6", per_input(cmp=2), "F:108"),
    ("Tanh", per_input(special=2, mul=1, add=2, div=1), "F:114"),
    ("Sigmoid", per_input(mul=1, special=1, add=1, div=1), "F:84"),
):
    register_rule(
        classes("activation", _name), _flops, count_nothing, f"{_line}, M:33", f"{sum(_flops(ONE))} N; MACs: 0"
    )


def _dropout(op: Op) -> Work:
    return Work(special=elements_in(op)) if op.attrs["p"] > 0 else ZERO


register_rule(
    classes("dropout", "Dropout"),
    _dropout,
    count_nothing,
    "F:120, M:49",
    "N, also where it drops nothing; 0 with p = 0",
)


def _batch_norm(op: Op) -> Work:
    elements, scaled = elements_in(op), elements_in(op) if op.attrs["affine"] else 0
    per_channel = Work(add=1, special=1) * op.attrs["num_features"]
    return per_channel + Work(add=elements + scaled, div=elements, mul=scaled)


register_rule(
    classes("batchnorm", "_BatchNorm"),
    _batch_norm,
    lambda op: Work(mul=elements_in(op) * (2 if op.attrs["affine"] else 1)),
    "F:142, M:74",
    "2 N and 2 for each channel, and 2 N affine; MACs: N, and N affine",
)


def _layer_norm(op: Op) -> Work:
    elements = elements_in(op)
    rows = elements // prod(op.attrs["normalized_shape"])
    scaled, moved = (elements if op.attrs.get(name) is not None else 0 for name in ("weight", "bias"))
    return Work(add=3 * elements + rows + moved, mul=2 * elements + scaled, div=elements, special=rows)


register_rule(
    classes("normalization", "LayerNorm"),
    _layer_norm,
    None,
    "F:205",
    "6 N, 2 for each row, N with a weight and N with a bias; MACs: 0",
)


def _average_pool(window: Callable[[Op], int]) -> Compute:
    """The sum of a window, and a division for each axis."""
    return lambda op: Work(add=window(op) - 1, div=len(shape_in(op)) - 2) * elements_out(op)


for _name, _compute, _lines, _formula in (
    ("_MaxPoolNd", max_pool(flat_window), "F:169, M:101", "(window - 1) O"),
    ("_AvgPoolNd", _average_pool(flat_window), "F:178, M:110", "(window - 1 + axes) O"),
    ("_AdaptiveMaxPoolNd", max_pool(shrunk_window), "F:187, M:119", "(window - 1) O"),
    ("_AdaptiveAvgPoolNd", _average_pool(shrunk_window), "F:196, M:128", "(window - 1 + axes) O"),
):
    register_rule(classes("pooling", _name), _compute, _compute, _lines, _formula)


def _attention(op: Op) -> Work:
    """Four projections, a scale, both products, a softmax, masks, and the mean over heads where it returns weights of all."""
    q, k, v = (dims(tensor.shape) for tensor in op.inputs[:3])
    if {len(q), len(k), len(v)} != {3} or op.attrs.get("bias_k") or op.attrs["add_zero_attn"]:
        raise NotCounted(
            Cause.OP_NOT_COUNTED, "torchscan's formula for attention takes a batch of three axes, and no added key"
        )
    batch, steps = (0, 1) if op.attrs["batch_first"] else (1, 0)
    width, biased = op.attrs["embed_dim"], bool(op.attrs["in_proj_bias"])
    heads = q[batch] * op.attrs["num_heads"]
    rows, size = heads * q[steps], op.attrs["head_dim"]
    scores = rows * k[steps]
    work = ZERO
    for given in (q, k, v):
        work = work + dots(given[-1], prod(given[:-1]) * width, biased)
    work = work + dots(size, scores, False) + dots(k[steps], rows * size, False)
    work = work + Work(special=1, mul=rows * size)
    work = work + Work(add=(len(op.inputs) - 3) * scores)
    work = work + Work(special=scores, add=scores - rows, div=scores)
    mean = len(op.outputs) > 1 and len(op.outputs[1].shape or ()) == 3
    work = work + Work(add=scores if mean else 0)
    return work + dots(width, prod(q[:-1]) * width, bool(op.attrs["out_bias"]))


register_rule(
    ATTENTION,
    _attention,
    None,
    "F:212",
    "(2 K - 1) O of each of four projections and both products, their biases, and for each score 3 of a softmax less 1 for each "
    "row, 1 of each mask, 1 of a mean over heads; 1 for each element of the query; 1. MACs: 0",
)


def _why_not(module: Op) -> tuple[Cause, str]:
    if module.op.startswith("torch.nn.") and not module.attrs.get(HOLDS):
        return Cause.OP_NOT_COUNTED, f"torchscan has no formula for {module.op}, and warns"
    return Cause.CALL_NOT_SEEN, f"a functional call in {module.op}.forward: torchscan hooks modules that hold no others"


bridge = partial(bridge_modules, hooks=Hooks("torchscan", BOOK, hides=False, containers=(), why_not=_why_not))
