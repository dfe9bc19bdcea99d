"""Sums of counts in float32, as XLA computes them and thop did until April 2020: above 2^24, a sum is rounded.

A hook of thop adds ``torch.Tensor([int(ops)])`` to its module's buffer (count_hooks.py:27), and profile adds the buffers of all
modules without children in the order of ``model.modules()`` (profile.py:102).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable

EXACT = 1 << 24
"""Up to here float32 holds every whole number."""


def float32(value: float) -> float:
    """The nearest number that float32 holds, the even one of two. ``value`` is a float64, and exact below 2^53. Raises
    OverflowError for a number that float32 does not hold."""
    nearest: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return nearest


def float32_sum(addends: Iterable[tuple[int, int]]) -> int:
    """The sum of (amount, times) pairs in float32: each amount is added that often, one after the other; every sum is rounded.

    Numbers that float32 does not hold are added as they are: thop has no total then, so no ledger of it has them.
    """
    numbers = list(addends)
    total = 0.0
    try:
        for amount, times in numbers:
            if total + amount * times <= EXACT:
                total += amount * times
            else:
                total = _add_repeatedly(total, float32(float(amount)), times)
    except OverflowError:
        return sum(amount * times for amount, times in numbers)
    return int(total)


def _add_repeatedly(total: float, each: float, times: int) -> float:
    """``total`` after ``each`` was added to it ``times`` times.

    Between two powers of two float32 holds multiples of one unit. There a sum goes up by the same number of units each time,
    except the first times, which round half a unit to an even sum: as soon as two steps are equal, all of these are taken at
    once.
    """
    while times:
        total, times = float32(total + each), times - 1
        second = float32(total + each)
        step = second - total
        if not step:
            return total
        room = int((2.0 ** math.frexp(total)[1] - total) // step) - 1
        if room > 0 and float32(second + each) - second == step:
            at_once = min(times, room)
            total, times = total + at_once * step, times - at_once
    return total
