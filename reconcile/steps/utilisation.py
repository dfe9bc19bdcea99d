"""The utilisation of a device by a step: what ran over what the device could have done in that time."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ..core.errors import UsageError, short
from ..engine.phases import PhaseRow


def peak_of(device: str, dtype: str) -> int:
    """The dense FLOP/s of one device. Raises UsageError for an unknown device, and for a dtype that it lacks."""
    from ..mfu.peaks import find

    return find(device).peak(dtype).dense


def utilisation(flops: Mapping[str, int], seconds: float, peak: int) -> dict[str, float]:
    """MFU, of forward and backward, HFU, of these and recomputed activations, and their denominator, for the FLOPs of a step by
    phase: ``flops/forward``. Raises UsageError."""
    if not (0 < seconds < math.inf):
        raise UsageError(f"a step took {short(seconds)} seconds, but a time above 0 is wanted.")
    most = seconds * peak
    row = PhaseRow("", {name.removeprefix("flops/"): each for name, each in flops.items()})
    return {"mfu": row.once / most, "hfu": row.ran / most, "peak": peak}
