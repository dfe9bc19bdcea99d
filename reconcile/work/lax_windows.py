"""JAX's windows: reductions over them, and the gradients of their maxima. Windows are dense: padding counts."""

from __future__ import annotations

from ..core.records import Op
from ..core.work import Work, formula, prod
from . import pooling
from .elementwise import ADD
from .shapes import ints, n_in, n_out

_WINDOWS = "jax/_src/lax/windowed_reductions.py"


@formula("lax.reduce_window_sum", source=f"window - 1 adds per output element: {_WINDOWS}")
def _window_sum(op: Op) -> Work:
    outputs = n_out(op)
    return ADD * (outputs * max(prod(ints(op, "window_dimensions")) - 1, 0))


@formula(
    "lax.reduce_window_max", "lax.reduce_window_min", source=f"window - 1 comparisons per output element: {_WINDOWS}"
)
def _window_max(op: Op) -> Work:
    outputs = n_out(op)
    return pooling.max_pool(outputs, prod(ints(op, "window_dimensions")))


@formula("lax.select_and_gather_add", source=f"the extremum sought, the tangent read where it is: {_WINDOWS}")
def _select_and_gather(op: Op) -> Work:
    outputs = n_out(op)
    return pooling.max_pool(outputs, prod(ints(op, "window_dimensions")))


@formula("lax.select_and_scatter_add", source=f"the extremum sought again, the gradient added where it was: {_WINDOWS}")
def _select_and_scatter(op: Op) -> Work:
    # source (the gradient), operand
    gradients = n_in(op)
    return pooling.max_pool(gradients, prod(ints(op, "window_dimensions"))) + ADD * gradients
