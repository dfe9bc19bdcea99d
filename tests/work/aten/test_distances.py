"""Distances: loops over numbers that count, whose values are torch's."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from reconcile.core.work import SINGLE_COMPONENTS
from reconcile.work import UnknownWork, sampling, work_of
from tests.work.beside_torch import RELAXED, SMALL, agree, data
from tests.work.counting import Num, Tally, dot, largest, square, total, values
from tests.work.records_by_hand import make
from tests.work.torch_records import record

F = torch.nn.functional


NORMS = {
    1.0: lambda d: total([v.max(-v.value) for v in d]),
    2.0: lambda d: total([square(v) for v in d]).special(math.sqrt),
    math.inf: lambda d: largest([v.max(-v.value) for v in d]),
    3.0: lambda d: total([v.max(-v.value).special(lambda x: x**3) for v in d]).special(lambda x: x ** (1 / 3)),
}


@RELAXED
@given(p=SMALL, r=SMALL, m=SMALL, order=st.sampled_from(sorted(NORMS)))
def test_distances(p, r, m, order):
    x, y = data(2, p, m), data(2, r, m)[::-1].copy()
    tally = Tally()
    xs, ys = tally.array(x), tally.array(y)
    result = np.empty((2, p, r), dtype=object)
    for b, i, j in np.ndindex(result.shape):
        result[b, i, j] = NORMS[order]([s - t for s, t in zip(xs[b, i], ys[b, j], strict=True)])
    expected = torch.cdist(torch.from_numpy(x), torch.from_numpy(y), p=order)
    ops = record(torch.cdist, torch.from_numpy(x), torch.from_numpy(y), p=order)
    op = next(op for op in ops if op.op == "aten._cdist_forward")
    agree(tally, result, expected, op._replace(attrs={**op.attrs, "p": order}))


@RELAXED
@given(p=SMALL, r=SMALL, m=SMALL)
def test_euclidean_distances_by_a_product(p, r, m):
    x, y = data(p, m), data(r, m) + 1
    tally = Tally()
    xs, ys = tally.array(x), tally.array(y)
    one = Num(1.0, tally)
    norms = [[total([square(v) for v in row]) for row in rows] for rows in (xs, ys)]
    left = [[*(v * -2.0 for v in row), norm, one] for row, norm in zip(xs, norms[0], strict=True)]
    right = [[*row, one, norm] for row, norm in zip(ys, norms[1], strict=True)]
    result = np.empty((p, r), dtype=object)
    for i, j in np.ndindex(result.shape):
        result[i, j] = dot(tally, left[i], right[j]).max(0.0).special(math.sqrt)
    (op,) = record(torch.ops.aten._euclidean_dist, torch.from_numpy(x), torch.from_numpy(y))
    agree(tally, result, torch.cdist(torch.from_numpy(x), torch.from_numpy(y)), op)
    forced = make("aten._cdist_forward", [x, y], [(p, r)], p=2.0, compute_mode=1)
    assert work_of(forced) == tally.work()


@RELAXED
@given(p=SMALL, r=SMALL, m=SMALL, order=st.sampled_from([1.0, 2.0]))
def test_gradients_of_distances(p, r, m, order):
    x, y, g = data(p, m), data(r, m) + 1, data(p, r)
    t = torch.from_numpy(x).requires_grad_()
    distances = torch.cdist(t, torch.from_numpy(y), p=order, compute_mode="donot_use_mm_for_euclid_dist")
    distances.backward(torch.from_numpy(g))
    tally = Tally()
    xs, ys, gs = tally.array(x), tally.array(y), tally.array(g)
    result = tally.zeros(x.shape)
    for i, j, k in np.ndindex(p, r, m):
        d = xs[i, k] - ys[j, k]
        tally["cmp"] += 1  # of the sign, or of the distance with 0
        slope = gs[i, j] * math.copysign(1, d.value) if order == 1 else gs[i, j] * d / distances[i, j].item()
        result[i, k] = result[i, k] + slope
    np.testing.assert_allclose(values(result), t.grad, rtol=1e-7, atol=1e-9)
    assert work_of(make("aten._cdist_backward", [g, x, y, g], [x], p=order)) == tally.work()
    with pytest.raises(UnknownWork, match="order 3") as caught:
        work_of(make("aten._cdist_backward", [g, x, y, g], [x], p=3.0))
    assert caught.value.components == frozenset(SINGLE_COMPONENTS)


def test_distances_within_one_set_and_of_two_tensors():
    """Every two rows are a pair; the whole of two tensors is one."""
    x = data(4, 3)
    (op,) = [op for op in record(torch.pdist, torch.from_numpy(x)) if "pdist" in op.op]
    pairs = make("aten._cdist_forward", [(1, 3), (6, 3)], [(1, 6)], p=2.0)
    assert work_of(op) == work_of(pairs)
    (op,) = [op for op in record(torch.dist, torch.from_numpy(x), torch.from_numpy(x + 1)) if op.op == "aten.dist"]
    assert work_of(op) == work_of(make("aten._cdist_forward", [(1, 12), (1, 12)], [(1, 1)], p=2.0))
    each = work_of(make("aten._cdist_backward", [(1, 6), (1, 3), (6, 3), (1, 6)], [(1, 3)], p=2.0))
    back = work_of(make("aten._pdist_backward", [(6,), (4, 3), (6,)], [(4, 3)], p=2.0))
    assert back - each == sampling.ADD * (6 * 3)
