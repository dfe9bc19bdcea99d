"""``setup_of``: the options of ``reconcile mfu``, or the keys of a TOML file of ``mfu compare``, as a Setup."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from ...core.errors import UsageError
from ..llm.config import SEQ
from .peaks import find, stated_peak
from .printed import Printed, count, rate, read_number, share, work
from .setup import Setup, stated_numerator, throughput
from .shapes import Numerator


def setup_of(asked: Mapping[str, Any], peaked: bool = True, rated: bool = True) -> Setup:
    """The setup. ``peaked`` and ``rated``: a peak and a rate are needed. Raises UsageError for what does not go together."""

    def read_option(name: str, how: Callable[[str, str], Printed] = read_number) -> Printed | None:
        text = asked.get(name)
        return None if text is None else how(str(text), f"--{name.replace('_', '-')}")

    device = find(str(asked["device"])) if asked.get("device") else None
    dtype = str(asked.get("dtype") or "bf16")
    own = read_option("peak", rate)
    peak = stated_peak(dtype, own) if own is not None else device.peak(dtype) if device is not None else None
    if peaked and peak is None:
        raise UsageError("a utilisation needs the peak of a device: give --device, or its FLOP/s with --peak.")
    flops = read_option("flops_per_second", rate)
    tokens = throughput(
        read_option("tokens_per_second"), read_option("step_seconds"), read_option("tokens_per_step", count)
    )
    if rated and flops is None and tokens is None:
        raise UsageError(
            "no throughput is stated: give --flops-per-second, or --tokens-per-second (or --step-seconds and "
            "--tokens-per-step) with --flops-per-token or --config."
        )
    if flops is not None and tokens is not None:
        raise UsageError("--flops-per-second states the whole rate: leave tokens and steps out.")
    spoken = not rated and flops is None and (asked.get("flops_per_token") or asked.get("config"))
    padding = asked.get("padding")
    return Setup(
        devices=int(asked.get("devices") or 1),
        device=device,
        peak=peak,
        flops=flops,
        tokens=tokens,
        numerators=_numerators(asked, read_option("flops_per_token", work)) if tokens is not None or spoken else (),
        splits=tuple((name, int(asked[name])) for name in ("tp", "cp", "pp") if (asked.get(name) or 1) > 1),
        accumulation=int(asked.get("accumulation") or 1),
        padding=Fraction(0) if padding is None else share(str(padding), "--padding"),
        recompute=asked.get("recompute") or "",
    )


def _numerators(asked: Mapping[str, Any], per_token: Printed | None) -> tuple[Numerator, ...]:
    config = asked.get("config")
    if (per_token is None) == (config is None):
        raise UsageError("tokens need their FLOPs: give either --flops-per-token or --config config.json.")
    if per_token is not None:
        if asked.get("seq") or asked.get("formula"):
            raise UsageError("--seq and --formula go with --config.")
        return (stated_numerator("stated", per_token),)
    from .models import formulas

    return formulas(Path(str(config)), int(asked.get("seq") or SEQ), str(asked.get("formula") or "palm"))
