"""Formulas of ATen operators that sort, select and search: only comparisons, whatever the data (work/ordering.py)."""

from __future__ import annotations

from ...core.records import Op
from ...core.work import Work, formula, prod
from .. import ordering
from ..elementwise import CMP, reduction
from ..shapes import attr, n_in, n_out, out_shape, shape


@formula(
    "aten.topk",
    "aten.sort",
    "aten.argsort",
    source="ordering.largest, one definition whatever the data: ATen native/TopKImpl.h, native/Sorting.cpp",
)
def _order_values(op: Op) -> Work:
    # sort keeps all n of the dimension; a scalar is one row of one
    rows, n = _rows(op, attr(op, "dim", -1))
    return ordering.largest(rows, n, out_shape(op)[attr(op, "dim", -1)] if shape(op) else 1)


def _rows(op: Op, dim: int | None) -> tuple[int, int]:
    """(rows, length) along a dimension, or all in one row; a scalar is one row of one."""
    sizes = shape(op)
    if dim is None or not sizes:
        return 1, n_in(op)
    return (prod(sizes) // sizes[dim] if sizes[dim] else 0), sizes[dim]


@formula("aten.msort", source="ordering.largest of the first dimension: ATen native/Sorting.cpp (msort)")
def _msort(op: Op) -> Work:
    rows, n = _rows(op, 0)
    return ordering.largest(rows, n, n)


@formula("aten.kthvalue", source="ordering.kth: ATen native/Sorting.cpp (kthvalue_out_impl_cpu)")
def _kthvalue(op: Op) -> Work:
    rows, n = _rows(op, attr(op, "dim", -1))
    return ordering.kth(rows, n, int(attr(op, "k", 1)))


@formula("aten.median", source="ordering.kth, the lower one of two: ATen native/Sorting.cpp (median_with_indices_impl)")
def _median(op: Op) -> Work:
    rows, n = _rows(op, op.attrs.get("dim"))
    return ordering.kth(rows, n, (n + 1) // 2)


@formula(
    "aten.searchsorted",
    "aten.bucketize",
    source="ordering.search_sorted, one search per value: ATen native/Bucketization.cpp (cus_lower_bound)",
)
def _search(op: Op) -> Work:
    # searchsorted: (*, n), values; bucketize: values, (n,); a scalar value is not among the tensors
    edges = shape(op, 0 if op.op == "aten.searchsorted" else len(op.inputs) - 1)
    return ordering.search_sorted(n_out(op), edges[-1])


@formula("aten._unique2", "aten._unique", source="ordering.distinct: ATen native/Unique.cpp")
def _unique(op: Op) -> Work:
    return ordering.distinct(n_in(op))


@formula("aten.cummax", "aten.cummin", source="N - R comparisons: ATen native/ReduceOps.cpp (cummax_cummin_helper)")
def _scan_extremes(op: Op) -> Work:
    rows, _ = _rows(op, attr(op, "dim"))
    return reduction(n_in(op), rows, CMP)


@formula("aten.count_nonzero", source="each element compared with 0: ATen native/TensorAdvancedIndexing.cpp")
def _count_nonzero(op: Op) -> Work:
    return CMP * n_in(op)
