"""Work formulas of operators on quantised numbers, and of ONNX Runtime's (com.microsoft).

Multiply-adds are those of the product that they represent; what its scales and activations cost is a kernel's choice.
"""

from __future__ import annotations

from ....core.records import Op
from ....core.work import SINGLE_COMPONENTS, UnknownWork, Work, find, formula, formulas
from ....work.common_formulas import register_unfixed
from ....work.contraction import dots
from ....work.elementwise import ADD, CMP, DIV, MUL, SPECIAL
from ....work.shapes import attr, n_out, shape
from ..microsoft import MICROSOFT, STANDARD

_SPEC = "onnx.ai/onnx/operators"
_RUNTIME = "onnxruntime, docs/ContribOperators.md"
_PRODUCTS = ("Conv", "Gemm", "MatMul")


@formula(
    "onnx.QuantizeLinear", f"{MICROSOFT}.QuantizeLinear", source=f"saturate(round(x / scale) + zero point): {_SPEC}"
)
def _quantize(op: Op) -> Work:
    return (DIV + SPECIAL + CMP * 2 + ADD * (len(op.inputs) > 2)) * n_out(op)


@formula("onnx.DequantizeLinear", f"{MICROSOFT}.DequantizeLinear", source=f"(x - zero point) * scale: {_SPEC}")
def _dequantize(op: Op) -> Work:
    return (MUL + ADD * (len(op.inputs) > 2)) * n_out(op)


def _refuse_rest(op: Op, product: Work) -> Work:
    raise UnknownWork(f"what {op.op} does beside its products is a kernel's choice", SINGLE_COMPONENTS, product)


def _product_beside_others(op: Op) -> Work:
    # x, its scale and zero point, w, ...; STANDARD says which of them are x and w
    name, chosen = STANDARD.get(op.op.rpartition(".")[2], ("MatMul", slice(0, 4, 3)))
    plain = find(f"onnx.{name}")
    assert plain is not None
    return _refuse_rest(op, plain.compute(op._replace(inputs=op.inputs[chosen])).only(("mac", "accumulators")))


def _matmul_of_bits(op: Op) -> Work:
    # A (*, K), B (N, blocks of K, bytes), scales
    return _refuse_rest(op, dots(n_out(op), int(attr(op, "K"))))


def _fused_matmul(op: Op) -> Work:
    # A (*, M, K), (*, K, M) if transA; (M, *, K) or (K, *, M) if transBatchA
    sizes, first = shape(op), 0 if op.attrs.get("transBatchA") else -2
    k = sizes[first] if op.attrs.get("transA") else sizes[-1]
    return dots(n_out(op), k) + MUL * (n_out(op) * (float(op.attrs.get("alpha", 1.0)) != 1))


formulas({
    "onnx.QLinearConv onnx.QLinearMatMul "
    + " ".join(f"{MICROSOFT}.{name}" for name, (standard, _) in STANDARD.items() if standard in _PRODUCTS): (
        f"the products of Conv, MatMul or Gemm; the rest is not fixed: {_SPEC}; {_RUNTIME}", _product_beside_others
    ),
    f"{MICROSOFT}.MatMulNBits": (
        f"dot products of K terms; the rest is not fixed: {_RUNTIME}", _matmul_of_bits
    ),
    f"{MICROSOFT}.FusedMatMul": (f"alpha * A' @ B': {_RUNTIME}", _fused_matmul),
})  # fmt: skip
register_unfixed(
    f"what its scales cost, or how it is fused, is a kernel's choice ({_RUNTIME})",
    " ".join(name for name, (standard, _) in STANDARD.items() if standard not in (*_PRODUCTS, name))
    + " QLinearReduceMean QLinearWhere",
    f"{MICROSOFT}.",
)
