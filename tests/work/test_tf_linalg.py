"""TensorFlow's linear algebra beside ATen's: one algorithm, one count; sparse and complex products by closed forms."""

from __future__ import annotations

import pytest
import tensorflow as tf

from reconcile.adapters.tensorflow.graphs import graph as tf_graph
from reconcile.adapters.tensorflow.graphs.liveness import live_operations
from reconcile.core.conventions import MATMUL
from reconcile.core.records import Tensor
from reconcile.work import ZERO, UnknownWork, Work, find, known_part, linalg, load, work_of
from tests.work.records_by_hand import make

B, N, K, M = 2, 4, 3, 5
A, RIGHT, TALL, ROW = (B, N, N), (B, N, K), (B, M, N), (B, 3)
L, S = tf.linalg, tf.signal


def records(function, *shapes):
    """Records of a function's live ops; sizes that only the data give are those of one run."""
    concrete = tf.function(function, autograph=False).get_concrete_function(*(tf.TensorSpec(s) for s in shapes))
    live = live_operations(concrete.outputs)
    return [tf_graph.op_record(o, o.name, "") for o in concrete.graph.get_operations() if o.name in live]


PAIRS = [
    (L.cholesky, (A,), make("aten.linalg_cholesky", [A], [A])),
    (L.solve, (A, RIGHT), make("aten.linalg_solve", [A, RIGHT], [RIGHT])),
    (L.inv, (A,), make("aten.linalg_inv", [A], [A])),
    (L.lu, (A,), make("aten.linalg_lu_factor", [A], [A])),
    (L.triangular_solve, (A, RIGHT), make("aten.linalg_solve_triangular", [A, RIGHT], [RIGHT])),
    (L.cholesky_solve, (A, RIGHT), make("aten.cholesky_solve", [RIGHT, A], [RIGHT])),
    (L.cross, (ROW, ROW), make("aten.linalg_cross", [ROW, ROW], [ROW])),
    (lambda x: tf.unique(x)[0], ((7,),), make("aten._unique2", [(7,)], [(7,)])),
]


@pytest.mark.parametrize(("function", "shapes", "aten"), PAIRS, ids=[aten.op for _, _, aten in PAIRS])
def test_as_aten(function, shapes, aten):
    assert sum(map(work_of, records(function, *shapes)), ZERO) == work_of(aten) != ZERO


def test_the_determinant():
    """By its logarithm, as TensorFlow has it: |u|, log |u| onto 0, u / |u| and its product with the sign; then sign * exp."""
    for n in (1, 3):
        rest = Work(cmp=n, special=n, add=n, div=n, mul=n)
        assert work_of(make("LogMatrixDeterminant", [(n, n)], [(), ()])) == linalg.lu(n, n) + rest
        assert work_of(make("MatrixDeterminant", [(n, n)], [()])) == linalg.lu(n, n) + rest + Work(special=1, mul=1)


NOTHING_MULTIPLIED = [
    (L.qr, (TALL,)),
    (L.svd, (TALL,)),
    (L.eigh, (A,)),
    (L.eigvalsh, (A,)),
    (L.eig, (A,)),
    (L.det, (A,)),
    (L.slogdet, (A,)),
    (S.rfft, ((B, 8),)),
    (S.rfft2d, ((B, 8, 8),)),
    (lambda x: S.irfft(S.rfft(x)), ((B, 8),)),
    (lambda x: tf.abs(S.stft(x, 4, 2)), ((B, 16),)),
    (L.tridiagonal_solve, ((B, 3, N), RIGHT)),
    (lambda x: tf.raw_ops.UniqueV2(x=x, axis=[0]).y, ((7, 2),)),
    (lambda x: L.solve(tf.cast(x, tf.complex64), tf.cast(x, tf.complex64)), (A,)),
]


@pytest.mark.parametrize(("function", "shapes"), NOTHING_MULTIPLIED)
def test_none_of_their_work_is_weighed_by_matmul(function, shapes):
    for op in records(function, *shapes):
        part = known_part(op)
        assert not MATMUL.weighs(part.unknown), (op.op, part.reason)
        assert part.work.mac == 0, op.op


def test_what_is_composed_of_products_counts_them():
    """pinv is an SVD and a product of V / S with U^T; lstsq two products beside a factorisation."""
    for function, shapes, products in (
        (L.pinv, (TALL,), B * N * M * N),
        (L.lstsq, (TALL, (B, M, K)), B * N * N * M + B * N * K * M),
    ):
        assert sum(known_part(op).work.mac for op in records(function, *shapes)) == products


STORED = 6


@pytest.mark.parametrize("adjoint", [False, True])
def test_a_sparse_product(adjoint):
    """A multiply-add per stored value and column."""
    places = [Tensor((STORED, 2), "int64"), (STORED,), Tensor((2,), "int64")]
    dense = (K, M) if adjoint else (M, K)
    op = make("SparseTensorDenseMatMul", [*places, dense], [(N, K)], adjoint_b=adjoint)
    assert work_of(op) == Work(mac=STORED * K, accumulators=min(STORED * K, N * K))
    with pytest.raises(UnknownWork):
        work_of(op._replace(inputs=(op.inputs[0], Tensor((None,), "float32"), *op.inputs[2:])))


@pytest.mark.parametrize("hints", [{"a_is_sparse": True}, {"b_is_sparse": True, "transpose_a": True}])
def test_a_hint_that_many_values_are_zeros_changes_no_product(hints):
    """(N, M) times (M, K), as without the hint."""
    left = (M, N) if "transpose_a" in hints else (N, M)
    ops = records(lambda a, b: tf.matmul(a, b, **hints), left, (M, K))
    (op,) = [op for op in ops if op.op == "SparseMatMul"]
    assert work_of(op) == Work(mac=N * M * K, accumulators=N * K)


def test_a_banded_product():
    """An N x N matrix has N - 1 values above the diagonal, N on it and N - 1 below."""
    ops = records(lambda d, x: L.tridiagonal_matmul(d, x, diagonals_format="compact"), (B, 3, N), RIGHT)
    assert sum(map(work_of, ops), ZERO) == Work(mac=B * (N + 2 * (N - 1)) * K, accumulators=B * N * K)


def test_complex_products():
    """Four multiply-adds onto two accumulators each; a magnitude is one function."""
    a, b = Tensor((N, M), "complex64"), Tensor((M, K), "complex64")
    out = Tensor((N, K), "complex64")
    assert work_of(make("MatMul", [a, b], [out])) == Work(mac=4 * N * M * K, accumulators=2 * N * K)
    assert work_of(make("BatchMatMulV2", [a, b], [out])) == work_of(make("MatMul", [a, b], [out]))
    assert work_of(make("ComplexAbs", [a], [Tensor((N, M), "float32")])) == Work(special=N * M)
    for part in ("Real", "Imag"):
        assert work_of(make(part, [a], [Tensor((N, M), "float32")])) == ZERO


INSIDE = """LRN LRNGrad CholeskyGrad Mfcc MatrixExponential MatrixLogarithm MatrixSquareRoot MatrixSolveLs NearestNeighbors
SparseMatrixMatMul SparseMatrixSparseMatMul QuantizedMatMul QuantizedConv2D"""


def test_what_multiplies_matrices_inside_is_on_no_list():
    load()
    assert [name for name in INSIDE.split() if find(name) is not None] == []
