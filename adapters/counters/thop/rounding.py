"""Whole numbers added in float32, as thop did until April 2020: from 2^24 on, a sum is rounded to what float32 holds.

A hook adds ``torch.Tensor([int(ops)])`` to its module's buffer (count_hooks.py:27), and profile adds the buffers of all modules
without children in the order of ``model.modules()`` (profile.py:102).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

EXACT = 1 << 24
"""Up to here float32 holds every whole number."""


def float32(value: float) -> float:
    """The nearest number that float32 holds, the even one of two. ``value`` is a float64, and exact below 2^53."""
    nearest: float = struct.unpack("f", struct.pack("f", value))[0]
    return nearest


def float32_sum(addends: Iterable[tuple[int, int]]) -> int:
    """Numbers as float32, each added as often as it says, one after the other; every sum is rounded."""
    total = 0.0
    for amount, times in addends:
        if total + amount * times <= EXACT:
            total += amount * times
            continue
        each = float32(float(amount))
        for _ in range(times):
            total = float32(total + each)
    return int(total)
