"""Formulas of ATen operators that sort, select and search: only comparisons, whatever the data (work/ordering.py)."""

from __future__ import annotations

from ...core.records import Op
from ...core.work import Work, formulas
from .. import ordering
from ..common_formulas import per_input
from ..elementwise import CMP, reduction
from ..shapes import attr, n_in, n_out, out_shape, rows_along, shape


def _order_values(op: Op) -> Work:
    # sort keeps all n of the dimension; a scalar is one row of one
    rows, n = rows_along(op, attr(op, "dim", -1))
    return ordering.largest(rows, n, out_shape(op)[attr(op, "dim", -1)] if shape(op) else 1)


def _msort(op: Op) -> Work:
    rows, n = rows_along(op, 0)
    return ordering.largest(rows, n, n)


def _median(op: Op) -> Work:
    rows, n = rows_along(op, op.attrs.get("dim"))
    return ordering.kth(rows, n, (n + 1) // 2)


def _search(op: Op) -> Work:
    # searchsorted: (*, n), values; bucketize: values, (n,); a scalar value is not among the tensors
    edges = shape(op, 0 if op.op == "aten.searchsorted" else len(op.inputs) - 1)
    return ordering.search_sorted(n_out(op), edges[-1])


formulas({
    "topk sort argsort": (
        "ordering.largest, one definition whatever the data: ATen native/TopKImpl.h, native/Sorting.cpp", _order_values
    ),
    "msort": ("ordering.largest of the first dimension: ATen native/Sorting.cpp (msort)", _msort),
    "kthvalue": (
        "ordering.kth: ATen native/Sorting.cpp (kthvalue_out_impl_cpu)",
        lambda op: ordering.kth(*rows_along(op, attr(op, "dim", -1)), int(attr(op, "k", 1))),
    ),
    "median": ("ordering.kth, the lower one of two: ATen native/Sorting.cpp (median_with_indices_impl)", _median),
    "searchsorted bucketize": (
        "ordering.search_sorted, one search per value: ATen native/Bucketization.cpp (cus_lower_bound)", _search
    ),
    "_unique2 _unique": ("ordering.distinct: ATen native/Unique.cpp", lambda op: ordering.distinct(n_in(op))),
    "cummax cummin": (
        "N - R comparisons: ATen native/ReduceOps.cpp (cummax_cummin_helper)",
        lambda op: reduction(n_in(op), rows_along(op, attr(op, "dim"))[0], CMP),
    ),
    "count_nonzero": ("each element compared with 0: ATen native/TensorAdvancedIndexing.cpp", per_input(CMP)),
}, "aten.")  # fmt: skip
