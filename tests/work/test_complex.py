"""Ops on complex numbers: pairs of numbers that count, whose values are torch's."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from reconcile.core.records import Tensor
from reconcile.work import ZERO, UnknownWork, Work, load, registered_formulas, work_of
from tests.work.beside_torch import RELAXED, SMALL
from tests.work.counting import Accumulator, Num, Tally, total
from tests.work.records_by_hand import make
from tests.work.torch_records import record

load()


class Pair:
    """A complex number as two numbers that count."""

    def __init__(self, re, im):
        self.re, self.im = re, im

    def __add__(self, other):
        return Pair(self.re + other.re, self.im + other.im)

    def __sub__(self, other):
        return Pair(self.re - other.re, self.im - other.im)

    def __neg__(self):
        return Pair(-self.re, -self.im)

    def __mul__(self, other):
        return Pair(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)

    def __truediv__(self, other):
        """The division in c10/util/complex.h."""
        c, d = other.re, other.im
        size, low = c.max(-c.value), d.max(-d.value)
        if size.max(low) is not None and size.value >= low.value:
            size.equals(0.0)
        else:  # the other half of the plane tests no zero; the costlier half counts
            size.tally["cmp"] += 1
            self, c, d = Pair(self.im, Num(-self.re.value, self.re.tally)), d, Num(-c.value, c.tally)
        ratio = d / c
        scale = Num(1.0, c.tally) / (c + d * ratio)
        return Pair((self.re + self.im * ratio) * scale, (self.im - self.re * ratio) * scale)

    def abs(self):
        return self.re.special(lambda a: math.hypot(a, self.im.value))

    def exp(self):
        size = self.re.special(math.exp)
        return Pair(size * self.im.special(math.cos), size * self.im.special(math.sin))


def numbers(*shape):
    random = np.random.default_rng(0)
    return random.normal(size=shape) + 1j * random.normal(size=shape)


def pairs(tally, array):
    result = np.empty(array.shape, dtype=object)
    for index in np.ndindex(array.shape):
        z = array[index]
        result[index] = Pair(Num(float(z.real), tally), Num(float(z.imag), tally))
    return result


def agree(tally, result, expected, op):
    flat = [complex(z.re.value, z.im.value) if isinstance(z, Pair) else z.value for z in np.ravel(result)]
    np.testing.assert_allclose(flat, np.ravel(np.asarray(expected)), rtol=1e-9)
    assert work_of(op) == tally.work()


def dispatched(function, *arrays):
    """The one op of this call."""
    (op,) = record(function, *map(torch.from_numpy, arrays))
    return op


EXPRESSIONS = {
    "add": (lambda x, y: x + y, torch.add),
    "sub": (lambda x, y: x - y, torch.sub),
    "mul": (lambda x, y: x * y, torch.mul),
    "div": (lambda x, y: x / y, torch.div),
    "neg": (lambda x: -x, torch.neg),
    "square": (lambda x: x * x, torch.square),
    "abs": (lambda x: x.abs(), torch.abs),
    "angle": (lambda x: x.im.special(lambda b: math.atan2(b, x.re.value)), torch.angle),
    "exp": (lambda x: x.exp(), torch.exp),
    "conj_physical": (lambda x: Pair(x.re, -x.im), torch.conj_physical),
    "sgn": (
        lambda x: (lambda size: x.re.equals(0) or x.im.equals(0) or Pair(x.re / size, x.im / size))(x.abs()),
        torch.sgn,
    ),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_elementwise(name):
    expression, function = EXPRESSIONS[name]
    arrays = [numbers(9), numbers(9)[::-1].copy()][: expression.__code__.co_argcount]
    tally = Tally()
    result = [expression(*items) for items in zip(*(pairs(tally, a) for a in arrays), strict=True)]
    agree(tally, result, function(*map(torch.from_numpy, arrays)), dispatched(function, *arrays))


def test_polar():
    size, angle = np.array([0.5, 2.0, 3.0]), np.array([0.1, -2.0, 4.0])
    tally = Tally()
    result = [
        Pair(r * t.special(math.cos), r * t.special(math.sin))
        for r, t in zip(tally.array(size), tally.array(angle), strict=True)
    ]
    agree(tally, result, torch.polar(*map(torch.from_numpy, (size, angle))), dispatched(torch.polar, size, angle))


@RELAXED
@given(rows=SMALL, k=st.integers(1, 4), columns=SMALL)
def test_a_matrix_product(rows, k, columns):
    a, b = numbers(rows, k), numbers(k, columns)
    tally = Tally()
    x, y = pairs(tally, a), pairs(tally, b)
    result = np.empty((rows, columns), dtype=object)
    for index in np.ndindex(result.shape):
        re, im = Accumulator(tally), Accumulator(tally)
        for left, right in zip(x[index[0]], y[:, index[1]], strict=True):
            re.mac(left.re, right.re)
            re.mac(Num(-left.im.value, tally), right.im)  # a product subtracted is one, too
            im.mac(left.re, right.im)
            im.mac(left.im, right.re)
        result[index] = Pair(re.num(), im.num())
    agree(tally, result, a @ b, dispatched(torch.mm, a, b))


@RELAXED
@given(rows=SMALL, n=st.integers(1, 4))
def test_a_sum_and_a_product_of_many(rows, n):
    x = numbers(rows, n)
    for name, step in (("sum", Pair.__add__), ("prod", Pair.__mul__)):
        tally = Tally()
        result = []
        for first, *rest in pairs(tally, x):
            for item in rest:
                first = step(first, item)
            result.append(first)
        agree(tally, result, getattr(np, name)(x, 1), _reduced(name, x.shape))


def _reduced(name, shape):
    return make(f"aten.{name}", [Tensor(shape, "complex64")], [Tensor(shape[:1], "complex64")])


@RELAXED
@given(rows=SMALL, n=st.integers(1, 4), order=st.sampled_from([1, 2]))
def test_norms(rows, n, order):
    x = numbers(rows, n)
    tally = Tally()
    sizes = [[z.abs() for z in row] for row in pairs(tally, x)]
    if order == 2:
        result = [total([size * size for size in row]).special(math.sqrt) for row in sizes]
    else:
        result = [total(row) for row in sizes]
    z = Tensor((rows, n), "complex64")
    agree(tally, result, np.linalg.norm(x, order, axis=1), make("aten.linalg_vector_norm", [z], [(rows,)], ord=order))
    with pytest.raises(UnknownWork, match="order 3"):
        work_of(make("aten.linalg_vector_norm", [z], [(rows,)], ord=3))


def test_reading_numbers_as_pairs_is_free():
    free = ("view_as_real", "view_as_complex", "complex", "real", "imag", "_conj")
    wrong = [name for name in free if not registered_formulas()[f"aten.{name}"].zero_reason]
    assert wrong == []
    z = Tensor((3,), "complex64")
    assert work_of(make("aten.view_as_real", [z], [(3, 2)])) == ZERO
    assert work_of(make("aten.complex", [(3,), (3,)], [z])) == ZERO


def test_other_functions_of_complex_numbers_are_unknown():
    z = Tensor((3,), "complex64")
    for name, attrs in (
        ("tanh", {}), ("addcdiv", {}), ("pow", {"exponent": 0.5}), ("layer_norm", {"normalized_shape": [3]}),
    ):  # fmt: skip
        with pytest.raises(UnknownWork):
            work_of(make(f"aten.{name}", [z], [z], **attrs))
    assert work_of(make("aten.pow", [z], [z], exponent=2)) == Work(mul=12, add=6)
