"""Formulas of ATen elementwise operators, and of operators that add values by index or segment (scatter_add, index_put).

A few that fit no other module are here, too: windows (hann_window), col2im, the trace and weight norms.
"""

from __future__ import annotations

from ...core.records import Op
from ...core.work import SINGLE_COMPONENTS, UnknownWork, Work, formula, formulas
from .. import elementwise
from ..common_formulas import per_input, per_output
from ..elementwise import ADD, CMP, DIV, MUL, SPECIAL
from ..shapes import attr, n_in, n_out, shape

_KERNELS = "ATen native/cpu/UnaryOpsKernel.cpp, BinaryOpsKernel.cpp"

# One entry of elementwise.SHARED each, per output element.
_NAMES: dict[str, str] = {
    "neg": "neg negative",
    "mul": "mul multiply deg2rad rad2deg",
    "square": "square",
    "reciprocal": "reciprocal",
    "compare": (
        "relu maximum minimum fmax fmin clamp_min clamp_max threshold abs absolute sign sgn eq ne lt le gt ge "
        "not_equal less less_equal greater greater_equal heaviside isnan isinf isfinite isneginf isposinf logical_not "
        "logical_and logical_or logical_xor"
    ),
    "special": (
        "sigmoid tanh exp exp2 expm1 log log2 log10 log1p sqrt rsqrt erf erfc erfinv sin cos tan asin acos atan atan2 "
        "sinh cosh asinh acosh atanh lgamma digamma hypot floor ceil round trunc frac special_erf special_erfc "
        "special_expm1 special_expit special_log1p special_exp2"
    ),
    "clamp2": "relu6 hardtanh hardshrink",
    "remainder": "remainder fmod",
    "floordiv": "floor_divide",
    "xlogy": "xlogy special_xlogy",
    "silu": "silu",
    "leaky_relu": "leaky_relu prelu _prelu_kernel",
}


_SAME = "softplus hardsigmoid hardswish mish glu softshrink lerp logit"
_ROWS = {
    **{name: name for name in _SAME.split()},
    "elu selu celu": "elu",
    "log_sigmoid log_sigmoid_forward": "log_sigmoid",
    "linalg_cross": "cross",
    "rrelu_with_noise": "rrelu",
}
"""The operators of rows of elementwise.ATEN."""


def _add(op: Op) -> Work:
    """x + alpha * y for each."""
    return ADD if op.attrs.get("alpha", 1) in (1, None) else ADD + MUL


def _div(op: Op) -> Work:
    row = "div" if op.attrs.get("rounding_mode") is None else "floordiv"
    return elementwise.SHARED[row][0] * n_out(op)


def _addc(op: Op) -> Work:
    each = elementwise.SHARED[op.op[len("aten.") :]][0]
    return (each if op.attrs.get("value", 1) in (1, None) else each + MUL) * n_out(op)


def _clamp(op: Op) -> Work:
    bounds = sum(op.attrs.get(name) is not None for name in ("min", "max")) + len(op.inputs) - 1
    return CMP * (bounds * n_out(op))


def _pow(op: Op) -> Work:
    exponent, each = op.attrs.get("exponent"), SPECIAL
    if isinstance(exponent, (int, float)):
        each = elementwise.POWER.get(float(exponent), (each, ""))[0]
    return each * n_out(op)


def _dropout(op: Op) -> Work:
    if not attr(op, "train") or attr(op, "p") == 0:
        return Work()
    if op.op != "aten.dropout":
        raise UnknownWork(f"{op.op} in training: only plain dropout has a formula")
    return elementwise.ATEN["dropout"][0] * n_out(op)


def _scatter(op: Op) -> Work:
    step = {None: Work(), "add": ADD, "multiply": MUL}.get(op.attrs.get("reduce"))
    if step is None:
        raise UnknownWork(f"aten.scatter with reduce={op.attrs['reduce']!r}")
    return step * n_in(op, len(op.inputs) - 1)


def _reduced_by_index(op: Op) -> Work:
    # self, index, source: every index takes one value, which index_reduce takes by whole rows
    values, kind = n_in(op, 1 if op.op == "aten.scatter_reduce" else 2), str(attr(op, "reduce"))
    if kind == "mean":
        return ADD * (2 * values) + (CMP + DIV) * n_out(op)
    step = {"sum": ADD, "prod": MUL, "amax": CMP, "amin": CMP}.get(kind)
    if step is None:
        raise UnknownWork(f"{op.op} with reduce={kind!r}")
    return step * values


def _segment_reduce(op: Op) -> Work:
    n, out, kind = n_in(op), n_out(op), str(attr(op, "reduce"))
    step = {"sum": ADD, "mean": ADD, "prod": MUL, "max": CMP, "min": CMP}.get(kind)
    if step is None or op.attrs.get("initial") is not None:
        raise UnknownWork(f"{op.op} with reduce={kind!r} and initial={op.attrs.get('initial')!r}", SINGLE_COMPONENTS)
    return elementwise.reduction(n, out, step) + Work(div=out if kind == "mean" else 0)


formulas({
    names: (f"{expression}: {_KERNELS}", per_output(each))
    for row, names in _NAMES.items()
    for each, expression in [elementwise.SHARED[row]]
}, "aten.")  # fmt: skip
formulas({
    names: (expression, per_output(each))
    for names, row in _ROWS.items()
    for each, expression in [elementwise.ATEN[row]]
}, "aten.")  # fmt: skip
for _name, _each in {"add": ADD, "sub": ADD, "mul": MUL, "div": DIV}.items():
    formula(f"prims.{_name}", source="one per output element: torch/_prims/__init__.py")(per_output(_each))
formulas({
    "add sub rsub subtract": (
        f"x + alpha * y, one more mul if alpha is not 1: {_KERNELS}", lambda op: _add(op) * n_out(op)
    ),
    "div divide true_divide": (f"x / y, rounded (special) if rounding_mode is given: {_KERNELS}", _div),
    "addcmul addcdiv": ("x + value * (y op z), native/cpu/PointwiseOpsKernel.cpp; mul only if value is not 1", _addc),
    "clamp clip": ("one cmp per bound that is given: ATen native/TensorCompare.cpp", _clamp),
    "pow float_power": ("elementwise.POWER for scalar exponents, otherwise one pow: native/cpu/PowKernel.cpp", _pow),
    "gelu": (
        "native/cpu/Activation.cpp: erf form, or the tanh form if approximate='tanh'",
        lambda op: elementwise.SHARED["gelu_tanh" if op.attrs.get("approximate") == "tanh" else "gelu"][0] * n_out(op),
    ),
    "dropout feature_dropout alpha_dropout": (elementwise.ATEN["dropout"][1] + "; nothing in evaluation", _dropout),
    "native_dropout": (
        elementwise.ATEN["native_dropout"][1] + "; nothing in evaluation",
        lambda op: elementwise.ATEN["native_dropout"][0] * n_out(op) if attr(op, "train") else Work(),
    ),
    "nan_to_num": ("x is nan, inf or -inf: three comparisons, native/cpu/UnaryOpsKernel.cpp", per_output(CMP * 3)),
    "scatter_add index_add": (  # self, index, source; alpha scales the source
        "one add per source element: ATen native/TensorAdvancedIndexing.cpp", lambda op: _add(op) * n_in(op, 2)
    ),
    "scatter": ("moves values; with reduce one add or multiply each: ATen native/TensorAdvancedIndexing.cpp", _scatter),
    "index_put _unsafe_index_put": (
        "moves values; accumulating, one add per value: ATen native/TensorAdvancedIndexing.cpp",
        lambda op: (ADD if op.attrs.get("accumulate") else Work()) * n_in(op, len(op.inputs) - 1),
    ),
    "scatter_reduce index_reduce": (
        "one step per value; of a mean the number of values, too, and a division: native/TensorAdvancedIndexing.cpp",
        _reduced_by_index,
    ),
    "segment_reduce": ("N - O steps, of a mean O divisions: ATen native/SegmentReduce.cpp", _segment_reduce),
    "hann_window hamming_window": (  # a periodic one, which is the default, computes one element more
        "a - b cos(i c): native/TensorFactories.cpp (hamming_window)",
        lambda op: (MUL * 2 + ADD + SPECIAL) * (n_out(op) + bool(op.attrs.get("periodic", True))),
    ),
    "col2im": ("each column element added to the zeroed image: ATen native/Col2Im.cpp", per_input(ADD)),
    "trace": (
        "min(rows, columns) - 1 adds: ATen native/ReduceOps.cpp", lambda op: ADD * max(min(shape(op)) - 1, 0)
    ),
    "_weight_norm _weight_norm_interface": (  # v (*), g with one element per norm
        "v * (g / |v|): ATen native/cpu/WeightNormKernel.cpp",
        lambda op: elementwise.vector_norm(n_in(op), n_in(op, 1), 2) + Work(div=n_in(op, 1), mul=n_in(op)),
    ),
}, "aten.")  # fmt: skip
