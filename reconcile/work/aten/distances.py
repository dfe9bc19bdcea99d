"""Formulas of ATen's distances between points (cdist, pdist, dist), and of their gradients."""

from __future__ import annotations

from ...core.records import Op
from ...core.work import SINGLE_COMPONENTS, UnknownWork, Work, formulas
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


def _euclidean(op: Op) -> Work:
    # x (*, P, M), y (*, R, M) -> (*, P, R)
    first, second, m = n_in(op), n_in(op, 1), shape(op)[-1]
    squares = Work(mul=first + second, add=first + second - (first + second) // m if m else 0)
    return squares + Work(mul=first) + dots(n_out(op), m + 2) + Work(cmp=n_out(op), special=n_out(op))


def _cdist(op: Op) -> Work:
    order, mode = float(attr(op, "p")), op.attrs.get("compute_mode") or 0
    rows = max(shape(op)[-2], shape(op, 1)[-2])
    if order == 2 and (mode == 1 or (mode == 0 and rows > _WIDE)):
        return _euclidean(op)
    return _points(op, order)


def _dist(op: Op) -> Work:
    n = max(n_in(op), n_in(op, 1))
    return Work(add=n) + vector_norm(n, 1, float(attr(op, "p", 2)))


def _slopes(op: Op, added: Work) -> Work:
    """For one coordinate of one pair: the difference; p = 1: g sign(d); p = 2: dist == 0 ? 0 : g d / dist; and it is added."""
    # g (*, P, R) or (pairs,), x (*, M), ...
    coordinates, order = n_in(op) * shape(op, 1)[-1], float(attr(op, "p"))
    if order not in (1, 2):
        raise UnknownWork(f"{op.op} of order {order:g} has no formula, only orders 1 and 2", SINGLE_COMPONENTS)
    return (ADD + CMP + MUL + (DIV if order == 2 else Work()) + added) * coordinates


formulas({
    "_euclidean_dist": (
        "|x|^2 - 2 x y + |y|^2 as one product of (-2 x, |x|^2, 1) and (y, 1, |y|^2), clamped at 0, its root: "
        "ATen native/Distance.cpp (_euclidean_dist)",
        _euclidean,
    ),
    "_cdist_forward cdist": (f"the norm of the difference of every pair: {_KERNEL}", _cdist),
    "_pdist_forward pdist": (
        f"the norm of the difference of every two rows: {_KERNEL}", lambda op: _points(op, float(attr(op, "p", 2)))
    ),
    "dist": ("the norm of the difference: ATen native/Distance.cpp (dist)", _dist),
    "_cdist_backward": (f"per coordinate of every pair its slope, added: {_KERNEL}", lambda op: _slopes(op, ADD)),
    "_pdist_backward": (
        f"per coordinate of every pair its slope, added to the one and off the other: {_KERNEL}",
        lambda op: _slopes(op, ADD * 2),
    ),
}, "aten.")  # fmt: skip
