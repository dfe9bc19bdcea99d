"""Formulas of ATen elementwise operators, and of operators that add values by index (scatter_add, index_put)."""

from __future__ import annotations

from collections.abc import Callable

from ...core.records import Op
from ...core.work import SINGLE, UnknownWork, Work, formula
from .. import elementwise
from ..elementwise import ADD, CMP, DIV, MUL
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


def per_output(each: Work) -> Callable[[Op], Work]:
    """``each`` for every element of the first output."""
    return lambda op: each * n_out(op)


for _row, _ops in _NAMES.items():
    _work, _expression = elementwise.SHARED[_row]
    formula(*(f"aten.{name}" for name in _ops.split()), source=f"{_expression}: {_KERNELS}")(per_output(_work))

for _name, _row in {
    "elu": "elu",
    "selu": "elu",
    "celu": "elu",
    "softplus": "softplus",
    "hardsigmoid": "hardsigmoid",
    "hardswish": "hardswish",
    "mish": "mish",
    "glu": "glu",
    "log_sigmoid": "log_sigmoid",
    "log_sigmoid_forward": "log_sigmoid",
    "softshrink": "softshrink",
    "lerp": "lerp",
    "logit": "logit",
    "linalg_cross": "cross",
    "rrelu_with_noise": "rrelu",
}.items():
    _work, _expression = elementwise.ATEN[_row]
    formula(f"aten.{_name}", source=_expression)(per_output(_work))


@formula(
    "aten.add",
    "aten.sub",
    "aten.rsub",
    "aten.subtract",
    source="x + alpha * y, one more mul if alpha is not 1: " + _KERNELS,
)
def _add(op: Op) -> Work:
    return (ADD if op.attrs.get("alpha", 1) in (1, None) else ADD + MUL) * n_out(op)


for _name, _each in {"add": ADD, "sub": ADD, "mul": MUL, "div": DIV}.items():
    formula(f"prims.{_name}", source="one per output element: torch/_prims/__init__.py")(per_output(_each))


@formula(
    "aten.div",
    "aten.divide",
    "aten.true_divide",
    source="x / y, rounded (special) if rounding_mode is given: " + _KERNELS,
)
def _div(op: Op) -> Work:
    row = "div" if op.attrs.get("rounding_mode") is None else "floordiv"
    return elementwise.SHARED[row][0] * n_out(op)


@formula(
    "aten.addcmul",
    "aten.addcdiv",
    source="x + value * (y op z), native/cpu/PointwiseOpsKernel.cpp; mul only if value is not 1",
)
def _addc(op: Op) -> Work:
    each = elementwise.SHARED[op.op[len("aten.") :]][0]
    return (each if op.attrs.get("value", 1) in (1, None) else each + MUL) * n_out(op)


@formula("aten.clamp", "aten.clip", source="one cmp per bound that is given: ATen native/TensorCompare.cpp")
def _clamp(op: Op) -> Work:
    bounds = sum(op.attrs.get(name) is not None for name in ("min", "max")) + len(op.inputs) - 1
    return CMP * (bounds * n_out(op))


@formula(
    "aten.pow",
    "aten.float_power",
    source="elementwise.POWER for scalar exponents, otherwise one pow: native/cpu/PowKernel.cpp",
)
def _pow(op: Op) -> Work:
    exponent = op.attrs.get("exponent")
    each = elementwise.SHARED["special"][0]
    if isinstance(exponent, (int, float)):
        each = elementwise.POWER.get(float(exponent), (each, ""))[0]
    return each * n_out(op)


@formula("aten.gelu", source="native/cpu/Activation.cpp: erf form, or the tanh form if approximate='tanh'")
def _gelu(op: Op) -> Work:
    return elementwise.SHARED["gelu_tanh" if op.attrs.get("approximate") == "tanh" else "gelu"][0] * n_out(op)


@formula(
    "aten.dropout",
    "aten.feature_dropout",
    "aten.alpha_dropout",
    source=elementwise.ATEN["dropout"][1] + "; nothing in evaluation",
)
def _dropout(op: Op) -> Work:
    if not attr(op, "train") or attr(op, "p") == 0:
        return Work()
    if op.op != "aten.dropout":
        raise UnknownWork(f"{op.op} in training: only plain dropout has a formula")
    return elementwise.ATEN["dropout"][0] * n_out(op)


@formula("aten.native_dropout", source=elementwise.ATEN["native_dropout"][1] + "; nothing in evaluation")
def _native_dropout(op: Op) -> Work:
    return elementwise.ATEN["native_dropout"][0] * n_out(op) if attr(op, "train") else Work()


@formula("aten.nan_to_num", source="x is nan, inf or -inf: three comparisons, native/cpu/UnaryOpsKernel.cpp")
def _nan_to_num(op: Op) -> Work:
    return CMP * (3 * n_out(op))


@formula(
    "aten.scatter_add", "aten.index_add", source="one add per source element: ATen native/TensorAdvancedIndexing.cpp"
)
def _scatter_add(op: Op) -> Work:
    # self, index, source; alpha scales the source
    scaled = Work(mul=n_in(op, 2)) if op.attrs.get("alpha", 1) not in (1, None) else Work()
    return ADD * n_in(op, 2) + scaled


@formula(
    "aten.scatter", source="moves values; with reduce one add or multiply each: ATen native/TensorAdvancedIndexing.cpp"
)
def _scatter(op: Op) -> Work:
    step = {None: Work(), "add": ADD, "multiply": MUL}.get(op.attrs.get("reduce"))
    if step is None:
        raise UnknownWork(f"aten.scatter with reduce={op.attrs['reduce']!r}")
    return step * n_in(op, len(op.inputs) - 1)


@formula(
    "aten.index_put",
    "aten._unsafe_index_put",
    source="moves values; accumulating, one add per value: ATen native/TensorAdvancedIndexing.cpp",
)
def _index_put(op: Op) -> Work:
    values = n_in(op, len(op.inputs) - 1)
    return ADD * values if op.attrs.get("accumulate") else Work()


@formula(
    "aten.scatter_reduce",
    "aten.index_reduce",
    source="one step per value; of a mean the number of values, too, and a division: native/TensorAdvancedIndexing.cpp",
)
def _reduced_by_index(op: Op) -> Work:
    # self, index, source: every index takes one value, which index_reduce takes by whole rows
    values, kind = n_in(op, 1 if op.op == "aten.scatter_reduce" else 2), str(attr(op, "reduce"))
    if kind == "mean":
        return ADD * (2 * values) + (CMP + DIV) * n_out(op)
    step = {"sum": ADD, "prod": MUL, "amax": CMP, "amin": CMP}.get(kind)
    if step is None:
        raise UnknownWork(f"{op.op} with reduce={kind!r}")
    return step * values


@formula("aten.segment_reduce", source="N - O steps, of a mean O divisions: ATen native/SegmentReduce.cpp")
def _segment_reduce(op: Op) -> Work:
    n, out, kind = n_in(op), n_out(op), str(attr(op, "reduce"))
    step = {"sum": ADD, "mean": ADD, "prod": MUL, "max": CMP, "min": CMP}.get(kind)
    if step is None or op.attrs.get("initial") is not None:
        raise UnknownWork(f"{op.op} with reduce={kind!r} and initial={op.attrs.get('initial')!r}", SINGLE)
    return elementwise.reduction(n, out, step) + Work(div=out if kind == "mean" else 0)


@formula(
    "aten.hann_window", "aten.hamming_window", source="a - b cos(i c): native/TensorFactories.cpp (hamming_window)"
)
def _window(op: Op) -> Work:
    # a periodic one, which is the default, computes one element more
    return (MUL * 2 + ADD + elementwise.SPECIAL) * (n_out(op) + bool(op.attrs.get("periodic", True)))


@formula("aten.col2im", source="each column element added to the zeroed image: ATen native/Col2Im.cpp")
def _col2im(op: Op) -> Work:
    return ADD * n_in(op)


@formula("aten.trace", source="min(rows, columns) - 1 adds: ATen native/ReduceOps.cpp")
def _trace(op: Op) -> Work:
    return ADD * max(min(shape(op)) - 1, 0)


@formula(
    "aten._weight_norm", "aten._weight_norm_interface", source="v * (g / |v|): ATen native/cpu/WeightNormKernel.cpp"
)
def _weight_norm(op: Op) -> Work:
    # v (*), g with one element per norm
    n, norms = n_in(op, 0), n_in(op, 1)
    return elementwise.vector_norm(n, norms, 2) + Work(div=norms, mul=n)
