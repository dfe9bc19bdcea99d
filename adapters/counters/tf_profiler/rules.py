"""Rules of tf.profiler's float_operation count, op by op: its whole registry of 46 op types.

Sources: R = tensorflow/python/profiler/internal/flops_registry.py, NN = tensorflow/python/ops/nn_ops.py (lines of 2.21.0).
Unit FLOP: two per MAC, elementwise operations at one.  A shape that is not fully defined raises ValueError inside
TensorFlow and the op is skipped (tfprof_logger.py:98): shape-unknown.  ``N``: elements of the first input, ``O``: of the
output.
"""

from __future__ import annotations

from functools import partial

from ....core.causes import Cause
from ....core.records import Op
from ....work import Work, prod
from ..node_bridge import bridge_nodes
from ..rule_parts import elements_in, elements_out, per_input, per_output
from ..rulebook import NotCounted, RuleBook, dims, size
from . import COUNTERS

BOOK = RuleBook(
    COUNTERS[0].family,
    COUNTERS[0].versions_key,
    {"R": "tensorflow/python/profiler/internal/flops_registry.py", "NN": "tensorflow/python/ops/nn_ops.py"},
)
rule = BOOK.rule

# The registries of every minor release from 1.12 to 2.14, of 2.15.1 and of 2.21.0 were compared, in nn_ops.py, math_ops.py and
# flops_registry.py: those of 1.12.0, 1.13.1, 2.3.1, 2.4.4, 2.8.4, 2.10.1, 2.11.1, 2.12.1 and 2.13.1 among them.  From release
# to release, the formulas stay and ops are only added: Conv3D in 1.14.0, BatchMatMul in 1.15.0, BatchMatMulV2 in 2.1.0,
# BatchMatMulV3 in 2.6.0 and AddV2 in 2.13.0.


def _squares_halved(op: Op) -> Work:
    n = elements_in(op)
    return Work(mul=n, add=n - 1, div=n)


def _mean(op: Op) -> Work:
    n, o = elements_in(op), elements_out(op)
    return Work(add=n - o, div=o)


def _added_work(op: Op) -> Work:
    return Work(add=elements_in(op) - elements_out(op))


def _compared_work(op: Op) -> Work:
    return Work(cmp=elements_in(op) - elements_out(op))


_SINCE = {"AddV2": ">=2.13"}
_ELEMENTWISE = (
    ("Reciprocal", "R:69", "N", per_input(div=1)),
    ("Square", "R:75", "N", per_input(mul=1)),
    ("Rsqrt", "R:81", "2N", per_input(special=1, div=1)),  # a square root and a division
    ("Log", "R:88", "N", per_input(special=1)),
    ("AssignAdd", "R:106", "N", per_input(add=1)),
    ("AssignSub", "R:100", "N", per_input(add=1)),
    ("Neg", "R:94", "N", per_input(add=1)),
    ("L2Loss", "R:112", "3N - 1", _squares_halved),
    ("Softmax", "R:122", "5N", per_input(cmp=1, add=2, special=1, div=1)),  # 2N shifted logits, N exp, 2N sum and division
    ("Sub", "R:152", "O", per_output(add=1)),
    ("AddV2", "R:145", "O", per_output(add=1)),
    ("Add", "R:145", "O", per_output(add=1)),
    ("Mul", "R:158", "O", per_output(mul=1)),
    ("RealDiv", "R:164", "O", per_output(div=1)),
    ("NotEqual", "R:224", "O", per_output(cmp=1)),
    ("Equal", "R:218", "O", per_output(cmp=1)),
    ("Less", "R:212", "O", per_output(cmp=1)),
    ("LessEqual", "R:206", "O", per_output(cmp=1)),
    ("Greater", "R:200", "O", per_output(cmp=1)),
    ("GreaterEqual", "R:194", "O", per_output(cmp=1)),
    ("Minimum", "R:176", "O", per_output(cmp=1)),
    ("Maximum", "R:170", "O", per_output(cmp=1)),
    ("Pow", "R:182", "O", per_output(special=1)),
    ("RsqrtGrad", "R:188", "4 O", per_output(mul=4)),
    ("SquaredDifference", "R:230", "2 O", per_output(add=1, mul=1)),
    ("Mean", "R:251", "N + O (1 - 1)", _mean),
    ("BiasAddGrad", "R:279", "N - O", _added_work),
    ("Sum", "R:258", "N - O", _added_work),
    ("ArgMin", "R:272", "N - O", _compared_work),
    ("ArgMax", "R:265", "N - O", _compared_work),
)  # fmt: skip
for _op, _source, _formula, _work in _ELEMENTWISE:
    rule(_op, source=_source, formula=_formula, versions=_SINCE.get(_op, ""))(_work)


def _nhwc(op: Op) -> None:
    """R:293: any other data format raises ValueError, which the profiler swallows as if a shape were missing."""
    layout = op.attrs.get("data_format", "NHWC")
    if layout != "NHWC":
        raise NotCounted(Cause.OP_NOT_COUNTED, f"{op.op} is counted in NHWC only, this one is {layout}")


@rule("AvgPool", source="R:323", formula="prod(ksize) O, NHWC only")
def _avg_pool(op: Op) -> Work:
    _nhwc(op)
    o, kernel = elements_out(op), prod(op.attrs["ksize"])
    return Work(add=o * (kernel - 1), div=o)


@rule("MaxPool", source="R:329", formula="prod(ksize) O, NHWC only")
def _max_pool(op: Op) -> Work:
    _nhwc(op)
    return Work(cmp=prod(op.attrs["ksize"]) * elements_out(op))


@rule("AvgPoolGrad", source="R:335", formula="2 prod(ksize) numel(grad), NHWC only")
def _avg_pool_grad(op: Op) -> Work:
    _nhwc(op)
    taps = prod(op.attrs["ksize"]) * size(op.inputs[1].shape)
    return Work(mul=taps, add=taps)


@rule("MaxPoolGrad", source="R:352", formula="(prod(ksize) + 1) numel(orig_output), NHWC only")
def _max_pool_grad(op: Op) -> Work:
    _nhwc(op)
    outputs = size(op.inputs[1].shape)
    return Work(cmp=prod(op.attrs["ksize"]) * outputs, add=outputs)


def _backprop(image: tuple[int, ...], kernel: tuple[int, ...], strides: list[int]) -> Work:
    """2 numel(image) numel(kernel) / (channels sh sw), a float truncated by int() (tfprof_logger.py:107)."""
    counted = int(2 * prod(image) * prod(kernel) / (image[-1] * strides[1] * strides[2]))
    return Work(mac=counted // 2, add=counted % 2)  # an odd remainder is half a MAC


@rule("Conv2DBackpropInput", source="R:380", formula="2 O numel(kernel) / (O_channels sh sw), NHWC only")
def _conv_backprop_input(op: Op) -> Work:
    _nhwc(op)
    return _backprop(dims(op.outputs[0].shape), dims(op.inputs[1].shape), op.attrs["strides"])


@rule("Conv2DBackpropFilter", source="R:412", formula="2 N numel(kernel) / (N_channels sh sw), NHWC only")
def _conv_backprop_filter(op: Op) -> Work:
    _nhwc(op)
    return _backprop(dims(op.inputs[0].shape), dims(op.outputs[0].shape), op.attrs["strides"])


@rule("AddN", source="R:439", formula="N (len(inputs) - 1), control inputs included")
def _add_n(op: Op) -> Work:
    addends = len(op.inputs) + op.attrs.get("control_inputs", 0)
    return Work(add=elements_in(op) * (addends - 1))


@rule("MatMul", source="R:449", formula="2 k O, k from the first operand")
def _mat_mul(op: Op) -> Work:
    a = dims(op.inputs[0].shape)
    return Work(mac=a[0 if op.attrs.get("transpose_a") else 1] * elements_out(op))


@rule("BatchMatMul", source="R:465", formula="2 k O, k = a.shape[-1]: no adj_x", versions=">=1.15")
@rule("BatchMatMulV2", source="R:465", formula="2 k O, k = a.shape[-1]: no adj_x", versions=">=2.1")
@rule("BatchMatMulV3", source="R:465", formula="2 k O, k = a.shape[-1]: no adj_x", versions=">=2.6")
def _batch_mat_mul(op: Op) -> Work:
    return Work(mac=dims(op.inputs[0].shape)[-1] * elements_out(op))


@rule("Conv2D", source="NN:5258", formula="2 O kh kw filter_in")
@rule("Conv3D", source="NN:5239", formula="2 O kt kh kw filter_in", versions=">=1.14")
def _conv(op: Op) -> Work:
    dims(op.inputs[0].shape)
    return Work(mac=elements_out(op) * prod(dims(op.inputs[1].shape)[:-1]))


@rule("DepthwiseConv2dNative", source="NN:5277", formula="2 O kh kw")
@rule("Dilation2D", source="NN:6389", formula="2 O kh kw")
def _depthwise(op: Op) -> Work:
    dims(op.inputs[0].shape)
    return Work(mac=elements_out(op) * prod(dims(op.inputs[1].shape)[:2]))


rule("BiasAdd", source="NN:5293", formula="N")(per_input(add=1))


def why_not(op: Op) -> str:
    """The reason why a node without a rule is not counted."""
    return f"tf.profiler has no float_operation formula registered for {op.op}"


bridge = partial(bridge_nodes, book=BOOK, why_not=why_not)
