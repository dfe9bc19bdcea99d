"""Rules of torch_flops: K products and K - 1 additions of a dot product, biases, and some elementwise work. Unit FLOP.

E = torch_flops/flops_ops.py, lines of 0.4.1.  A node that is in none of its three tables is "not recognized", and counts 0.
``O``: elements of the result.  ``K``: terms of a dot product.  Arguments are read as it reads them: those of a convolution's
function by name only.
"""

from __future__ import annotations

from functools import partial

from ....core.causes import Cause
from ....core.records import Op
from ....work import Work, prod
from ..patched_functions.bridge import FunctionCalls, bridge_calls, of_weights_alone
from ..rule_parts import (
    AXES,
    average_pool,
    dots,
    elements_in,
    elements_out,
    flat_window,
    max_pool,
    per_input,
    per_output,
    shape_in,
    shape_out,
    shrunk_window,
)
from ..rulebook import Compute, NotCounted, RuleBook
from . import COUNTERS

BOOK = RuleBook(COUNTERS[0].family, COUNTERS[0].versions_key, {"E": "torch_flops/flops_ops.py"})
rule = BOOK.rule


def of(kind: str, *names: str) -> list[str]:
    """Names of one table: of modules, functions or methods."""
    return [f"{kind}.{name}" for name in names]


def by_axes(name: str) -> list[str]:
    """The modules of this name for one axis, two and three."""
    return of("module", *(f"{name}{axes}d" for axes in AXES))


def count_nothing(op: Op) -> Work:
    """The rule of a node that is in a table and counts 0: raises NotCounted."""
    raise NotCounted(Cause.OP_NOT_COUNTED, f"torch_flops counts 0 for {op.op}")


def per_result(**counts: int) -> Compute:
    """These operations for each element of the result, or once for a result that is a number."""
    return lambda op: Work(**counts) * (elements_out(op) if op.outputs else 1)


COUNTED_AS_ZERO = (
    *of("module", "Identity", "Dropout", "Flatten", "type_as"),
    *of("function", "getattr", "getitem", "concat", "_assert", "cat", "pad", "floordiv", "flip"),
    *of("method", "reshape", "permute", "unbind", "transpose", "repeat", "unsqueeze", "expand", "flatten", "view", "cuda"),
    *of("method", "flip", "type_as", "size", "clone", "new_empty", "normal_", "pow"),
)  # fmt: skip
rule(*COUNTED_AS_ZERO, source="E:393, E:426, E:449", formula="0")(count_nothing)
rule("module.ReLU", source="E:73", formula="O")(per_output(cmp=1))
rule("module.GELU", source="E:188", formula="O")(per_output(special=1))
rule("module.LeakyReLU", "function.leaky_relu", source="E:86, E:278", formula="4 O")(per_output(mul=4))
rule("function.mul", source="E:209", formula="O, or 1 for numbers")(per_result(mul=1))
rule("function.truediv", source="E:209", formula="O, or 1 for numbers")(per_result(div=1))
rule("function.add", "function.sub", source="E:209", formula="O, or 1 for numbers")(per_result(add=1))
rule("function.eq", source="E:209", formula="O, or 1 for numbers")(per_result(cmp=1))
rule("method.exp", source="E:352", formula="O")(per_output(special=1))
rule("method.div", source="E:352", formula="O")(per_output(div=1))


@rule("module.Linear", source="E:90", formula="(2 K - 1) O, and O with a bias")
def _linear(op: Op) -> Work:
    return dots(shape_in(op)[-1], elements_out(op), op.attrs["bias"] is not None)


@rule("function.linear", source="E:232", formula="(2 K - 1) O, and O with a bias")
def _linear_function(op: Op) -> Work:
    positional, named = op.attrs["args"], op.attrs["named"]
    bias = positional[2] if len(positional) > 2 else named.get("bias")
    return dots(shape_in(op)[-1], elements_out(op), bias is not None)


rule("function.matmul", source="E:223", formula="(2 K - 1) O")(
    lambda op: dots(shape_in(op)[-1], elements_out(op), False)
)


@rule(*by_axes("Conv"), source="E:26", formula="(2 K - 1) O, and O with a bias; K = prod(kernel) in_channels / groups")
def _convolution(op: Op) -> Work:
    terms = prod(op.attrs["kernel_size"]) * (op.attrs["in_channels"] // op.attrs["groups"])
    return dots(terms, elements_out(op), op.attrs["bias"] is not None)


@rule(
    *of("function", *(f"conv{axes}d" for axes in AXES)),
    source="E:251",
    formula="(2 K - groups) O, or 2 K O with a bias; it reads bias and groups where they are named, and takes them for None and "
    "1 where they are not",
)
def _convolution_function(op: Op) -> Work:
    named, out = op.attrs["named"], elements_out(op)
    biased = named.get("bias") is not None
    groups = 1 if named.get("groups") is None else named["groups"]
    # With a bias, 2 K is 2 K - 1 of the product and 1 of the bias.
    saved = out if biased else groups * out
    return Work(mac=prod(shape_in(op, 1)[1:]) * out, accumulators=saved, add=out if biased else 0)


rule(*by_axes("AvgPool"), source="E:37", formula="window O")(average_pool(flat_window))
rule(*by_axes("AdaptiveAvgPool"), source="E:42", formula="window O")(average_pool(shrunk_window))
rule(*by_axes("MaxPool"), source="E:50", formula="(window - 1) O")(max_pool(flat_window))
rule(*by_axes("AdaptiveMaxPool"), source="E:55", formula="(window - 1) O")(max_pool(shrunk_window))
rule(
    *of("module", "LayerNorm", "GroupNorm"),
    *by_axes("BatchNorm"),
    *by_axes("InstanceNorm"),
    source="E:170",
    formula="4 N: it takes every norm that it does not stop at to have weights",
)(per_input(add=2, mul=1, div=1))


@rule("method.sum", source="E:356", formula="N - 1, or (N / O) (O - 1) if axes of more than one element are kept")
def _sum(op: Op) -> Work:
    kept = [size for size in shape_in(op) if size != 1]
    result = [size for size in shape_out(op) if size != 1]
    if not result:
        return Work(add=elements_in(op) - 1)
    for size in result:
        kept.remove(size)
    return Work(add=prod(kept) * (prod(result) - 1))


@rule("method.softmax", source="E:373", formula="3 N - N / K")
def _softmax(op: Op) -> Work:
    elements, tail = elements_in(op), op.attrs["args"][1:]
    width = shape_in(op)[tail[0] if tail else op.attrs["named"]["dim"]]
    return Work(special=elements, add=elements // width * (width - 1), div=elements)


@rule(
    "function.interpolate",
    source="E:281",
    formula="prod(size) of one channel of one example if a size is given; else N times the scale, once for each example; 0 if "
    "that is no whole number",
)
def _interpolate(op: Op) -> Work:
    given = [*op.attrs["args"], None, None][1:3]
    size, scale = (
        op.attrs["named"].get(name) if value is None else value
        for name, value in zip(("size", "scale_factor"), given, strict=True)
    )
    if size is not None:
        return Work(mul=prod(size) if isinstance(size, list) else int(size))
    if isinstance(scale, list):
        product_ = 1
        for factor in scale:
            product_ *= factor
        return Work(mul=elements_in(op) * int(product_))
    if not isinstance(scale, int):
        raise NotCounted(
            Cause.OP_NOT_COUNTED, "its count is a float, which the total leaves out (torch_flops/flops_engine.py:466)"
        )
    return Work(mul=elements_in(op) * scale ** shape_in(op)[0])


@rule(
    "function.scaled_dot_product_attention",
    source="E:314",
    formula="both products at 2 K - 1, and for each score 1 of the scale, 3 of the softmax less 1 for each row, and 1 each of a "
    "mask and of a dropout; a causal mask saves nothing",
)
def _attention(op: Op) -> Work:
    q, k, v = (shape_in(op, at) for at in range(3))
    names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
    given = dict(op.attrs["named"], **dict(zip(names, op.attrs["args"], strict=False)))
    rows = prod(q[:-1])
    scores, out = rows * k[-2], rows * v[-1]
    masked = given.get("attn_mask") is not None or bool(given.get("is_causal"))
    return Work(
        mac=scores * (q[-1] + v[-1]),
        accumulators=scores + out,
        mul=scores + (scores if given.get("dropout_p") else 0),
        add=scores - rows + (scores if masked else 0),
        special=scores,
        div=scores,
    )


bridge = partial(bridge_calls, calls=FunctionCalls("torch_flops", BOOK, of_weights_alone))
