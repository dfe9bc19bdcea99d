"""The windows of TensorFlow's pools, forward and backward, clipped to the input."""

from __future__ import annotations

from ...core.records import Op
from ...core.work import UnknownWork
from ..pooling import Axis, clipped_reads, same_padding
from ..shapes import attr, ints

Sizes = tuple[int, ...]


def windows(op: Op, wide: Sizes, small: Sizes, taps: Sizes = (), rates: Sizes = ()) -> tuple[int, int]:
    """(elements read, windows that read any) of a pool from ``wide`` to ``small``.

    All lists have a number for each dimension, batch and channels included, in the order of ``data_format``: ksize unless
    ``taps`` is given, strides, rates (1 unless given), and two of explicit_paddings.
    """
    taps, strides = taps or ints(op, "ksize"), ints(op, "strides")
    rates = rates or (1,) * len(taps)
    if not len(wide) == len(small) == len(taps) == len(strides) == len(rates):
        raise UnknownWork(f"{op.op} of {list(wide)} with windows of {list(taps)}")
    sides = list(zip(wide, small, taps, strides, rates, strict=True))
    padding = attr(op, "padding")
    if padding == "EXPLICIT":
        before = ints(op, "explicit_paddings")[::2]
    elif padding == "SAME":
        before = tuple(same_padding(*side) // 2 for side in sides)
    elif padding == "VALID":
        before = (0,) * len(sides)
    else:
        raise UnknownWork(f"{op.op} with the padding {padding}")
    return clipped_reads(1, [Axis(*side[:4], edge, side[4]) for side, edge in zip(sides, before, strict=True)])
