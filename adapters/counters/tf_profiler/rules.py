"""What tf.profiler's float_operation count includes, op by op: its whole registry of 46 op types.

Sources: R = tensorflow/python/profiler/internal/flops_registry.py, NN = tensorflow/python/ops/nn_ops.py (lines of 2.21.0).
Unit FLOP: two per MAC, elementwise operations at one.  A shape that is not fully defined raises ValueError inside
TensorFlow and the op is skipped (tfprof_logger.py:98): shape-unknown.  ``N``: elements of the first input, ``O``: of the
output.
"""

from __future__ import annotations

from ....core.causes import Cause
from ....core.records import Op
from ....work import Work, prod
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


def _n(op: Op, index: int = 0) -> int:
    return size(op.inputs[index].shape)


def _o(op: Op) -> int:
    return size(op.outputs[0].shape)


@rule("Reciprocal", source="R:69", formula="N")
def _reciprocal(op: Op) -> Work:
    return Work(div=_n(op))


@rule("Square", source="R:75", formula="N")
def _square(op: Op) -> Work:
    return Work(mul=_n(op))


@rule("Rsqrt", source="R:81", formula="2N")
def _rsqrt(op: Op) -> Work:
    return Work(special=_n(op), div=_n(op))  # a square root and a division


@rule("Log", source="R:88", formula="N")
def _log(op: Op) -> Work:
    return Work(special=_n(op))


@rule("Neg", source="R:94", formula="N")
@rule("AssignSub", source="R:100", formula="N")
@rule("AssignAdd", source="R:106", formula="N")
def _add_input(op: Op) -> Work:
    return Work(add=_n(op))


@rule("L2Loss", source="R:112", formula="3N - 1")
def _l2_loss(op: Op) -> Work:
    n = _n(op)
    return Work(mul=n, add=n - 1, div=n)  # N squares, N - 1 adds, N halvings


@rule("Softmax", source="R:122", formula="5N")
def _softmax(op: Op) -> Work:
    n = _n(op)
    return Work(cmp=n, add=2 * n, special=n, div=n)  # 2N shifted logits, N exp, 2N sum and division


@rule("Add", source="R:145", formula="O")
@rule("AddV2", source="R:145", formula="O", versions=">=2.13")
@rule("Sub", source="R:152", formula="O")
def _add(op: Op) -> Work:
    return Work(add=_o(op))


@rule("Mul", source="R:158", formula="O")
def _mul(op: Op) -> Work:
    return Work(mul=_o(op))


@rule("RealDiv", source="R:164", formula="O")
def _div(op: Op) -> Work:
    return Work(div=_o(op))


@rule("Maximum", source="R:170", formula="O")
@rule("Minimum", source="R:176", formula="O")
@rule("GreaterEqual", source="R:194", formula="O")
@rule("Greater", source="R:200", formula="O")
@rule("LessEqual", source="R:206", formula="O")
@rule("Less", source="R:212", formula="O")
@rule("Equal", source="R:218", formula="O")
@rule("NotEqual", source="R:224", formula="O")
def _compare(op: Op) -> Work:
    return Work(cmp=_o(op))


@rule("Pow", source="R:182", formula="O")
def _pow(op: Op) -> Work:
    return Work(special=_o(op))


@rule("RsqrtGrad", source="R:188", formula="4 O")
def _rsqrt_grad(op: Op) -> Work:
    return Work(mul=4 * _o(op))


@rule("SquaredDifference", source="R:230", formula="2 O")
def _squared_difference(op: Op) -> Work:
    return Work(add=_o(op), mul=_o(op))


@rule("Mean", source="R:251", formula="N + O (1 - 1)")
def _mean(op: Op) -> Work:
    n, o = _n(op), _o(op)
    return Work(add=n - o, div=o)


@rule("Sum", source="R:258", formula="N - O")
@rule("BiasAddGrad", source="R:279", formula="N - O")
def _sum(op: Op) -> Work:
    return Work(add=_n(op) - _o(op))


@rule("ArgMax", source="R:265", formula="N - O")
@rule("ArgMin", source="R:272", formula="N - O")
def _arg(op: Op) -> Work:
    return Work(cmp=_n(op) - _o(op))


def _nhwc(op: Op) -> None:
    """R:293: any other data format raises ValueError, which the profiler swallows as if a shape were missing."""
    layout = op.attrs.get("data_format", "NHWC")
    if layout != "NHWC":
        raise NotCounted(Cause.OP_NOT_COUNTED, f"{op.op} is counted in NHWC only, this one is {layout}")


@rule("AvgPool", source="R:323", formula="prod(ksize) O, NHWC only")
def _avg_pool(op: Op) -> Work:
    _nhwc(op)
    o, kernel = _o(op), prod(op.attrs["ksize"])
    return Work(add=o * (kernel - 1), div=o)


@rule("MaxPool", source="R:329", formula="prod(ksize) O, NHWC only")
def _max_pool(op: Op) -> Work:
    _nhwc(op)
    return Work(cmp=prod(op.attrs["ksize"]) * _o(op))


@rule("AvgPoolGrad", source="R:335", formula="2 prod(ksize) numel(grad), NHWC only")
def _avg_pool_grad(op: Op) -> Work:
    _nhwc(op)
    taps = prod(op.attrs["ksize"]) * _n(op, 1)
    return Work(mul=taps, add=taps)


@rule("MaxPoolGrad", source="R:352", formula="(prod(ksize) + 1) numel(orig_output), NHWC only")
def _max_pool_grad(op: Op) -> Work:
    _nhwc(op)
    outputs = _n(op, 1)
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
    return Work(add=_n(op) * (addends - 1))


@rule("MatMul", source="R:449", formula="2 k O, k from the first operand")
def _mat_mul(op: Op) -> Work:
    a = dims(op.inputs[0].shape)
    return Work(mac=a[0 if op.attrs.get("transpose_a") else 1] * _o(op))


@rule("BatchMatMul", source="R:465", formula="2 k O, k = a.shape[-1]: no adj_x", versions=">=1.15")
@rule("BatchMatMulV2", source="R:465", formula="2 k O, k = a.shape[-1]: no adj_x", versions=">=2.1")
@rule("BatchMatMulV3", source="R:465", formula="2 k O, k = a.shape[-1]: no adj_x", versions=">=2.6")
def _batch_mat_mul(op: Op) -> Work:
    return Work(mac=dims(op.inputs[0].shape)[-1] * _o(op))


@rule("Conv2D", source="NN:5258", formula="2 O kh kw filter_in")
@rule("Conv3D", source="NN:5239", formula="2 O kt kh kw filter_in", versions=">=1.14")
def _conv(op: Op) -> Work:
    dims(op.inputs[0].shape)
    return Work(mac=_o(op) * prod(dims(op.inputs[1].shape)[:-1]))


@rule("DepthwiseConv2dNative", source="NN:5277", formula="2 O kh kw")
@rule("Dilation2D", source="NN:6389", formula="2 O kh kw")
def _depthwise(op: Op) -> Work:
    dims(op.inputs[0].shape)
    return Work(mac=_o(op) * prod(dims(op.inputs[1].shape)[:2]))


@rule("BiasAdd", source="NN:5293", formula="N")
def _bias_add(op: Op) -> Work:
    return Work(add=_n(op))
