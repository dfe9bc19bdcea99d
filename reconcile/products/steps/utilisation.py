"""MFU and HFU of a step: its FLOP/s as a ratio to a device's peak, for ``reconcile watch --device`` and ``Step.metrics``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ...core.errors import UsageError, short
from ...core.escaping import quote_words
from ...core.registry import products
from ...engine.phases import PhaseRow


def peak_of(device: Any, dtype: Any) -> int:
    """The dense FLOP/s of one device. Raises UsageError for an unknown device, and for a dtype that it lacks. Either may be a
    framework's own object, such as ``torch.bfloat16``."""
    if "mfu" not in products():
        raise UsageError("this installation has no table of devices: name none.")
    from ..mfu.peaks import find

    named = dtype if isinstance(dtype, str) else getattr(dtype, "name", getattr(dtype, "__name__", dtype))
    return find(str(device)).peak(str(named).removeprefix("torch.")).dense


def utilisation(flops: Mapping[str, int], seconds: float, peak: int) -> dict[str, float]:
    """MFU, of forward and backward, HFU, of these and recomputed activations, and their denominator, for the FLOPs of a step by
    phase: ``flops/forward``. Raises UsageError."""
    if not (0 < seconds < math.inf):
        raise UsageError(f"a step took {short(seconds)} seconds, but a time above 0 is wanted.")
    most = seconds * peak
    row = sum_phases(flops)
    return {"mfu": row.mfu_flops / most, "hfu": row.hfu_flops / most, "peak": peak}


def sum_phases(flops: Mapping[str, int]) -> PhaseRow:
    """The FLOPs of a step by phase, ``flops/forward``, as a row of the table by phase."""
    return PhaseRow("", {name.removeprefix("flops/"): each for name, each in flops.items()})


def at_peak(flops: Mapping[str, int], what: str, device: str, dtype: str) -> str:
    """A sentence: the least time in which a device could take a step, whose ratio to the measured seconds is the MFU."""
    from ..mfu.peaks import find, tera

    peak = peak_of(device, dtype)
    least = utilisation(flops, 1, peak)
    ran = sum_phases(flops).mfu_flops
    words = ["reconcile", "mfu", "--device", device, "--dtype", dtype, "--flops-per-step", str(ran), "--step-seconds"]
    again = f"; with what it computes again, {least['hfu']:.4g} s for HFU" if least["hfu"] != least["mfu"] else ""
    return (
        f"MFU: at its peak of {tera(peak)} in {dtype}, {find(device).title} would take {least['mfu']:.4g} s for {what}{again}. "
        f"Divide that by the seconds S that yours takes: {quote_words(words)} S"
    )
