"""Formulas of JAX's primitives against loops over numbers that count; tests/matrix/test_jax.py holds the values to JAX's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reconcile.adapters.jax import formulas as _formulas  # noqa: F401
from reconcile.adapters.jax.formulas import elementwise as lax_elementwise
from reconcile.core.records import Tensor
from reconcile.core.work import SINGLE_COMPONENTS
from reconcile.work import UnknownWork, Work, elementwise, known_part, work_of
from tests.work import counting, oracle
from tests.work.counting import Tally, largest, total
from tests.work.records_by_hand import make

SMALL = st.integers(1, 3)
RELAXED = settings(max_examples=8, deadline=None)


def array(tally: Tally, *shape: int) -> np.ndarray:
    """Numbers that are all different."""
    return tally.array(np.arange(1, math.prod(shape) + 1).reshape(shape))


@pytest.mark.parametrize(("row", "name"), [(r, n) for r, names in lax_elementwise.NAMES.items() for n in names.split()])
def test_elementwise(row, name) -> None:
    """test_tables holds the rows."""
    assert work_of(make(f"lax.{name}", [(3, 4), (3, 4)], [(3, 4)])) == elementwise.SHARED[row][0] * 12


@pytest.mark.parametrize("y", range(-9, 18))
def test_integer_powers_are_multiplied_by_squaring(y) -> None:
    """The loop of _integer_pow_lowering, run."""
    tally = Tally()
    base, left, result = array(tally, 1)[0], abs(y), None
    while left:
        if left & 1:
            result = base if result is None else result * base
        left >>= 1
        if left:
            base = base * base
    if y < 0:
        result = counting.Num(1.0, tally) / result
    assert work_of(make("lax.integer_pow", [(1,)], [(1,)], y=y)) == tally.work()


@RELAXED
@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), st.data())
def test_reductions(shape, data) -> None:
    axes = tuple(sorted(data.draw(st.sets(st.integers(0, len(shape) - 1), min_size=1))))
    kept = tuple(size for axis, size in enumerate(shape) if axis not in axes)
    functions = {
        "reduce_sum": total,
        "reduce_max": largest,
        "reduce_min": largest,
        "argmax": largest,
        "reduce_prod": lambda items: counting.Num(1.0, items[0].tally) if len(items) == 1 else product(items),
    }
    for name, function in functions.items():
        tally = Tally()
        moved = np.moveaxis(array(tally, *shape), axes, range(-len(axes), 0)).reshape((*kept, -1))
        for index in np.ndindex(kept):
            function(list(moved[index]))
        assert work_of(make(f"lax.{name}", [shape], [kept], axes=list(axes))) == tally.work(), name


def product(items: Any) -> Any:
    first, *rest = items
    for item in rest:
        first = first * item
    return first


def test_sums_along_an_axis() -> None:
    tally = Tally()
    for row in array(tally, 4, 5).T:
        so_far = counting.Num(0.0, tally)
        for item in row:
            so_far = so_far + item
    assert work_of(make("lax.cumsum", [(4, 5)], [(4, 5)], axis=0)) == tally.work()
    tally = Tally()
    for row in array(tally, 4, 5).T:
        best = row[0]
        for item in row[1:]:
            best = best.max(item)
    assert work_of(make("lax.cummax", [(4, 5)], [(4, 5)], axis=0)) == tally.work()
    assert work_of(make("lax.cummax", [(0, 5)], [(0, 5)], axis=0)) == Work()


@RELAXED
@given(
    window=st.tuples(SMALL, SMALL),
    stride=st.tuples(SMALL, SMALL),
    low=st.tuples(st.integers(-1, 4), st.integers(-1, 4)),
    high=st.tuples(st.integers(0, 4), st.integers(0, 4)),
    dilation=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    spread=st.tuples(SMALL, SMALL),
)
@example(
    window=(2, 2), stride=(1, 1), low=(3, 0), high=(0, 0), dilation=(1, 1), spread=(1, 1)
)  # a window on padding alone
@example(window=(3, 3), stride=(2, 1), low=(1, 1), high=(1, 1), dilation=(2, 1), spread=(2, 3))
def test_windows(window, stride, low, high, dilation, spread) -> None:
    x = (2, 3, 5, 6)
    sides = {
        "window_dimensions": [1, 1, *window],
        "window_strides": [1, 1, *stride],
        "padding": [[0, 0], [0, 0], *map(list, zip(low, high, strict=True))],
    }
    holes = {"window_dilation": [1, 1, *dilation], "base_dilation": [1, 1, *spread]}

    def windows(tally, dilation, spread):
        steps = zip(x[2:], window, stride, low, high, dilation, spread, strict=True)
        out = [((n - 1) * b + 1 + lo + hi - ((k - 1) * d + 1)) // s + 1 for n, k, s, lo, hi, d, b in steps]
        return oracle.windows(array(tally, *x), window, stride, out, low, dilation, spread), (*x[:2], *out)

    for name, function in (("sum", total), ("max", largest), ("min", largest)):
        tally = Tally()
        found, out = windows(tally, dilation, spread)
        for each in filter(None, found.values()):
            function(each)
        assert work_of(make(f"lax.reduce_window_{name}", [x], [out], **sides, **holes)) == tally.work()
    # the gradient of a maximum: the largest again, of whole windows since JAX pads the operand before, and one add
    _, out = windows(Tally(), (1, 1), (1, 1))
    again = make("lax.select_and_scatter_add", [out, x], [x], **sides)
    assert work_of(again) == Work(cmp=math.prod(window) - 1, add=1) * math.prod(out)


@pytest.mark.parametrize("n", range(1, 8))
def test_sorts_are_those_of_the_other_frameworks(n) -> None:
    """test_ordering tests the count; here the record: the axis, integer keys, two keys."""
    aten = work_of(make("aten.sort", [(3, n)], [(3, n), (3, n)], dim=-1))
    assert work_of(make("lax.sort", [(n, 3)], [(n, 3)], dimension=0, num_keys=1)) == aten
    whole = Tensor((n, 3), "int32")
    assert work_of(make("lax.sort", [whole, (n, 3)], [whole, (n, 3)], dimension=0, num_keys=1)) == Work()
    with pytest.raises(UnknownWork, match="keys"):
        work_of(make("lax.sort", [(n, 3), (n, 3)], [(n, 3), (n, 3)], dimension=0, num_keys=2))
    best = work_of(make("aten.topk", [(3, n)], [(3, 1), (3, 1)], dim=-1, k=1))
    assert work_of(make("lax.top_k", [(3, n)], [(3, 1), (3, 1)], k=1)) == best == Work(cmp=3 * (n - 1))


def test_scatters_step_once_per_update() -> None:
    indices = Tensor((5, 1), "int32")
    for name, step in (("add", Work(add=1)), ("sub", Work(add=1)), ("mul", Work(mul=1)), ("max", Work(cmp=1))):
        assert work_of(make(f"lax.scatter-{name}", [(9, 4), indices, (5, 4)], [(9, 4)])) == step * 20
    assert work_of(make("lax.scatter", [(9, 4), indices, (5, 4)], [(9, 4)])) == Work()


@pytest.mark.parametrize("devices", [1, 2, 4])
def test_a_sum_over_devices_is_one_sum_of_their_arrays(devices) -> None:
    tally = Tally()
    arrays = [array(tally, 3, 2) for _ in range(devices)]
    for index in np.ndindex(3, 2):
        total(a[index] for a in arrays)
    assert work_of(make("lax.psum", [(3, 2)], [(3, 2)], axis_size=devices)) == tally.work()
    assert work_of(make("lax.all_gather", [(3, 2)], [(3 * devices, 2)], axis_size=devices)) == Work()


def test_linear_algebra_is_that_of_the_other_frameworks() -> None:
    square_, tall = [(2, 4, 4)], [(2, 5, 3)]
    assert work_of(make("lax.cholesky", square_, square_)) == work_of(make("aten.linalg_cholesky", square_, square_))
    assert work_of(make("lax.lu", tall, tall)) == work_of(make("aten.linalg_lu_factor", tall, tall))
    aten = work_of(make("aten.linalg_solve_triangular", [(2, 4, 4), (2, 4, 3)], [(2, 4, 3)], unitriangular=False))
    assert work_of(make("lax.triangular_solve", [(2, 4, 4), (2, 4, 3)], [(2, 4, 3)], left_side=True)) == aten
    assert known_part(make("lax.fft", [Tensor((8,), "complex64")], [Tensor((8,), "complex64")])).unknown == set(
        SINGLE_COMPONENTS
    )


def test_complex_numbers_are_two_real_ones() -> None:
    """(a + bi)(c + di) is four products and two adds; a multiply-add of a matrix product four, onto two accumulators."""

    def wave(*shape: int) -> Tensor:
        return Tensor(shape, "complex64")

    numbers = [[[1], [0]], [[], []]]
    product = make("lax.dot_general", [wave(2, 3), wave(3, 5)], [wave(2, 5)], dimension_numbers=numbers)
    assert work_of(product) == Work(mac=4 * 2 * 3 * 5, accumulators=2 * 2 * 5)
    one = [wave(7)]
    assert work_of(make("lax.mul", one * 2, one)) == Work(mul=4 * 7, add=2 * 7)
    assert work_of(make("lax.add", one * 2, one)) == work_of(make("lax.neg", one, one)) == Work(add=2 * 7)
    assert work_of(make("lax.reduce_sum", one, [wave()], axes=[0])) == Work(add=2 * 6)
    assert work_of(make("lax.integer_pow", one, one, y=2)) == work_of(make("lax.mul", one * 2, one))
    assert work_of(make("lax.abs", one, [(7,)])) == Work(special=7)
    assert work_of(make("lax.exp", one, one)) == Work(special=3 * 7, mul=2 * 7)  # exp(a) cos(b), exp(a) sin(b)
    assert work_of(make("lax.eq", one * 2, [Tensor((7,), "bool")])) == Work(cmp=2 * 7)
    for part in ("real", "imag", "conj"):
        assert work_of(make(f"lax.{part}", one, [(7,)])) == Work()
    for name, attrs in (("div", {}), ("tanh", {}), ("integer_pow", {"y": -1}), ("conv_general_dilated", {})):
        with pytest.raises(UnknownWork):
            work_of(make(f"lax.{name}", one * 2, one, **attrs))


def test_what_is_added_in_place_is_a_sum_per_element() -> None:
    tally = Tally()
    for held, added in zip(array(tally, 3).flat, array(tally, 3).flat, strict=True):
        held + added
    assert work_of(make("lax.addupdate", [(2, 3), (3,)], [])) == tally.work()


def test_one_minus_a_square_is_a_product_of_two_sums() -> None:
    """As JAX lowers it, so that it is right where x is nearly 1."""
    tally = Tally()
    x = array(tally, 2, 3)
    for each in x.flat:
        (each + 1) * (each - 1)
    assert work_of(make("lax.one_minus_square", [x.shape], [x.shape])) == tally.work()


def test_integers_compute_nothing_unknown_primitives_are_unknown() -> None:
    whole = Tensor((4,), "int32")
    assert work_of(make("lax.add", [whole, whole], [whole])) == Work()
    for name in ("lax.pallas_call", "lax.ffi_call", "lax.pure_callback", "lax.no_such_primitive"):
        with pytest.raises(UnknownWork, match=name):
            work_of(make(name, [(4,)], [(4,)]))
    with pytest.raises(UnknownWork, match="pointwise"):
        work_of(make("lax.nextafter", [(4,), (4,)], [(4,)]))
