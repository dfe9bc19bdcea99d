"""Formulas of matrix products, convolutions and recurrent layers in low precision, on scaled 8-bit and 4-bit numbers.

Multiply-adds are those of the product that they represent; the cost of the scales depends on their granularity.
"""

from __future__ import annotations

from ...core.records import PACKED, Op
from ...core.work import SINGLE_COMPONENTS, UnknownWork, Work, find, formulas, prod
from ...work.contraction import dots
from ...work.convolution import transposed_convolution
from ...work.recurrent import GATES
from ...work.shapes import n_out, shape


def _refuse_scales(op: Op, product: Work) -> Work:
    raise UnknownWork(f"what the scales of {op.op} cost is not recorded", SINGLE_COMPONENTS, product)


def _int8_linear(op: Op) -> Work:
    # the variant that writes into a given tensor has no output of its own
    (*rows, k), (n, _) = shape(op), shape(op, 1)
    return dots(prod(rows) * n, k)


def _quantized_conv(op: Op) -> Work:
    # the packed weight (Cout, Cin/groups, *kernel) is the last tensor of the record
    return _refuse_scales(op, dots(n_out(op), prod(_packed_shape(op)[1:])))


def _quantized_conv_transpose(op: Op) -> Work:
    # each number of x is scattered into the products with the weight (Cin, Cout/groups, *kernel)
    return _refuse_scales(
        op, transposed_convolution(prod(shape(op)), prod(_packed_shape(op)[1:]), n_out(op), bias=False)
    )


def _packed_shape(op: Op) -> tuple[int, ...]:
    weight = shape(op, len(op.inputs) - 1)
    if not op.attrs.get(PACKED):
        raise UnknownWork(f"the packed weight of {op.op} is not recorded")
    return weight


def _quantized_recurrent(op: Op) -> Work:
    # x (*, I) or packed rows, [batch sizes,] first state (layers * directions, B, H)
    states = [t for t in op.inputs[1:] if t.shape is None or len(t.shape) == 3]
    if not states:
        raise UnknownWork(f"the shape of the state of {op.op} is not recorded")
    units = shape(op._replace(inputs=(states[0],)))[-1]
    *rows, width = shape(op)
    directions = 2 if op.attrs.get("bidirectional") else 1
    layers = int(op.attrs["num_layers"])
    gates = GATES[op.op.rpartition("_")[2]][0] * units * directions
    work = Work()
    for layer in range(layers):
        from_below = width if layer == 0 else directions * units
        work += dots(prod(rows) * gates, from_below) + dots(prod(rows) * gates, units)
    return _refuse_scales(op, work)


def _quantized_cell(op: Op) -> Work:
    # x (B, I), h (B, H)
    (batch, width), (_, units) = shape(op), shape(op, 1)
    gates = GATES[op.op.removeprefix("quantized.quantized_").removesuffix("_cell_dynamic")][0] * units
    return _refuse_scales(op, dots(batch * gates, width) + dots(batch * gates, units))


def _scaled_grouped_mm(op: Op) -> Work:
    plain = find("aten._grouped_mm")
    assert plain is not None
    return _refuse_scales(op, plain.compute(op._replace(attrs={**op.attrs, "bias": None})))


formulas({
    "_int_mm": ("a product of integers; ATen native/LinearAlgebra.cpp", lambda op: dots(n_out(op), shape(op)[-1])),
    "_weight_int8pack_mm": (  # x (M, K), weight (N, K) of int8, scales (N,)
        "a dot product, times its row's scale: ATen native/cpu/int8mm_kernel.cpp",
        lambda op: dots(n_out(op), shape(op)[-1]) + Work(mul=n_out(op)),
    ),
    "quantized_lstm quantized_gru": (
        "the products of the layer that it stands for; their scales are not fixed: native/RNN.cpp", _quantized_recurrent
    ),
    "_scaled_grouped_mm _scaled_grouped_mm_v2": (
        "aten._grouped_mm; the work of the scales is not fixed: native/cuda/GroupedBlas.cpp", _scaled_grouped_mm
    ),
}, "aten.")  # fmt: skip
formulas({
    """aten._scaled_mm aten._scaled_mm_v2 aten._weight_int4pack_mm aten._weight_int4pack_mm_for_cpu aten._dyn_quant_matmul_4bit
    quantized.linear_dynamic quantized.linear_dynamic_fp16 quantized.linear_relu_dynamic quantized.linear_relu_dynamic_fp16
    quantized.matmul quantized.linear quantized.linear_relu quantized.linear_leaky_relu quantized.linear_tanh
    bitsandbytes.int8_scaled_mm bitsandbytes.gemv_4bit bitsandbytes.gemm_4bit""": (  # x (*, K) ... -> (*, N)
        "dot products of K terms; the work of the scales is not fixed: native/cuda/Blas.cpp, native/cpu/int4mm_kernel.cpp, "
        "native/quantized/cpu/qlinear_dynamic.cpp, qlinear.cpp; bitsandbytes/_ops.py",
        lambda op: _refuse_scales(op, dots(n_out(op), shape(op)[-1])),
    ),
    "bitsandbytes.int8_linear_matmul": ("bitsandbytes/_ops.py: (*, K) times the transpose of (N, K), of int8", _int8_linear),
})  # fmt: skip
formulas({
    " ".join(f"conv{n}d{after}" for n in (1, 2, 3) for after in ("", "_relu", "_dynamic")) + " conv2d_add conv2d_add_relu": (
        "as aten.convolution; the work of the scales is not fixed: native/quantized/cpu/qconv.cpp", _quantized_conv
    ),
    " ".join(f"conv_transpose{n}d{after}" for n in (1, 2, 3) for after in ("", "_dynamic")): (
        "as aten.convolution, transposed; the work of the scales is not fixed: native/quantized/cpu/qconv.cpp",
        _quantized_conv_transpose,
    ),
    " ".join(f"quantized_{kind}_cell_dynamic" for kind in GATES): (
        "the products of the cell that it stands for; their scales are not fixed: native/RNN.cpp", _quantized_cell
    ),
}, "quantized.")  # fmt: skip
