"""Formulas of oneDNN's fused products, which frozen and compiled modules call: a product, then a step for each result."""

from __future__ import annotations

from ...core.records import Op
from ...core.work import SINGLE_COMPONENTS, UnknownWork, Work, find, formulas, no_arithmetic, prod
from ...work.contraction import dense
from ...work.convolution import convolution, transposed_convolution
from ...work.shapes import n_in, n_out, shape

_ALIKE = "add sub mul div relu sigmoid tanh hardswish hardsigmoid hardtanh leaky_relu gelu"
STEPS = {**{name: name for name in _ALIKE.split()}, "swish": "silu"}
"""oneDNN's steps, and the ATen operators that do the same: native/mkldnn/Utils.cpp (fusion_unary_attr_map)."""


def _then(op: Op, product: Work) -> Work:
    """A product and the steps that follow it, one with another tensor and one of the result alone, each of which may be none."""
    algorithm = op.attrs.get("algorithm") or op.attrs.get("unary_algorithm")
    work = product
    for name in (op.attrs.get("binary_attr"), op.attrs.get("attr"), op.attrs.get("unary_attr")):
        if name in (None, "none"):
            continue
        step = find(f"aten.{STEPS.get(name, '')}")
        if step is None:
            raise UnknownWork(f"{op.op} with {name!r} after the product", SINGLE_COMPONENTS, product)
        work += step.compute(op._replace(op=step.op, inputs=op.outputs, attrs={"approximate": algorithm}))
    return work


def _weight(op: Op) -> tuple[int, ...]:
    """The weight follows what is multiplied and, if there is one, the tensor of the step."""
    return shape(op, len(op.inputs) - 1 - op.given("B"))


def _linear(op: Op) -> Work:
    # X (*, K), [other (*, N),] W (N, K), [B (N,)] -> (*, N)
    features, k = _weight(op)
    return _then(op, dense(n_out(op) // max(features, 1), k, features, op.given("B")))


def _conv(op: Op) -> Work:
    # X (B, Cin, *in), W (Cout, Cin/g, *k), [B (Cout,)]; with a step: X, other, W, or other, X, W in place
    return _then(op, convolution(n_out(op), prod(_weight(op)[1:]), op.given("B")))


def _conv_transpose(op: Op) -> Work:
    # W (Cin, Cout/g, *k), of which oneDNN may swap the first two: numel(W) / Cin products for each number of X
    taps = prod(_weight(op)) // max(shape(op)[1], 1)
    return _then(op, transposed_convolution(n_in(op), taps, n_out(op), op.given("B")))


_FUSED_SOURCE = "as {}, then the steps of the name, each as ATen's operator: native/mkldnn/{}.cpp"

formulas({
    "mkldnn._linear_pointwise": (_FUSED_SOURCE.format("aten.linear", "Linear"), _linear),
    "mkldnn._convolution_pointwise": (_FUSED_SOURCE.format("aten.convolution", "Conv"), _conv),
    "mkldnn._convolution_transpose_pointwise": (_FUSED_SOURCE.format("aten.convolution", "Conv"), _conv_transpose),
    "mkl._mkl_linear": (  # X (*, K), the weight as MKL packs it, W (N, K), [B (N,)] -> (*, N)
        "as aten.linear: native/mkldnn/Linear.cpp (mkl_linear)", _linear
    ),
})  # fmt: skip
no_arithmetic(
    "copies or moves values",
    "mkldnn._reorder_linear_weight",
    "mkldnn._reorder_convolution_weight",
    "mkldnn._reorder_convolution_transpose_weight",
    "mkl._mkl_reorder_linear_weight",
)
