"""Products in low precision: of 8-bit and 4-bit numbers, scaled. Multiply-adds are those of the product that they stand for; what
the scales cost depends on how finely they are given."""

from __future__ import annotations

from ..core.records import Op
from ..core.work import SINGLE, UnknownWork, Work, find, formula
from .contraction import dots
from .shapes import n_out, shape


def _scaled(op: Op, product: Work) -> Work:
    raise UnknownWork(f"what the scales of {op.op} cost is not recorded", SINGLE, product)


@formula("aten._int_mm", source="a product of integers: no floating-point work; ATen native/LinearAlgebra.cpp")
def _int_mm(op: Op) -> Work:
    return dots(n_out(op), shape(op)[-1])


@formula("aten._weight_int8pack_mm", source="a dot product, times its row's scale: ATen native/cpu/int8mm_kernel.cpp")
def _int8pack(op: Op) -> Work:
    # x (M, K), weight (N, K) of int8, scales (N,)
    return dots(n_out(op), shape(op)[-1]) + Work(mul=n_out(op))


@formula(
    *("aten._scaled_mm", "aten._scaled_mm_v2", "aten._weight_int4pack_mm", "aten._weight_int4pack_mm_for_cpu"),
    *("aten._dyn_quant_matmul_4bit", "quantized.linear_dynamic", "quantized.linear_dynamic_fp16"),
    "quantized.linear_relu_dynamic",
    source="dot products of K terms; the work of the scales is not fixed: native/cuda/Blas.cpp, native/cpu/int4mm_kernel.cpp, "
    "native/quantized/cpu/qlinear_dynamic.cpp",
)
def _scaled_mm(op: Op) -> Work:
    # x (*, K) ... -> (*, N)
    return _scaled(op, dots(n_out(op), shape(op)[-1]))


@formula(
    *("aten._scaled_grouped_mm", "aten._scaled_grouped_mm_v2"),
    source="aten._grouped_mm; the work of the scales is not fixed: native/cuda/GroupedBlas.cpp",
)
def _scaled_grouped_mm(op: Op) -> Work:
    plain = find("aten._grouped_mm")
    assert plain is not None
    return _scaled(op, plain.compute(op._replace(attrs={**op.attrs, "bias": None})))
