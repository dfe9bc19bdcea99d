"""The utilisation of a device by a step: what ran over what the device could have done in that time."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ...core.errors import UsageError, short
from ...core.records import RECOMPUTATION
from ...core.registry import products


def peak_of(device: str, dtype: str) -> int:
    """The dense FLOP/s of one device. Raises UsageError for an unknown device or a dtype that it lacks."""
    if "mfu" not in products():
        raise UsageError("this installation has no table of devices: leave device= out.")
    from ..mfu.peaks import find

    return find(device).peak(dtype).dense


def utilisation(flops: Mapping[str, int], seconds: float, peak: int) -> dict[str, float]:
    """MFU, which leaves recomputed activations out, HFU, which has them, and their denominator. Raises UsageError."""
    if not (0 < seconds < math.inf):
        raise UsageError(f"a step took {short(seconds)} seconds, but a time above 0 is wanted.")
    most = seconds * peak
    once = flops["flops"] - flops.get(f"flops/{RECOMPUTATION}", 0)
    return {"mfu": once / most, "hfu": flops["flops"] / most, "peak": peak}
