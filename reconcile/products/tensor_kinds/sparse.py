"""Formulas of ATen operators on sparse tensors: only stored values cause work, as many as the record says.

The work depends on the values, so it is that of the run. Two stored values at one place count twice, as the kernels compute them.
"""

from __future__ import annotations

from ...core.records import MEETING, STORED, Op, Tensor
from ...core.work import SINGLE_COMPONENTS, UnknownWork, Work, find, formulas, sparse_formula
from ...work.common_formulas import unknown_work_formula
from ...work.contraction import scale_product
from ...work.shapes import attr, n_out, out_shape, shape

OF_VALUES = "relu neg negative abs sign sgn sqrt square tanh sin sinh asin atan expm1 log1p"
"""Functions that are 0 at 0."""

_KERNEL = "ATen native/sparse/SparseTensorMath.cpp (s_addmm_out_sparse_dense_worker)"


def _stored_counts(op: Op) -> list[int | None]:
    counts = attr(op, STORED)
    if not isinstance(counts, (list, tuple)) or len(counts) != len(op.inputs):
        raise UnknownWork(f"{op.op}: {STORED} is {counts!r}, not a count for each of {len(op.inputs)} inputs")
    return list(counts)


def _product(op: Op, first: int) -> Work:
    """Each stored value of one factor times a row or a column of the other, onto the result: as many accumulators as there are
    results, or products if they are fewer.  For two sparse factors the record says how many pairs of values are multiplied."""
    counts, result = _stored_counts(op), out_shape(op)
    left, right = counts[first], counts[first + 1]
    if left is not None and right is not None and MEETING in op.attrs:
        shape(op, first), shape(op, first + 1)
        pairs, results = attr(op, MEETING)
        return Work(mac=pairs, accumulators=results)
    if (left is None) == (right is None) or any(count is not None for count in counts[:first]):
        raise UnknownWork(f"{op.op} of sparse tensors alone, or onto one: which of their values meet is not recorded")
    vector = len(shape(op, first + 1)) == 1
    across = 1 if vector else result[-1] if left is not None else result[-2]
    products = (left if left is not None else right or 0) * across
    return Work(mac=products, accumulators=min(products, n_out(op)))


def _addmm(op: Op) -> Work:
    work, beta, alpha = _product(op, 1), op.attrs.get("beta", 1), op.attrs.get("alpha", 1)
    if _stored_counts(op)[0] is None:
        return work + scale_product(n_out(op), beta, alpha)
    if beta != 0 and _stored_counts(op)[0] != 0:
        raise UnknownWork(
            f"{op.op} onto a sparse tensor: which places hold values decides what is added", SINGLE_COMPONENTS, work
        )
    return work + scale_product(work.accumulators, 0, alpha)


def _mm_reduce(op: Op) -> Work:
    products, kind = _product(op, 0), str(attr(op, "reduce"))
    if kind == "sum":
        return products
    if kind == "mean":
        raise UnknownWork(f"{op.op} divides where there are values", SINGLE_COMPONENTS, products)
    raise UnknownWork(f"{op.op} compares where there are values", SINGLE_COMPONENTS)


def _sspaddmm(op: Op) -> Work:
    # self (M, N) sparse, (M, K) sparse, (K, N)
    stored, columns = _stored_counts(op)[1], shape(op, 2)[-1]
    if stored is None:
        raise UnknownWork(f"{op.op} of a dense tensor")
    known = Work(mac=stored * columns)
    raise UnknownWork(
        f"{op.op} keeps every product, and what it adds is not recorded", (*SINGLE_COMPONENTS, "accumulators"), known
    )


def _multiply_sampled(op: Op) -> Work:
    # self (M, N) sparse, (M, K), (K, N)
    kept, k = _stored_counts(op)[0], shape(op, 1)[-1]
    if kept is None:
        raise UnknownWork(f"{op.op} sampled by a dense tensor")
    work = Work(mac=kept * k, accumulators=kept if k else 0)
    return work + scale_product(kept, op.attrs.get("beta", 1), op.attrs.get("alpha", 1))


def _of_values(op: Op) -> Work:
    counts, dense = _stored_counts(op), find(op.op)
    if len(op.inputs) != 1 or dense is None or counts[0] is None:
        raise UnknownWork(f"{op.op} of several tensors, one of them sparse", SINGLE_COMPONENTS)
    values = Tensor((counts[0],), op.inputs[0].dtype)
    return dense.compute(op._replace(inputs=(values,), outputs=(values,)))


formulas({
    "mm mv bmm matmul _sparse_mm _sparse_sparse_matmul": (
        f"a multiply-add per stored value and column, or per pair of values: {_KERNEL}, native/sparse/SparseMatMul.cpp",
        lambda op: _product(op, 0),
    ),
    "addmm _sparse_addmm addmv baddbmm": (
        f"a multiply-add per stored value and column; contraction.scale_product for self, beta and alpha: {_KERNEL}", _addmm
    ),
    "hspmm": (  # (M, K) sparse, (K, N) -> (M, N), of which it keeps the rows with values
        "a multiply-add per stored value and column: s_addmm on the rows that hold values", lambda op: _product(op, 0)
    ),
    "_sparse_mm_reduce_impl": (
        "a product per stored value and column, which is reduced: ATen native/cpu/SpmmReduceKernel.cpp", _mm_reduce
    ),
    "sspaddmm": ("a multiply-add per stored value and column: native/sparse/SparseTensorMath.cpp", _sspaddmm),
    "sparse_sampled_addmm": (
        "a dot product per stored value of self; contraction.scale_product for the rest: native/sparse/SparseBlasImpl.cpp",
        _multiply_sampled,
    ),
    f"{OF_VALUES} mul div": (
        "of the stored values alone, as on a dense tensor of them: ATen native/sparse/SparseUnaryOps.cpp", _of_values
    ),
    """_sparse_sum sum add sub _sparse_softmax _sparse_log_softmax _sparse_softmax_backward_data
    _sparse_log_softmax_backward_data _coalesce coalesce _sparse_sum_backward""": (
        "no products of matrices; the rest is not fixed: it depends on which places hold values",
        unknown_work_formula("the work of {} on sparse tensors is not fixed: it depends on which places hold values"),
    ),
}, "aten.", sparse_formula)  # fmt: skip
