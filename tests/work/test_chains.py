"""Chains of products that are one op where a graph shows them: the work of the parts that PyTorch runs."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import reconcile
from reconcile.core.work import SINGLE_COMPONENTS
from reconcile.work import ZERO, known_part, work_of
from tests.adapters.counters.small_nets import Does
from tests.work.beside_torch import RELAXED
from tests.work.records_by_hand import make
from tests.work.torch_records import record


def parts(function, *tensors):
    """The products that a call runs."""
    total = ZERO
    for op in record(function, *tensors):
        total = total + known_part(op).work.only(("mac", "accumulators"))
    return total


@RELAXED
@given(sizes=st.lists(st.integers(1, 5), min_size=3, max_size=7))
def test_many_products_in_the_cheapest_order(sizes):
    shapes = list(pairwise(sizes))
    tensors = [torch.ones(shape) for shape in shapes]
    ran = parts(lambda *given: torch.linalg.multi_dot(given), *tensors)
    for name in ("linalg_multi_dot", "chain_matmul"):
        assert work_of(make(f"aten.{name}", shapes, [(sizes[0], sizes[-1])])) == ran


@pytest.mark.parametrize("shapes", [[(3,), (3, 4), (4,)], [(3,), (3, 4)], [(2, 3), (3, 4), (4, 5), (5,)]])
def test_vectors_at_the_ends(shapes):
    ran = parts(lambda *given: torch.linalg.multi_dot(given), *map(torch.ones, shapes))
    assert work_of(make("aten.linalg_multi_dot", shapes, [()])).mac == ran.mac


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 7, 8, 13, 30])
def test_powers(n):
    ran = parts(lambda a: torch.linalg.matrix_power(a, n), torch.eye(3).expand(2, 3, 3))
    assert work_of(make("aten.linalg_matrix_power", [(2, 3, 3)], [(2, 3, 3)], n=n)) == ran


def test_a_power_of_the_inverse():
    part = known_part(make("aten.linalg_matrix_power", [(3, 3)], [(3, 3)], n=-5))
    assert (part.work, part.unknown) == (
        parts(lambda a: torch.linalg.matrix_power(a, -5), torch.eye(3)),
        frozenset(SINGLE_COMPONENTS),
    )


ONE = 6 * 6 * 6
CHAINS = {
    "power": (lambda x, w: torch.linalg.matrix_power(w, 5) + x, 3),
    "inverse": (lambda x, w: torch.linalg.matrix_power(w, -5) + x, 3),
    "multi_dot": (lambda x, w: torch.linalg.multi_dot([x, w, w]), 2),
    "chain_matmul": (lambda x, w: torch.chain_matmul(x, w, w), 2),
    "inner": (torch.inner, 1),
    "tensordot": (lambda x, w: torch.tensordot(x.t(), w.t(), dims=([0], [0])), 1),
    "addmm_": (lambda x, w: torch.zeros(6, 6).addmm_(x, w), 1),
    "baddbmm_": (lambda x, w: torch.zeros(1, 6, 6).baddbmm_(x[None], w[None])[0], 1),
    "addbmm_": (lambda x, w: torch.zeros(6, 6).addbmm_(x[None], w[None]), 1),
}
"""Name -> (chain, products in it); fvcore counts the one beside it."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name",
    [name if name in ("inverse", "multi_dot") else pytest.param(name, marks=pytest.mark.slow) for name in CHAINS],
)
def test_every_counter_is_explained_beside_another_product(name):
    chain, products = CHAINS[name]
    beside = Does(lambda m, x: chain(x, m.w) @ m.w, w=torch.nn.Parameter(torch.eye(6)))
    run = reconcile.run(torch=beside, inputs=(torch.ones(6, 6),))
    assert [figure.flops for figure in run.verdict.figures] == [2 * ONE * (products + 1)]
    assert {s.from_: s.residual for s in run.result.statements if s.residual} == {}
    by_name = {ledger.counter: ledger for ledger in run.result.ledgers}
    assert (by_name["fvcore"].total, by_name["thop"].total) == (ONE, 0)
