"""Parser of the numbers of a published utilisation, as exact intervals: ``156.18%``, ``1545.38T``, ``9.89e+14``, ``0.46``.

An interval holds every value that rounds to the printed digits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from ...core.errors import UsageError, short

LONGEST = 60
"""Longest text that is read as a number, in characters."""
SMALLEST, LARGEST = Fraction(1, 10**15), Fraction(10**36)
"""No amount of work, time or data of a run is beyond these."""
_POWERS = {"": 0, "k": 3, "m": 6, "g": 9, "b": 9, "t": 12, "p": 15, "e": 18}
_NUMBER = re.compile(
    r"[~≈]?\s*(?P<whole>\d{1,3}(?:[,_]\d{3})+|\d+)(?:\.(?P<part>\d+))?(?:[eE](?P<power>[+-]?\d{1,2}))?\s*(?P<rest>.*)",
    re.ASCII | re.DOTALL,
)
_FLOPS = re.compile(r"(?P<suffix>[KMGTPE]?)\s*FLOPS?", re.IGNORECASE)
_PER = re.compile(r"\s*(?:/|per\b)\s*", re.IGNORECASE)
SECOND = ("s", "sec", "second")
DEVICE = ("gpu", "device", "chip", "tpu", "die", "card")


@dataclass(frozen=True, slots=True)
class Printed:
    """A number as printed: its value, and half of the place of its last digit. A number that was computed has ``half`` 0."""

    text: str
    value: Fraction
    half: Fraction

    @property
    def low(self) -> Fraction:
        """The smallest number that is printed so."""
        return self.value - self.half

    @property
    def high(self) -> Fraction:
        """The largest number that is printed so."""
        return self.value + self.half

    @property
    def range_if_cut(self) -> tuple[Fraction, Fraction]:
        """The numbers that are printed so if the other digits are cut off."""
        return self.value, self.value + 2 * self.half

    def over(self, size: Fraction | int) -> Printed:
        """This number divided by one that is known exactly."""
        return Printed(self.text, self.value / size, self.half / size)

    @property
    def loose(self) -> Printed:
        """The same with the zeros at its end as digits that were rounded away: 4,550 may be any number from 4,545 to 4,555.

        Two digits stay, at least.
        """
        half, value = self.half, self.value
        while half and (value / (20 * half)).denominator == 1 and value / (20 * half) >= 10:
            half *= 10
        return Printed(self.text, value, half)


def exact(value: Fraction | int, text: str = "") -> Printed:
    """A number that is known exactly."""
    return Printed(text or str(value), Fraction(value), Fraction(0))


def read_number(text: str, what: str) -> Printed:
    """Read a number of a positive size with an optional K, M, G, B, T, P or E. ``what`` names it in messages."""
    number, rest = _split_unit(text, what)
    suffix = rest.strip().lower()
    if suffix not in _POWERS:
        raise UsageError(f"{what} {short(text)} is not a number. Write it as 1545.38, 9.6e3, 4,550 or 46.87G.")
    return _scale_number(text, number, _POWERS[suffix], what)


def count(text: str, what: str) -> Printed:
    """Read a number of things: exact if all of its digits are written (8,192), as printed with a suffix (4M)."""
    found = read_number(text, what)
    return exact(found.value, found.text) if re.fullmatch(r"[\d,_]+", found.text, re.ASCII) else found


def rate(text: str, what: str) -> Printed:
    """Read FLOP/s: ``1545.38T``, ``1545.38 TFLOP/s``, ``1.5e15``, ``430 TFLOPS``. Raises UsageError for FLOPs without a time."""
    number, rest = _split_unit(text, what)
    scale, per, spoken = _unit(rest.strip(), text, what)
    if spoken and not per and not rest.strip().endswith(("S", "s")):
        raise UsageError(
            f"{what} {short(text)} is an amount of work, but a rate is wanted. Write FLOP/s, such as 1545.38TFLOP/s."
        )
    return _scale_number(text, number, scale, what)


def work(text: str, what: str) -> Printed:
    """Read FLOPs: ``46.87G``, ``51.48 GFLOP``, ``874944921600``. Raises UsageError for a rate."""
    number, rest = _split_unit(text, what)
    scale, per, _ = _unit(rest.strip(), text, what)
    if "second" in per:
        raise UsageError(
            f"{what} {short(text)} is a rate, but an amount of work is wanted. Write FLOPs, such as 51.48GFLOP."
        )
    return _scale_number(text, number, scale, what)


def _split_unit(text: str, what: str) -> tuple[Printed, str]:
    plain = text.strip()
    match = _NUMBER.fullmatch(plain) if len(text) <= LONGEST else None
    if match is None:
        if re.match(r"[-−]\s*[.\d]", plain):
            raise UsageError(f"{what} {short(text)} is negative, but a number above 0 is wanted.")
        raise UsageError(f"{what} {short(text)} is not a number. Write it as 1545.38, 9.6e3, 4,550 or 46.87G.")
    part = match["part"] or ""
    value = Fraction(re.sub("[,_]", "", match["whole"]) + (f".{part}" if part else ""))
    ten = Fraction(10) ** int(match["power"] or 0)
    return Printed(plain, value * ten, ten / 10 ** len(part) / 2), match["rest"]


def _unit(rest: str, text: str, what: str) -> tuple[int, tuple[str, ...], bool]:
    """The power of ten, what it is per (second, device, token), and whether FLOPs are spelt out."""
    head, *per = _PER.split(rest)
    match = _FLOPS.fullmatch(head)
    suffix = (match["suffix"] if match else head).strip().lower()
    named = tuple(
        "second"
        if word.strip().lower() in SECOND
        else "device"
        if word.strip().lower() in DEVICE
        else word.strip().lower()
        for word in per
    )
    if suffix not in _POWERS or set(named) - {"second", "device", "token"}:
        raise UsageError(f"{what} {short(text)} has an unknown unit. Write a number and T, TFLOP/s or TFLOP.")
    return _POWERS[suffix], named, match is not None


def _scale_number(text: str, number: Printed, power: int, what: str) -> Printed:
    scale = Fraction(10) ** power
    if not SMALLEST <= number.value * scale <= LARGEST:
        raise UsageError(f"{what} is {short(text)}, but a number above 0 is wanted, from 1e-15 to 1e36.")
    return Printed(text.strip(), number.value * scale, number.half * scale)


@dataclass(frozen=True, slots=True)
class Claim:
    """A published utilisation, the rate of a device in FLOP/s, or the FLOPs of a training (``kind``: ``share``, ``rate``,
    ``work``)."""

    figure: Printed
    kind: str

    @property
    def text(self) -> str:
        """As printed."""
        return self.figure.text


def share(text: str, what: str) -> Fraction:
    """Read a share below 1: ``12%`` or ``0.12``."""
    number, rest = _split_unit(text, what)
    value = number.value / 100 if rest.strip() == "%" else number.value
    if rest.strip() not in ("", "%") or not 0 < value < 1:
        raise UsageError(f"{what} {short(text)} is not a share above 0 and below 1. Write it as 12% or 0.12.")
    return value


def claim(text: str) -> Claim:
    """Read ``156.18%``, ``0.46`` or ``430 TFLOP/s`` (of one device). Raises UsageError."""
    what = "the claim"
    number, rest = _split_unit(text, what)
    rest = rest.strip()
    if rest in ("%", "percent"):
        scaled = _scale_number(text, number, 0, what)
        return Claim(Printed(text.strip(), scaled.value / 100, scaled.half / 100), "share")
    if not rest:
        scaled = _scale_number(text, number, 0, what)
        if scaled.value > 20:
            raise UsageError(
                f"{what} {short(text)} has no unit: write {text.strip()}% for a utilisation, or "
                f"{text.strip()}TFLOP/s for the rate of a device."
            )
        return Claim(scaled, "share")
    return Claim(rate(text, what), "rate")
