"""Work formulas of JAX's window reductions (pooling), and of the gradients of their maxima. Padding counts as elements."""

from __future__ import annotations

from ....core.records import Op
from ....core.work import formulas, prod
from ....work import pooling
from ....work.elementwise import ADD
from ....work.shapes import ints, n_in, n_out

_WINDOWS = "jax/_src/lax/windowed_reductions.py"


def _window(op: Op) -> int:
    return prod(ints(op, "window_dimensions"))


formulas({
    "reduce_window_sum": (
        f"window - 1 adds per output element: {_WINDOWS}", lambda op: ADD * (n_out(op) * max(_window(op) - 1, 0))
    ),
    "reduce_window_max reduce_window_min": (
        f"window - 1 comparisons per output element: {_WINDOWS}", lambda op: pooling.max_pool(n_out(op), _window(op))
    ),
    "select_and_gather_add": (
        f"the extremum sought, the tangent read where it is: {_WINDOWS}",
        lambda op: pooling.max_pool(n_out(op), _window(op)),
    ),
    "select_and_scatter_add": (  # source (the gradient), operand
        f"the extremum sought again, the gradient added where it was: {_WINDOWS}",
        lambda op: pooling.max_pool(n_in(op), _window(op)) + ADD * n_in(op),
    ),
}, "lax.")  # fmt: skip
