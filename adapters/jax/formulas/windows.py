"""Work formulas of JAX's window reductions (pooling), and of the gradients of their maxima.

Windows are clipped to the operand: XLA's loop over a window tests each place, and skips padding and the holes of a
base_dilation (xla/service/elemental_ir_emitter.cc). What a program pads itself (lax.pad) is part of the operand, and so does JAX
before it runs ``select_and_scatter_add`` on a CPU or a GPU.
"""

from __future__ import annotations

from ....core.records import Op
from ....core.work import Work, formulas, prod
from ....work import pooling
from ....work.elementwise import ADD
from ....work.shapes import attr, ints, n_in, out_shape, shape

_WINDOWS = "jax/_src/lax/windowed_reductions.py"


def _windows(op: Op) -> tuple[int, int]:
    """(elements read, windows that read any) of a reduction."""
    wide, small = shape(op), out_shape(op)
    names = ("window_dimensions", "window_strides", "window_dilation", "base_dilation")
    taps, strides, dilation, spread = (ints(op, name) for name in names)
    before = [low for low, _ in attr(op, "padding")]
    sides = zip(wide, small, taps, strides, before, dilation, spread, strict=True)
    return pooling.clipped_reads(1, [pooling.Axis(*side) for side in sides])


def _sum(op: Op) -> Work:
    reads, windows = _windows(op)
    return ADD * (reads - windows)


def _sought_again(op: Op) -> Work:
    # source (the gradient), operand
    return pooling.max_pool(n_in(op) * prod(ints(op, "window_dimensions")), n_in(op)) + ADD * n_in(op)


formulas({
    "reduce_window_sum": (
        f"window - 1 adds per output element, the window clipped to the operand: {_WINDOWS}", _sum
    ),
    "reduce_window_max reduce_window_min": (
        f"window - 1 comparisons per output element, the window clipped to the operand: {_WINDOWS}",
        lambda op: pooling.max_pool(*_windows(op)),
    ),
    "select_and_gather_add": (
        f"the extremum sought, the window clipped to the operand, the tangent read where it is: {_WINDOWS}",
        lambda op: pooling.max_pool(*_windows(op)),
    ),
    "select_and_scatter_add": (
        f"the extremum sought again in an operand that is padded before, the gradient added where it was: {_WINDOWS}",
        _sought_again,
    ),
}, "lax.")  # fmt: skip
