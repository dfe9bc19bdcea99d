"""``Setup``: what a utilisation was computed from (throughput, FLOPs per token, devices, peak).

``setup_of`` makes it from the options of ``reconcile mfu``, or from the keys of a file of ``reconcile mfu compare``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from ...core.errors import UsageError
from ..llm.request import SEQ
from .closed_forms import Numerator
from .peaks import Device, Peak, find, stated_peak
from .printed_number import Printed, count, rate, read_number, share, work


@dataclass(frozen=True, slots=True)
class Setup:
    """A run of several devices. Either ``flops`` is stated, or ``tokens`` and the formulas.

    Attributes:
        devices: The number of devices.
        device: Which device it is; None if that is not known.
        peak: Its peak; None if none is stated.
        flops: FLOP/s of all devices; None if it is not stated.
        tokens: Tokens per second of all devices; None if it is not stated.
        numerators: The FLOPs per token by each formula, of which the first is the stated one.
        splits: The sizes by which people divide the world, by name.
        accumulation: The micro-batches of a step.
        padding: The share of padding tokens.
        recompute: ``"none"`` or ``"full"``: which activations are recomputed; '' if that is not known.
    """

    devices: int
    device: Device | None = None
    peak: Peak | None = None
    flops: Printed | None = None
    tokens: Printed | None = None
    numerators: tuple[Numerator, ...] = ()
    splits: tuple[tuple[str, int], ...] = ()
    accumulation: int = 1
    padding: Fraction = Fraction(0)
    recompute: str = ""

    @property
    def rate(self) -> Printed:
        """FLOP/s of all devices, by the stated formula."""
        if self.flops is not None:
            return self.flops
        if self.tokens is None or not self.numerators:
            raise UsageError("no throughput is stated: give --flops-per-second, or tokens and FLOPs per token.")
        work = self.numerators[0].total
        return Printed(self.tokens.text, self.tokens.value * work, self.tokens.half * work)

    @property
    def prints(self) -> tuple[tuple[int, str], ...]:
        """The stated peak as people print it; a peak of 1 without a device."""
        return self.peak.prints if self.peak is not None else ((1, ""),)

    def utilisation_at(self, peak: int) -> Printed:
        """The utilisation with this peak; the rate of a device if the peak is 1."""
        return self.rate.over(self.devices * peak)

    def utilisation_if_rounded(self, peak: int) -> Printed:
        """The same if the zeros at the end of the throughput are digits that were rounded away: 9,600 tokens/s."""
        shown = self.flops or self.tokens
        assert shown is not None
        rate = self.rate
        loose = Printed(rate.text, rate.value, rate.value * shown.loose.half / shown.value)
        return loose.over(self.devices * peak)


def throughput(
    tokens: Printed | None,
    step: Printed | None,
    per_step: Printed | None,
    each: Printed | None = None,
    devices: int = 1,
) -> Printed | None:
    """Tokens per second of all devices: as stated, of each device, or of a step. None if none is stated. Raises UsageError."""
    if tokens is not None:
        return tokens
    if each is not None:
        return Printed(
            f"{devices:,} x {each.text}" if devices > 1 else each.text, each.value * devices, each.half * devices
        )
    if step is None and per_step is None:
        return None
    if step is None or per_step is None:
        raise UsageError("a step needs both --step-seconds and --tokens-per-step.")
    low, high = per_step.low / step.high, per_step.high / step.low
    return Printed(f"{per_step.text} / {step.text} s", (low + high) / 2, (high - low) / 2)


def stated_numerator(name: str, per_token: Printed) -> Numerator:
    """FLOPs per token that you state, as a formula of one part."""
    return Numerator(name, f"{per_token.text} per token", "stated", {"stated": per_token.value})


def setup_of(asked: Mapping[str, Any], peaked: bool = True, rated: bool = True, measured: bool = False) -> Setup:
    """The setup that these options state. ``peaked`` and ``rated``: a peak and a rate are needed; ``measured``: the numbers are
    exact, not rounded. Raises UsageError for what does not go together."""

    def read_option(name: str, how: Callable[[str, str], Printed] = read_number) -> Printed | None:
        text = asked.get(name)
        found = None if text is None else how(str(text), f"--{name.replace('_', '-')}")
        return found if found is None or not measured else replace(found, half=Fraction(0))

    device = find(str(asked["device"])) if asked.get("device") else None
    dtype = str(asked.get("dtype") or "bf16")
    own = read_option("peak", rate)
    peak = stated_peak(dtype, own) if own is not None else device.peak(dtype) if device is not None else None
    if peaked and peak is None:
        raise UsageError("a utilisation needs the peak of a device: give --device, or its FLOP/s with --peak.")
    flops = read_option("flops_per_second", rate)
    seconds, in_step = read_option("step_seconds"), read_option("flops_per_step", work)
    if in_step is not None:
        if flops is not None or seconds is None:
            raise UsageError(
                "--flops-per-step goes with --step-seconds and states the whole rate: leave --flops-per-second out."
            )
        flops, seconds = throughput(None, seconds, in_step), None
    tokens = throughput(read_option("tokens_per_second"), seconds, read_option("tokens_per_step", count))
    if rated and flops is None and tokens is None:
        raise UsageError(
            "no throughput is stated: give --flops-per-second, or --step-seconds with --flops-per-step, or "
            "--tokens-per-second (or --step-seconds and --tokens-per-step) with --flops-per-token or --config."
        )
    if flops is not None and tokens is not None:
        raise UsageError("--flops-per-second or --flops-per-step states the whole rate: leave tokens and steps out.")
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
    from .config_formulas import formulas

    return formulas(Path(str(config)), int(asked.get("seq") or SEQ), str(asked.get("formula") or "palm"))
