"""The windows of ATen's pools, forward and backward, clipped to the input."""

from __future__ import annotations

from ...core.records import Op
from ...core.work import prod
from ..pooling import Axis, adaptive_reads, clipped_reads
from ..shapes import ints

Sizes = tuple[int, ...]


def count_axes(op: Op) -> int:
    """The axes that the operator's name states: 2 of max_pool2d."""
    return int(op.op[op.op.index("d", op.op.index("pool")) - 1])


def windows(op: Op, wide: Sizes, small: Sizes) -> tuple[int, int]:
    """(elements read, windows that read any) of a pool from ``wide`` to ``small``.

    kernel_size, stride (that of the kernel if empty), padding and dilation have a number for each axis, or one for all.
    """
    axes = count_axes(op)
    taps = _each(op, "kernel_size", axes)
    stride = _each(op, "stride", axes) or taps
    before = _each(op, "padding", axes) or (0,) * axes
    dilation = _each(op, "dilation", axes) or (1,) * axes
    sides = zip(wide[-axes:], small[-axes:], taps, stride, before, dilation, strict=True)
    return clipped_reads(prod(small[:-axes]), [Axis(*side) for side in sides])


def adaptive_windows(op: Op, wide: Sizes, small: Sizes) -> tuple[int, int]:
    """(elements read, windows) of an adaptive pool from ``wide`` to ``small``."""
    axes = count_axes(op)
    return adaptive_reads(prod(wide[:-axes]), wide[-axes:], small[-axes:]), prod(small)


def _each(op: Op, name: str, axes: int) -> Sizes:
    """A number for each axis; none if the operator's record has none, or an empty list."""
    given = ints(op, name) if name in op.attrs else ()
    return given * axes if len(given) == 1 else given
