"""``Setup``: what a utilisation was computed from, as stated: throughput, FLOPs per token, devices and peak."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from ...core.errors import UsageError
from .peaks import Device, Peak
from .printed import Printed
from .shapes import Numerator


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

    def stated(self, peak: int) -> Printed:
        """The utilisation with this peak; the rate of a device if the peak is 1."""
        return self.rate.over(self.devices * peak)

    def rounded(self, peak: int) -> Printed:
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
        return Printed(each.text, each.value * devices, each.half * devices)
    if step is None and per_step is None:
        return None
    if step is None or per_step is None:
        raise UsageError("a step needs both --step-seconds and --tokens-per-step.")
    low, high = per_step.low / step.high, per_step.high / step.low
    return Printed(f"{per_step.text} / {step.text} s", (low + high) / 2, (high - low) / 2)


def stated_numerator(name: str, per_token: Printed) -> Numerator:
    """FLOPs per token that you state, as a formula of one part."""
    return Numerator(name, f"{per_token.text} per token", "stated", {"stated": per_token.value})


def first(name: str, numerators: Sequence[Numerator]) -> tuple[Numerator, ...]:
    """The formulas with the named one at the front."""
    return (*(n for n in numerators if n.name == name), *(n for n in numerators if n.name != name))
