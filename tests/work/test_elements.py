"""Formulas of elementwise ops and reductions against loops that count, and the loops' values against torch's."""

from __future__ import annotations

import math

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from reconcile.work import work_of
from tests.work import counting, oracle
from tests.work.beside_torch import RELAXED, SMALL, agree, data
from tests.work.counting import Tally
from tests.work.records_by_hand import make

F = torch.nn.functional


@RELAXED
@given(rows=SMALL, n=st.integers(1, 5))
def test_reductions(rows, n):
    x = np.abs(data(rows, n)) + 0.1
    loops = {
        "sum": counting.total,
        "mean": lambda row: counting.total(row) / float(len(row)),
        "amax": counting.largest,
        "var": lambda row: oracle.centred(row)[1],
        "std": lambda row: oracle.centred(row)[1].special(math.sqrt),
        "linalg_vector_norm": lambda row: counting.total([v * v for v in row]).special(math.sqrt),
    }
    for name, loop in loops.items():
        tally = Tally()
        result = np.array([loop(row) for row in tally.array(x)], dtype=object)
        function = torch.linalg.vector_norm if "norm" in name else getattr(torch, name)
        options = {"correction": 0} if name in ("var", "std") else {}
        agree(
            tally, result, function(torch.from_numpy(x), dim=1, **options), make(f"aten.{name}", [(rows, n)], [(rows,)])
        )
    for name, twin in (("Sum", "sum"), ("Mean", "mean"), ("Max", "amax")):
        assert work_of(make(name, [(rows, n), (1,)], [(rows,)])) == work_of(
            make(f"aten.{twin}", [(rows, n)], [(rows,)])
        )


@RELAXED
@given(rows=SMALL, n=st.integers(1, 5))
def test_logsumexp(rows, n):
    def loop(row):
        top = counting.largest(row)
        assert not top.max(-top.value).equals(math.inf)
        return counting.total([(v - top).special(math.exp) for v in row]).special(math.log) + top

    x = data(rows, n)
    tally = Tally()
    result = np.array([loop(row) for row in tally.array(x)], dtype=object)
    agree(tally, result, torch.logsumexp(torch.from_numpy(x), 1), make("aten.logsumexp", [(rows, n)], [(rows,)]))
