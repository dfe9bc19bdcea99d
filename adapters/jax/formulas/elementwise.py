"""Work formulas of JAX's elementwise primitives, reductions, cumulative scans, sorts, scatters and all-reduces (psum)."""

from __future__ import annotations

from collections.abc import Callable

from ....core.records import Op
from ....core.work import UnknownWork, Work, complex_formula, formula, formulas, pointwise, prod
from ....work import elementwise, ordering
from ....work.complex_numbers import polynomials
from ....work.elementwise import ADD, CMP, MUL, SPECIAL
from ....work.shapes import attr, n_in, n_out, shape

_LAX = "jax/_src/lax/lax.py"

# One entry of elementwise.SHARED each, per output element.
NAMES: dict[str, str] = {
    "add": "add add_any",
    "sub": "sub",
    "neg": "neg",
    "mul": "mul",
    "square": "square",
    "div": "div",
    "remainder": "rem",
    "compare": "max min abs sign is_finite eq ne lt le gt ge eq_to lt_to le_to",
    "special": (
        "exp exp2 expm1 log log1p log2 sqrt rsqrt cbrt tanh logistic sin cos tan asin acos atan atan2 sinh cosh asinh acosh "
        "atanh erf erfc erf_inv lgamma digamma pow floor ceil round"
    ),
    "clamp2": "clamp",
}


def _per_element(each: Work) -> Callable[[Op], Work]:
    return lambda op: each * n_out(op)


for _row, _ops in NAMES.items():
    _work, _expression = elementwise.SHARED[_row]
    formula(*(f"lax.{name}" for name in _ops.split()), source=f"{_expression}: {_LAX}")(_per_element(_work))

POINTWISE = f"{' '.join(NAMES.values())} nextafter polygamma zeta igamma igammac igamma_grad_a bessel_i0e bessel_i1e"
pointwise(*(f"lax.{name}" for name in POINTWISE.split()), "lax.regularized_incomplete_beta")


POLYNOMIAL = (
    """add add_any sub neg mul square integer_pow reduce_sum reduce_prod cumsum cumprod scatter-add dot_general"""
)
polynomials(*(f"lax.{name}" for name in POLYNOMIAL.split()), source=_LAX)
formulas({
    "abs": (f"hypot(a, b): {_LAX} (abs_p)", lambda op: SPECIAL * n_out(op)),
    "exp": (f"exp(a) * (cos(b), sin(b)): {_LAX} (exp_p)", lambda op: (SPECIAL * 3 + MUL * 2) * n_out(op)),
    "eq ne": (f"both parts compared: {_LAX} (eq_p)", lambda op: CMP * (2 * n_out(op))),
}, "lax.", complex_formula)  # fmt: skip


@formula("lax.one_minus_square", source=f"(1 + x) (1 - x): {_LAX} (one_minus_square_p), from JAX 0.12 on")
def _one_minus_square(op: Op) -> Work:
    return (ADD * 2 + MUL) * n_out(op)


@formula(
    "lax.integer_pow",
    source="|y| multiplied by squaring, and one division if y is negative: jax/_src/lax/lax.py (_integer_pow_lowering)",
)
def _integer_pow(op: Op) -> Work:
    count, y = n_out(op), int(attr(op, "y"))
    power = abs(y)
    products = max(power.bit_length() - 1, 0) + max(power.bit_count() - 1, 0)
    return (MUL * products + (elementwise.DIV if y < 0 else Work())) * count


for _kind, _step in (("sum", ADD), ("prod", MUL), ("max", CMP), ("min", CMP)):

    @formula(f"lax.reduce_{_kind}", source=f"N - O steps: {_LAX} (reduce_{_kind})")
    def _reduce(op: Op, step: Work = _step) -> Work:
        return elementwise.reduction(n_in(op), n_out(op), step)


@formula("lax.argmax", "lax.argmin", source=f"N - O comparisons: {_LAX} (_compute_argminmax)")
def _argmax(op: Op) -> Work:
    return elementwise.reduction(n_in(op), n_out(op), CMP)


@formula(
    *("lax.cumsum", "lax.cumprod"),
    source="each element taken into an accumulator that starts empty: jax/_src/lax/control_flow/loops.py",
)
def _cumulative(op: Op) -> Work:
    return (ADD if op.op == "lax.cumsum" else MUL) * n_out(op)


@formula("lax.cummax", "lax.cummin", source="N - R comparisons: jax/_src/lax/control_flow/loops.py")
def _cumulative_max(op: Op) -> Work:
    sizes = shape(op)
    along = sizes[int(attr(op, "axis"))]
    return CMP * (prod(sizes) - (prod(sizes) // along if along else 0))


@formula(
    "lax.sort", source=f"ordering.largest of all along the dimension, one definition whatever the data: {_LAX} (sort)"
)
def _sort(op: Op) -> Work:
    # the first num_keys operands are compared; all of them are moved
    sizes = shape(op)
    if int(attr(op, "num_keys")) != 1:
        raise UnknownWork(f"{op.op} by {attr(op, 'num_keys')} keys: how many are compared depends on the data")
    if not op.inputs[0].dtype.startswith(("float", "bfloat")):
        return Work()  # keys that are integers
    n = sizes[int(attr(op, "dimension"))]
    return ordering.largest(prod(sizes) // n if n else 0, n, n)


@formula("lax.top_k", source=f"ordering.largest, one definition whatever the data: {_LAX} (top_k)")
def _top_k(op: Op) -> Work:
    sizes = shape(op)
    axis = int(op.attrs.get("axis", -1))
    n = sizes[axis]
    return ordering.largest(prod(sizes) // n if n else 0, n, int(attr(op, "k")))


for _name, _scatter in (("add", ADD), ("sub", ADD), ("mul", MUL), ("max", CMP), ("min", CMP)):

    @formula(f"lax.scatter-{_name}", source="one step per element of the updates: jax/_src/lax/slicing.py")
    def _scatters(op: Op, step: Work = _scatter) -> Work:
        # operand, indices, updates
        return step * n_in(op, 2)


@formula("lax.addupdate", source="one sum per element that is added to a mutable array: jax/_src/state/primitives.py")
def _addupdate(op: Op) -> Work:
    # reference, values, indices
    return ADD * n_in(op, 1)


def _reduce_gathered(op: Op, step: Work) -> Work:
    """``axis_size`` arrays of one shape, one per device of a group, become one: axis_size - 1 steps per element."""
    elements = sum(n_in(op, i) for i in range(len(op.inputs)))
    return step * (elements * (int(attr(op, "axis_size")) - 1))


@formula(
    *("lax.psum", "lax.psum2", "lax.psum_invariant", "lax.unreduced_psum", "lax.reduce_scatter"),
    source="the arrays of a group of devices, summed once: jax/_src/lax/parallel.py",
)
def _psum(op: Op) -> Work:
    return _reduce_gathered(op, ADD)


@formula(
    *("lax.pmax", "lax.pmin", "lax.unreduced_pmax", "lax.unreduced_pmin"),
    source="the arrays of a group of devices, compared once: jax/_src/lax/parallel.py",
)
def _pmax(op: Op) -> Work:
    return _reduce_gathered(op, CMP)
