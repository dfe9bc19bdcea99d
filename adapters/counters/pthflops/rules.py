"""Rules of pthflops: the multiply-adds of a product, a bias, and some elementwise work in the same number. Unit MAC.

P = pthflops/ops_fx.py, lines of 0.4.2.  It goes by ``isinstance`` of modules and by the names matmul, add and mul; else 0.
``N``: elements of the input.  ``O``: elements of the result.
"""

from __future__ import annotations

from functools import partial

from ....core.records import Op
from ....work import Work, prod
from ..patched_functions.bridge import FunctionCalls, bridge_calls, of_weights_alone
from ..rule_parts import average_pool, classes, elements_in, elements_out, max_pool, per_output, shape_in, shape_out
from ..rulebook import Compute, RuleBook
from . import COUNTERS

BOOK = RuleBook(COUNTERS[0].family, COUNTERS[0].versions_key, {"P": "pthflops/ops_fx.py"}, inherited=True)
rule = BOOK.rule


@rule(
    *classes("conv", "_ConvNd"),
    source="P:11",
    formula="prod(kernel) in_channels (out_channels / groups) for each position of the output, and out_channels with a bias",
)
def _convolution(op: Op) -> Work:
    out = shape_out(op)
    positions, channels = out[0] * prod(out[2:]), op.attrs["out_channels"]
    macs = prod(op.attrs["kernel_size"]) * op.attrs["in_channels"] * (channels // op.attrs["groups"])
    return Work(mac=macs * positions, add=channels * positions if op.given("bias") else 0)


rule(*classes("activation", "ReLU"), source="P:43", formula="2 O")(per_output(cmp=2))
rule(*classes("batchnorm", "_BatchNorm"), source="P:108", formula="2 O")(per_output(add=1, mul=1))


def _window(op: Op) -> int:
    kernel = op.attrs["kernel_size"]
    return prod((kernel,) * (len(shape_out(op)) - 2) if isinstance(kernel, int) else kernel)


rule(*classes("pooling", "_MaxPoolNd"), source="P:91", formula="(prod(kernel) - 1) O")(max_pool(_window))
rule(*classes("pooling", "_AvgPoolNd"), source="P:56", formula="prod(kernel) O")(average_pool(_window))
rule(
    *classes("pooling", "_AdaptiveAvgPoolNd"),
    source="P:75",
    formula="the product of the input's last two sizes for each element of the result, whatever its size",
)(average_pool(lambda op: prod(shape_in(op)[-2:])))


@rule(*classes("linear", "Linear"), source="P:120", formula="N out_features, and out_features once with a bias")
def _linear(op: Op) -> Work:
    width = shape_out(op)[-1]
    return Work(mac=elements_in(op) * width, add=width if op.given("bias") else 0)


@rule("function.matmul", source="P:120", formula="N times the last size of the result")
def _matmul(op: Op) -> Work:
    return Work(mac=elements_in(op) * shape_out(op)[-1])


def _arguments(kind: str) -> Compute:
    return lambda op: Work(**{kind: len(op.attrs["args"])}) * elements_out(op)


for _kind in ("add", "mul"):
    rule(f"function.{_kind}", source="P:136", formula="O for each positional argument")(_arguments(_kind))


bridge = partial(bridge_calls, calls=FunctionCalls("pthflops", BOOK, of_weights_alone))
