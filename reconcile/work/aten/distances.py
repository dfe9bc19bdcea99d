"""Formulas of ATen's distances between points (cdist, pdist, dist), and of their gradients."""

from __future__ import annotations

from ...core.records import Op
from ...core.work import SINGLE, UnknownWork, Work, formula
from ..contraction import dots
from ..elementwise import ADD, CMP, DIV, MUL, vector_norm
from ..shapes import attr, n_in, n_out, shape

_KERNEL = "ATen native/Distance.cpp, native/cpu/DistanceOpsKernel.cpp"
_WIDE = 25
"""With more points than this, PyTorch by default computes Euclidean distances by a matrix product."""


def _points(op: Op, order: float) -> Work:
    """For each pair, the norm of the difference of two points of M coordinates."""
    coordinates = n_out(op) * shape(op)[-1]
    return Work(add=coordinates) + vector_norm(coordinates, n_out(op), order)


@formula(
    "aten._euclidean_dist",
    source="|x|^2 - 2 x y + |y|^2 as one product of (-2 x, |x|^2, 1) and (y, 1, |y|^2), clamped at 0, its root: "
    "ATen native/Distance.cpp (_euclidean_dist)",
)
def _euclidean(op: Op) -> Work:
    # x (*, P, M), y (*, R, M) -> (*, P, R)
    first, second, m = n_in(op), n_in(op, 1), shape(op)[-1]
    squares = Work(mul=first + second, add=first + second - (first + second) // m if m else 0)
    return squares + Work(mul=first) + dots(n_out(op), m + 2) + Work(cmp=n_out(op), special=n_out(op))


@formula("aten._cdist_forward", "aten.cdist", source=f"the norm of the difference of every pair: {_KERNEL}")
def _cdist(op: Op) -> Work:
    order, mode = float(attr(op, "p")), op.attrs.get("compute_mode") or 0
    rows = max(shape(op)[-2], shape(op, 1)[-2])
    if order == 2 and (mode == 1 or (mode == 0 and rows > _WIDE)):
        return _euclidean(op)
    return _points(op, order)


@formula("aten._pdist_forward", "aten.pdist", source=f"the norm of the difference of every two rows: {_KERNEL}")
def _pdist(op: Op) -> Work:
    return _points(op, float(attr(op, "p", 2)))


@formula("aten.dist", source="the norm of the difference: ATen native/Distance.cpp (dist)")
def _dist(op: Op) -> Work:
    n = max(n_in(op), n_in(op, 1))
    return Work(add=n) + vector_norm(n, 1, float(attr(op, "p", 2)))


def _slope(op: Op) -> Work:
    """For one coordinate of one pair: the difference; p = 1: g sign(d); p = 2: dist == 0 ? 0 : g d / dist."""
    order = float(attr(op, "p"))
    if order not in (1, 2):
        raise UnknownWork(f"{op.op} of order {order:g} has no formula, only orders 1 and 2", SINGLE)
    return ADD + CMP + MUL + (DIV if order == 2 else Work())


@formula("aten._cdist_backward", source=f"per coordinate of every pair its slope, added: {_KERNEL}")
def _cdist_backward(op: Op) -> Work:
    # g (*, P, R), x (*, P, M), y (*, R, M), distances
    coordinates = n_in(op) * shape(op, 1)[-1]
    return (_slope(op) + ADD) * coordinates


@formula(
    "aten._pdist_backward",
    source=f"per coordinate of every pair its slope, added to the one and off the other: {_KERNEL}",
)
def _pdist_backward(op: Op) -> Work:
    # g (pairs,), x (N, M), distances
    coordinates = n_in(op) * shape(op, 1)[-1]
    return (_slope(op) + ADD * 2) * coordinates
