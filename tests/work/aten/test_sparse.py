"""Sparse products: one multiply-add per stored value and column, counted while a loop multiplies; records are PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from reconcile.core.records import STORED, Tensor
from reconcile.core.work import SINGLE_COMPONENTS
from reconcile.work import ZERO, UnknownWork, Work, known_part, load, registered_formulas, work_of
from tests.work.beside_torch import RELAXED, SMALL, data
from tests.work.counting import Accumulator, Tally
from tests.work.records_by_hand import make
from tests.work.torch_records import record

load()
pytestmark = [pytest.mark.filterwarnings("ignore:Sparse "), pytest.mark.filterwarnings("ignore:torch.sparse")]
PLACES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=6)


def matrix(places):
    """3 x 4, with a value at each place; a place that is named twice has two."""
    return torch.sparse_coo_tensor(torch.tensor(places).T, torch.arange(1.0, len(places) + 1).double(), (3, 4))


def multiplied(tally, places, dense):
    """Each stored value times its row of ``dense``, onto the result: the first product onto each is not saved where
    there are more results than products."""
    columns = dense.shape[1]
    products = len(places) * columns
    grid = {index: Accumulator(tally, counted=i < products) for i, index in enumerate(np.ndindex(3, columns))}
    for number, (row, column) in enumerate(places):
        value = tally.array([number + 1.0])[0]
        for c in range(columns):
            grid[row, c].mac(value, dense[column, c])
    return np.array([[grid[r, c].value for c in range(columns)] for r in range(3)])


@RELAXED
@given(places=PLACES, columns=SMALL)
def test_a_sparse_matrix_times_a_dense_one(places, columns):
    a, x = matrix(places), data(4, columns)
    tally = Tally()
    expected = torch.from_numpy(x)
    np.testing.assert_allclose(multiplied(tally, places, tally.array(x)), a.to_dense() @ expected)
    (op,) = record(torch.mm, a, expected)
    assert work_of(op) == tally.work()
    op = record(torch.sparse.mm, a, expected)[-1]
    assert (op.op, work_of(op)) == ("aten._sparse_addmm", tally.work())
    added = record(torch.sparse.addmm, torch.ones(3, columns).double(), a, expected)[-1]
    assert work_of(added) == tally.work() + Work(add=3 * columns)
    kept = len(set(places))  # compressed ones keep one value per place
    (op,) = record(torch.mm, a.coalesce().to_sparse_csr(), expected)
    assert work_of(op).mac == kept * columns
    op = record(torch.mm, expected.T, a.T)[-1]
    assert work_of(op) == tally.work()
    op = record(torch.mv, a, expected[:, 0])[-1]
    assert work_of(op) == work_of(record(torch.mm, a, expected[:, :1])[-1])


@pytest.mark.parametrize("to_blocks", ["to_sparse_bsr", "to_sparse_bsc"])
def test_blocks_keep_every_value_of_theirs(to_blocks):
    """Of six blocks of 2 x 2 two hold a value: 8 values are kept, and converting computes nothing."""
    a = torch.zeros(4, 6).double()
    a[0, 0] = a[3, 5] = 1
    made = record(lambda: getattr(a, to_blocks)((2, 2)))
    assert [(op.op, work_of(op)) for op in made] == [(f"aten._{to_blocks}", ZERO)]
    if to_blocks == "to_sparse_bsr":  # PyTorch multiplies no others on a CPU
        (op,) = record(torch.mm, a.to_sparse_bsr((2, 2)), torch.ones(6, 5).double())
        assert work_of(op) == Work(mac=8 * 5, accumulators=4 * 5)


def test_a_product_sampled_at_places():
    a = matrix([(0, 1), (2, 3)]).coalesce().to_sparse_csr()
    (op,) = record(torch.sparse.sampled_addmm, a, torch.ones(3, 5).double(), torch.ones(5, 4).double())
    assert work_of(op) == Work(mac=2 * 5, accumulators=2, add=2)


def test_functions_of_the_stored_values():
    a = matrix([(0, 1), (2, 3), (2, 3)])
    for function, each in ((torch.relu, Work(cmp=1)), (torch.tanh, Work(special=1)), (lambda t: t * 2, Work(mul=1))):
        (op,) = record(function, a.coalesce())
        assert work_of(op) == each * 2
    (op,) = [op for op in record(torch.mul, a, a) if op.op == "aten.mul"]
    assert known_part(op).unknown == frozenset(SINGLE_COMPONENTS)


def test_moving_values_is_free_and_the_rest_has_no_products():
    a = matrix([(0, 1), (2, 3), (2, 3)])
    assert sum((work_of(op) for op in record(lambda: (a.t(), a.to_dense(), a._values()))), ZERO) == ZERO
    for function in (lambda: torch.sparse.softmax(a, 1), lambda: torch.sparse.sum(a, 1), lambda: a.coalesce()):
        unknown = frozenset().union(*(known_part(op).unknown for op in record(function)))
        assert unknown == frozenset(SINGLE_COMPONENTS)


def test_what_the_record_does_not_say_is_unknown():
    shapes = [(3, 4), (4, 2)]
    with pytest.raises(UnknownWork, match="which of their values meet"):
        work_of(make("aten.mm", shapes, [(3, 2)], **{STORED: [2, 3]}))
    with pytest.raises(UnknownWork, match="not a count for each"):
        work_of(make("aten.mm", shapes, [(3, 2)], **{STORED: [2]}))
    with pytest.raises(UnknownWork, match="on sparse tensors"):
        work_of(make("aten.layer_norm", [(3, 4)], [(3, 4)], **{STORED: [2], "normalized_shape": [4]}))
    with pytest.raises(UnknownWork, match="not fully known"):
        work_of(
            make(
                "aten.mm", [Tensor((None, 4), "float32"), (4, 2)], [Tensor((None, 2), "float32")], **{STORED: [2, None]}
            )
        )
    assert STORED not in make("aten.mm", shapes, [(3, 2)]).attrs
    assert [name for name in registered_formulas("sparse") if not hasattr(torch.ops.aten, name[5:])] == []


def pairs_of(first, second):
    """The products of two grids of numbers and zeros, one by one, and the places that get any."""
    rows, between, columns = len(first), len(second), len(second[0])
    met = [(r, c) for r in range(rows) for b in range(between) for c in range(columns) if first[r][b] and second[b][c]]
    return Work(mac=len(met), accumulators=len(set(met)))


GRIDS = st.tuples(
    st.lists(st.lists(st.integers(0, 2), min_size=4, max_size=4), min_size=3, max_size=3),
    st.lists(st.lists(st.integers(0, 2), min_size=5, max_size=5), min_size=4, max_size=4),
)


@RELAXED
@given(GRIDS)
def test_of_two_sparse_matrices_values_that_meet_are_multiplied(grids):
    first, second = (torch.tensor(grid, dtype=torch.float64) for grid in grids)
    expected = pairs_of(*grids)
    for product in (torch.sparse.mm, torch.mm, torch.matmul):
        op = record(product, first.to_sparse(), second.to_sparse())[-1]
        assert (op.op in ("aten._sparse_sparse_matmul", "aten.mm"), work_of(op)) == (True, expected)
    op = record(torch.sparse.mm, first.to_sparse_csr(), second.to_sparse_csr())[-1]
    assert (op.op, work_of(op)) == ("aten._sparse_addmm", expected)


def test_values_at_one_place_are_added_before_a_sparse_product():
    a = matrix([(0, 1), (0, 1), (2, 3)])
    op = record(torch.sparse.mm, a, matrix([(0, 2), (1, 0)]).t())[-1]
    assert work_of(op) == Work(mac=0)
    op = record(torch.sparse.mm, a, matrix([(0, 1), (1, 3)]).t())[-1]
    assert work_of(op) == Work(mac=2, accumulators=2)


def test_a_product_onto_a_sparse_matrix_has_its_products():
    a, b = matrix([(0, 1), (2, 3)]).to_sparse_csr(), torch.eye(4).double().to_sparse_csr()
    op = record(torch.sparse.addmm, matrix([(1, 1)]).to_sparse_csr(), a, b)[-1]
    part = known_part(op)
    assert (op.op, part.work, part.unknown) == (
        "aten._sparse_addmm",
        Work(mac=2, accumulators=2),
        frozenset(SINGLE_COMPONENTS),
    )


def test_rows_that_hold_values_and_products_that_are_kept():
    a, x = matrix([(0, 1), (2, 3)]), torch.ones(4, 5).double()
    op = record(torch.hspmm, a, x)[-1]
    assert (op.op, work_of(op)) == ("aten.hspmm", Work(mac=10, accumulators=10))
    op = record(torch.sspaddmm, matrix([(1, 1)]), a, torch.ones(4, 4).double())[-1]
    assert (op.op, known_part(op).work) == ("aten.sspaddmm", Work(mac=8))


def test_a_reduced_product():
    a, x = matrix([(0, 1), (2, 3)]).to_sparse_csr(), torch.ones(4, 5).double()
    ops = {kind: record(torch.sparse.mm, a, x, kind)[-1] for kind in ("sum", "mean", "amax")}
    products = Work(mac=10, accumulators=10)
    assert work_of(ops["sum"]) == products
    assert {kind: known_part(op)[:2] for kind, op in ops.items() if kind != "sum"} == {
        "mean": (products, frozenset(SINGLE_COMPONENTS)),
        "amax": (ZERO, frozenset(SINGLE_COMPONENTS)),
    }
