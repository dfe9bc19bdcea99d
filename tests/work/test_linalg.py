"""Factorisations and solutions: loops over numbers that count, whose values are torch's, and working note 41's polynomials."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcile.core.records import Tensor
from reconcile.core.work import SINGLE_COMPONENTS
from reconcile.work import UnknownWork, Work, known_part, linalg, work_of
from reconcile.work.aten.linalg import DIRECT
from tests.work.beside_torch import RELAXED, SMALL, data
from tests.work.counting import Num, Tally, total, values
from tests.work.records_by_hand import make
from tests.work.torch_records import record

N = st.integers(1, 5)


def less(first, products):
    """first - a * b - c * d - ..."""
    for a, b in products:
        first = first - a * b
    return first


def solve_lower(a, b, unit):
    """a (n, n), b (n, k), forwards."""
    x = np.empty(b.shape, dtype=object)
    for i, c in np.ndindex(b.shape):
        rest = less(b[i, c], [(a[i, j], x[j, c]) for j in range(i)])
        x[i, c] = rest if unit else rest / a[i, i]
    return x


def solve_upper(a, b):
    return solve_lower(a[::-1, ::-1], b[::-1], unit=False)[::-1]


def lu(a):
    """In place; the order of the rows."""
    m, n = a.shape
    order = list(range(m))
    for j in range(min(m, n)):
        best = j
        for i in range(j + 1, m):
            a[i, j].tally["cmp"] += 1
            best = i if abs(a[i, j].value) > abs(a[best, j].value) else best
        order[j], order[best] = order[best], order[j]
        a[[j, best]] = a[[best, j]]
        reciprocal = Num(1.0, a[j, j].tally) / a[j, j]
        for i in range(j + 1, m):
            a[i, j] = a[i, j] * reciprocal
            for c in range(j + 1, n):
                a[i, c] = a[i, c] - a[i, j] * a[j, c]
    return order


def cholesky(a):
    n = len(a)
    result = np.full((n, n), None)
    for j in range(n):
        result[j, j] = less(a[j, j], [(result[j, k], result[j, k]) for k in range(j)]).special(math.sqrt)
        for i in range(j + 1, n):
            result[i, j] = less(a[i, j], [(result[i, k], result[j, k]) for k in range(j)]) / result[j, j]
    return result


def positive(n):
    root = data(n, n)
    return root @ root.T + n * np.eye(n)


def dispatched(function, *arrays, **options):
    """The record of the op that computes."""
    ops = record(lambda *a: function(*a, **options), *map(torch.from_numpy, arrays))
    return next(op for op in ops if "linalg" in op.op or "solve" in op.op or "cholesky" in op.op)


def close(result, expected):
    np.testing.assert_allclose(values(result), np.asarray(expected), rtol=1e-6, atol=1e-9)


@RELAXED
@given(n=N, k=SMALL, unit=st.booleans())
def test_triangular_systems(n, k, unit):
    a, b = np.tril(data(n, n)) + 3 * np.eye(n), data(n, k)
    a = a - np.diag(np.diag(a)) + np.eye(n) if unit else a
    tally = Tally()
    close(solve_lower(tally.array(a), tally.array(b), unit), np.linalg.solve(a, b))
    options = {"upper": False, "unitriangular": unit}
    assert work_of(dispatched(torch.linalg.solve_triangular, a, b, **options)) == tally.work()
    right = dispatched(torch.linalg.solve_triangular, a, b.T.copy(), left=False, **options)
    assert work_of(right) == tally.work()
    assert work_of(make("aten.triangular_solve", [b, a], [b, a], unitriangular=unit)) == tally.work()


@RELAXED
@given(m=N, n=N)
def test_lu(m, n):
    a = data(m, n)
    tally = Tally()
    numbers = tally.array(a)
    lu(numbers)
    close(numbers, torch.linalg.lu_factor_ex(torch.from_numpy(a))[0])
    assert work_of(dispatched(torch.linalg.lu_factor_ex, a)) == tally.work()
    assert work_of(dispatched(torch.linalg.lu_factor_ex, np.stack([a, a]))) == tally.work() * 2
    with pytest.raises(UnknownWork, match="without pivots"):
        work_of(make("aten.linalg_lu_factor_ex", [a], [a], pivot=False))


@RELAXED
@given(n=N, k=SMALL)
def test_solve_inverse_and_determinants(n, k):
    a, b = data(n, n), data(n, k)
    expected = np.linalg.solve(a, b)
    for function, right in ((torch.linalg.solve, b), (torch.linalg.inv, np.eye(n))):
        tally = Tally()
        factors, sides = tally.array(a), tally.array(right)
        order = lu(factors)
        close(solve_upper(factors, solve_lower(factors, sides[order], unit=True)), np.linalg.solve(a, right))
        given_ = (a, b) if function is torch.linalg.solve else (a,)
        assert work_of(dispatched(function, *given_)) == tally.work()
    of_vector = dispatched(torch.linalg.solve, a, b[:, 0].copy())
    assert work_of(of_vector) == linalg.solve(n, 1)
    assert expected.shape == b.shape
    tally = Tally()
    factors = tally.array(a)
    order = lu(factors)
    sign = Num(float(np.linalg.det(np.eye(n)[order])), tally)
    product = factors[0, 0]
    for i in range(1, n):
        product = product * factors[i, i]
    close(np.array([product * sign]), [np.linalg.det(a)])
    assert work_of(dispatched(torch.linalg.det, a)) == tally.work()
    tally = Tally()
    factors = tally.array(a)
    lu(factors)
    diagonal = [factors[i, i] for i in range(n)]
    signs = [v.max(0.0) for v in diagonal]
    for item in signs[1:]:
        item * signs[0]
    signs[0] * signs[0]  # by the permutation's
    logs = total([v.max(-v.value).special(math.log) for v in diagonal])
    close(np.array([logs]), [np.linalg.slogdet(a)[1]])
    assert work_of(dispatched(torch.linalg.slogdet, a)) == tally.work()


@RELAXED
@given(n=N, k=SMALL)
def test_cholesky(n, k):
    a, b = positive(n), data(n, k)
    tally = Tally()
    factor = cholesky(tally.array(a))
    lower = np.vectorize(lambda v: v.value if v else 0.0, otypes=[float])(factor)
    np.testing.assert_allclose(lower, np.linalg.cholesky(a))
    assert work_of(dispatched(torch.linalg.cholesky, a)) == tally.work()
    tally = Tally()
    factor = tally.array(lower)
    close(solve_upper(factor.T, solve_lower(factor, tally.array(b), unit=False)), np.linalg.solve(a, b))
    assert work_of(dispatched(torch.cholesky_solve, b, lower)) == tally.work()


def triangular_inverse(u):
    """The inverse of an upper triangle, column by column: LAPACK's TRTI2."""
    n = len(u)
    result = np.full((n, n), None)
    for j in range(n):
        result[j, j] = Num(1.0, u[j, j].tally) / u[j, j]
        for i in range(j):
            products = [result[i, k] * u[k, j] for k in range(i, j)]
            result[i, j] = total(products) * Num(-result[j, j].value, u[j, j].tally)
    return result


@RELAXED
@given(n=N)
def test_the_inverse_of_a_cholesky_factor(n):
    a = positive(n)
    upper = np.linalg.cholesky(a).T.copy()
    tally = Tally()
    inverse = triangular_inverse(tally.array(upper))
    result = np.empty((n, n), dtype=object)
    for j in range(n):
        for i in range(j + 1):
            result[i, j] = result[j, i] = total([inverse[i, k] * inverse[j, k] for k in range(j, n)])
    close(result, np.linalg.inv(a))
    assert work_of(dispatched(torch.cholesky_inverse, upper, upper=True)) == tally.work()


@settings(max_examples=25)
@given(m=st.integers(1, 60), n=st.integers(1, 60))
def test_the_polynomials_of_working_note_41(m, n):
    """Its multiplications have divisions and square roots among them."""
    f, cube, square = Fraction, n**3, n**2

    def of(work: Work) -> tuple[int, int]:
        return work.mul + work.div + work.special, work.add

    assert of(linalg.cholesky(n)) == (f(cube, 6) + f(square, 2) + f(n, 3), f(cube, 6) - f(n, 6))
    assert of(linalg.lu_solve(n, m)) == (m * square, m * (square - n))
    assert of(linalg.cholesky_solve(n, m)) == (m * n * (n + 1), m * n * (n - 1))
    assert of(linalg.triangular_solve(n, m)) == (f(m * n * (n + 1), 2), f(m * n * (n - 1), 2))
    assert of(linalg.cholesky_inverse(n)) == (f(cube, 3) + square + f(2 * n, 3), f(cube, 3) - f(square, 2) + f(n, 6))
    if m >= n:
        assert of(linalg.lu(m, n)) == (
            f(m * square, 2) - f(cube, 6) + f(m * n, 2) - f(square, 2) + f(2 * n, 3),
            f(m * square, 2) - f(cube, 6) - f(m * n, 2) + f(n, 6),
        )
    factorisations = (linalg.cholesky(n), linalg.solve(n, m), linalg.cholesky_inverse(n), linalg.log_determinant(n))
    assert [work.mac for work in factorisations] == [0] * len(factorisations)


def test_an_op_without_a_count_has_no_products():
    for name in ("linalg_qr", "_linalg_svd", "_linalg_eigh", "_fft_r2c", "linalg_householder_product", "linalg_lstsq"):
        with pytest.raises(UnknownWork, match="is not fixed") as caught:
            work_of(make(f"aten.{name}", [(4, 4)], [(4, 4)]))
        assert (caught.value.components, caught.value.known) == (frozenset(SINGLE_COMPONENTS), Work())
    with pytest.raises(UnknownWork, match="no work formula") as caught:
        work_of(
            make("aten.linalg_matrix_exp", [(4, 4)], [(4, 4)])
        )  # it multiplies matrices, as often as the norm wants
    assert "mac" in caught.value.components
    with pytest.raises(UnknownWork, match="not a stack of square matrices"):
        work_of(make("aten.linalg_inv_ex", [(4, 3)], [(4, 3)]))


@pytest.mark.parametrize("name", [*DIRECT.split(), "linalg_qr", "linalg_eig"])
def test_on_complex_numbers_there_are_no_products_either(name):
    z = Tensor((4, 4), "complex64")
    part = known_part(make(f"aten.{name}", [z, z], [z]))
    assert (part.work, part.unknown) == (Work(), frozenset(SINGLE_COMPONENTS))


def test_a_pseudoinverse_multiplies_once():
    """V / S, n x k, times U^H, k x m."""
    op = record(torch.linalg.pinv, torch.from_numpy(data(2, 5, 3)))[-1]
    assert op.op == "aten.linalg_pinv"
    product = work_of(make("aten.bmm", [(2, 3, 3), (2, 3, 5)], [(2, 3, 5)]))
    assert (known_part(op).work, known_part(op).unknown) == (product, frozenset(SINGLE_COMPONENTS))
