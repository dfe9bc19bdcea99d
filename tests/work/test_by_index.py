"""Reductions by index, and windows: loops over numbers that count, whose values are torch's."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from reconcile.core.records import Tensor
from reconcile.work import UnknownWork, work_of
from tests.work.beside_torch import RELAXED, SMALL, agree, data
from tests.work.counting import Num, Tally
from tests.work.records_by_hand import make
from tests.work.torch_records import record

STEPS = {"sum": Num.__add__, "mean": Num.__add__, "prod": Num.__mul__, "amax": Num.max, "amin": Num.min}


def reduced(tally, start, index, values, kind):
    """One step per value onto its place; of a mean, counts of values and a division by at least 1."""
    result = start.copy()
    counts = [Num(1.0, tally) for _ in start]
    for place, value in zip(index, values, strict=True):
        result[place] = STEPS[kind](result[place], value)
        if kind == "mean":
            counts[place] = counts[place] + 1.0
    if kind == "mean":
        for place, count in enumerate(counts):
            assert not count.equals(0.0)
            result[place] = result[place] / count
    return result


@pytest.mark.filterwarnings("ignore:index_reduce")
@RELAXED
@given(kind=st.sampled_from(sorted(STEPS)), n=SMALL, index=st.lists(st.integers(0, 2), min_size=1, max_size=5))
def test_reductions_by_index(kind, n, index):
    start, values = data(3, n), data(len(index), n) + 2
    tally = Tally()
    first, rest = tally.array(start), tally.array(values)
    columns = [reduced(tally, first[:, c], index, rest[:, c], kind) for c in range(n)]
    result = np.array(columns, dtype=object).T
    t, s, places = torch.from_numpy(start), torch.from_numpy(values), torch.tensor(index)
    wide = places[:, None].expand(-1, n).contiguous()
    agree(tally, result, t.scatter_reduce(0, wide, s, kind), record(t.scatter_reduce, 0, wide, s, kind)[-1])
    if kind != "sum":
        agree(tally, result, t.index_reduce(0, places, s, kind), record(t.index_reduce, 0, places, s, kind)[-1])


def test_a_reduction_of_another_kind_is_unknown():
    index = Tensor((2, 4), "int64")
    with pytest.raises(UnknownWork, match="reduce='median'"):
        work_of(make("aten.scatter_reduce", [(2, 4), index, (2, 4)], [(2, 4)], reduce="median"))
    with pytest.raises(UnknownWork, match="initial=1"):
        work_of(make("aten.segment_reduce", [(9, 2)], [(3, 2)], reduce="sum", initial=1))


@RELAXED
@given(
    kind=st.sampled_from(["sum", "mean", "max", "min", "prod"]),
    lengths=st.lists(st.integers(1, 3), min_size=1, max_size=3),
)
def test_segments(kind, lengths):
    x = data(sum(lengths)) + 2
    tally = Tally()
    numbers, result, start = tally.array(x), [], 0
    for length in lengths:
        first, *rest = numbers[start : start + length]
        for item in rest:
            first = {"sum": STEPS["sum"], "mean": STEPS["sum"], "max": Num.max, "min": Num.min, "prod": Num.__mul__}[
                kind
            ](first, item)
        result.append(first / float(length) if kind == "mean" else first)
        start += length
    t, sizes = torch.from_numpy(x), torch.tensor(lengths)
    (op,) = [op for op in record(torch.segment_reduce, t, kind, lengths=sizes) if op.op == "aten.segment_reduce"]
    agree(tally, np.array(result, dtype=object), torch.segment_reduce(t, kind, lengths=sizes), op)


@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize(("name", "alpha"), [("hann_window", 0.5), ("hamming_window", 0.54)])
def test_windows(name, alpha, periodic):
    n, tally = 6, Tally()
    step = 2 * math.pi / (n if periodic else n - 1)
    computed = [Num(float(i), tally) * step for i in range(n + periodic)]
    result = np.array([x.special(math.cos) * (alpha - 1.0) + alpha for x in computed], dtype=object)[:n]
    function = getattr(torch, name)
    (op,) = [op for op in record(function, n, periodic, dtype=torch.float64) if op.op == f"aten.{name}"]
    agree(tally, result, function(n, periodic, dtype=torch.float64), op)


def test_a_softmax_with_a_mask_is_dense():
    mask = Tensor((4, 5), "bool")
    plain = work_of(make("aten._softmax", [(4, 5)], [(4, 5)], dim=-1))
    for dim in (1, None):
        assert work_of(make("aten._masked_softmax", [(4, 5), mask], [(4, 5)], dim=dim)) == plain
