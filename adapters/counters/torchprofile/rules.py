"""Rules of torchprofile: products as multiply-adds, and other work at 1, 4 or 16 an element in the same number. Unit MAC.

H = torchprofile/handlers.py, lines of 0.1.0.  An operator of its table without a handler counts 0 (H:209); one that is not in the
table counts 0 with a warning (profile.py:46).
``O``: elements of the output.
"""

from __future__ import annotations

from functools import partial

from ....core.records import Op
from ....work import ZERO, Work, prod
from ..op_bridge import bridge_ops
from ..rule_parts import elements_in, matrix_product, per_output, shape_in, shape_out
from ..rulebook import RuleBook, printed_name
from . import COUNTERS

BOOK = RuleBook(COUNTERS[0].family, COUNTERS[0].versions_key, {"H": "torchprofile/handlers.py"})
rule = BOOK.rule

COUNTED_AS_ZERO = frozenset((
    "abs", "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d", "add", "alpha_dropout", "arange", "cat",
    "chunk", "clamp", "clone", "constant_pad_nd", "contiguous", "copy", "cos", "detach", "div", "dropout", "embedding",
    "eq", "expand", "feature_dropout", "fft_fft", "flatten", "floor", "floor_divide", "gather", "ge", "gelu", "gt",
    "hardtanh", "imag", "index", "int", "le", "log2", "log_softmax", "lt", "max", "max_pool1d", "max_pool1d_with_indices",
    "max_pool2d", "max_pool2d_with_indices", "max_pool3d", "max_pool3d_with_indices", "max_unpool1d", "max_unpool2d",
    "max_unpool3d", "ne", "neg", "permute", "pow", "real", "reciprocal", "reflection_pad1d", "reflection_pad2d",
    "reflection_pad3d", "relu", "replication_pad1d", "replication_pad2d", "replication_pad3d", "reshape", "rsub", "rsqrt",
    "scalarimplicit", "select", "sigmoid", "sign", "silu", "sin", "size", "slice", "softmax", "softshrink", "split",
    "split_with_sizes", "sqrt", "squeeze", "stack", "sub", "sum", "t", "tanh", "threshold", "to", "transpose", "unflatten",
    "unfold", "unsqueeze", "upsample_nearest2d", "view", "zeros",
))  # fmt: skip
"""H:209, operators that it knows and counts as nothing; in-place forms are spelled without their underscore here."""


rule("aten.addmm", source="H:10", formula="n m p")(matrix_product(1))
rule("aten.addmv", source="H:17", formula="n m")(lambda op: Work(mac=elements_in(op, 1)))
rule("aten.bmm", source="H:23", formula="b n m p")(matrix_product())
rule("aten.baddbmm", source="H:30", formula="b n m p")(matrix_product(1))


@rule(
    "aten.linear",
    "aten.matmul",
    source="H:39",
    formula="the product's multiply-adds, with vectors and batch dimensions",
)
def _matmul(op: Op) -> Work:
    a, b = shape_in(op), shape_in(op, 1)
    if len(a) == 1 or len(b) == 1:
        return Work(mac=prod(max(a, b, key=len)))
    if len(a) == len(b) == 2:
        return Work(mac=prod(a) * (b[0] * b[1] // a[1]))
    return Work(mac=prod(shape_out(op)[:-2]) * a[-2] * prod(b[-2:]))


rule("aten.mul", source="H:73", formula="O")(per_output(mul=1))
rule("aten.leaky_relu", source="H:101", formula="O")(per_output(mul=1))
rule("aten.upsample_bilinear2d", source="H:105", formula="4 O")(per_output(mul=4))
rule(
    *(f"aten.{kind}avg_pool{axes}d" for kind in ("", "adaptive_") for axes in (1, 2, 3)),
    "aten.mean",
    source="H:97",
    formula="O, whatever the kernel",
)(per_output(add=1))


@rule(
    "aten._convolution",
    source="H:77",
    formula="O weight.shape[1] prod(kernel); O weight.shape[0] prod(kernel) if weight.shape[0] is not the output's channels, "
    "which it takes for a transposed one",
)
def _convolution(op: Op) -> Work:
    out, (first, second, *kernel) = shape_out(op), shape_in(op, 1)
    return Work(mac=prod(out) * (second if out[1] == first else first) * prod(kernel))


@rule(
    *(f"aten.{kind}_norm" for kind in ("batch", "instance", "layer", "group")),
    source="H:87",
    formula="O affine, 0 plain",
)
def _norm(op: Op) -> Work:
    return Work(mul=prod(shape_out(op))) if op.given("weight") else ZERO


@rule(
    "aten.lstm",
    source="H:109",
    formula="positions of the output's first two axes, times directions, times 4 h (inputs of the layer + h) of each layer; h is "
    "the width of the last state",
)
def _lstm(op: Op) -> Work:
    out, state = shape_out(op), op.outputs[1].shape
    assert state is not None
    hidden, width = state[-1] or 0, shape_in(op)[-1]
    directions = out[-1] // hidden
    layers = (state[0] or 0) // directions
    macs = sum(4 * hidden * ((hidden * directions if layer else width) + hidden) for layer in range(layers))
    return Work(mac=out[0] * out[1] * directions * macs)


@rule("aten.einsum", source="H:128", formula="product of the sizes of all letters; 0 with an ellipsis")
def _einsum(op: Op) -> Work:
    equation = str(op.attrs["equation"])
    if "..." in equation:
        return ZERO
    terms = (term.replace(" ", "") for term in equation.partition("->")[0].split(","))
    pairs = (
        pair
        for term, tensor in zip(terms, op.inputs, strict=True)
        for pair in zip(term, tensor.shape or (), strict=False)
    )
    sizes = {letter: size or 0 for letter, size in pairs}
    return Work(mac=prod(tuple(sizes.values())))


@rule("aten.grid_sampler", source="H:147", formula="4 O bilinear, 16 O bicubic, 0 nearest")
def _grid_sampler(op: Op) -> Work:
    return Work(mul=TAPS.get(op.attrs["interpolation_mode"], 4) * prod(shape_out(op)))


TAPS = {1: 0, 2: 16}


@rule("aten.scaled_dot_product_attention", source="H:158", formula="b h n_q n_k (d + d_v), a causal mask saves nothing")
def _attention(op: Op) -> Work:
    q, k, v = (shape_in(op, at) for at in range(3))
    return Work(mac=prod(q[:1]) * prod(q[1:-2]) * q[-2] * k[-2] * (q[-1] + v[-1]))


def _why_not(op: Op) -> str:
    if op.op.partition(".")[2].lower() in COUNTED_AS_ZERO:
        return f"torchprofile counts 0 for {op.op}"
    return f"torchprofile has no handler for {printed_name(op)}, and warns"


bridge = partial(bridge_ops, book=BOOK, why_not=_why_not, of_graph=True)
