"""Parser of a published number such as ``4.1 GMACs``: ``figure`` reads its digits, their precision and its unit."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...core.errors import UsageError, short
from ...core.records import FLOP, MAC

LONGEST = 100
"""Longest text that is read as a number, in characters; its power of ten has up to two digits."""
PARAMETER = "parameter"
"""The unit of a number of parameters, which counts no operations."""
FEW = 3
"""Up to this number of digits, a figure agrees with many readings by chance."""


@dataclass(frozen=True, slots=True)
class PrintedFigure:
    """A number as printed: ``digits`` × ``unit``. An exact number has the unit 1. ``counts`` is MAC, FLOP or PARAMETER if the
    text says so, otherwise ''."""

    text: str
    digits: int
    unit: int
    counts: str = ""

    @property
    def exact(self) -> bool:
        """Whether every digit is given."""
        return self.unit == 1

    @property
    def value(self) -> int:
        """The number that it is, with zeros for the digits that it does not give."""
        return self.digits * self.unit

    @property
    def length(self) -> int:
        """The number of digits that it has."""
        return len(str(self.digits))

    @property
    def few(self) -> bool:
        """Whether it has so few digits that a far-fetched reading agrees with it by chance."""
        return self.length <= FEW

    def holds(self, value: int) -> bool:
        """Whether ``value`` rounds to these digits; a value halfway between two figures rounds to both."""
        return 2 * abs(value - self.value) <= self.unit if not self.exact else value == self.digits

    def cuts(self, value: int) -> bool:
        """Whether ``value`` has these digits if the others are cut off."""
        return self.value <= value < self.value + self.unit


_SPACES = "\u00a0\u2007\u2009\u202f"
"""Spaces that typesetters put between groups of digits: no-break, figure, thin, narrow no-break."""
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_POWERS = {
    "": 0, "k": 3, "thousand": 3, "m": 6, "mn": 6, "million": 6, "g": 9, "b": 9, "bn": 9, "billion": 9, "t": 12,
    "trillion": 12, "p": 15,
}  # fmt: skip
_MACS = r"macs?|madds?|mult(?:iply)?[- ](?:adds?|accumulates?|accumulations?)"
_FIGURE = re.compile(
    r"[~≈]?\s*"
    r"(?:(?P<dotted>\d{1,3}(?:\.\d{3}){2,})"
    r"|(?P<whole>\d+|\d{1,3}(?:(?P<gap>[,_' ])\d{3})(?:(?P=gap)\d{3})*)(?:\.(?P<part>\d+))?)"
    r"(?:[eE]\+?(?P<power>\d{1,2})|\s*[x×*·]\s*10(?:\^|\*\*)?(?P<raised>(?<=[\^*])\d{1,2}|[⁰¹²³⁴-⁹]{1,2}))?"
    r"\s*(?P<suffix>thousand|million|billion|trillion|mn|bn|[kmgbtp])?"
    rf"\s*(?:(?P<flop>flops?)|(?P<mac>{_MACS})|(?P<parameter>#?\s*param(?:eter)?s?)|ops|operations)?",
    re.IGNORECASE | re.ASCII,
)


_HEADING = re.compile(r"(#?\s*[a-z-]+)\s*\(([kmgbt])\)$", re.IGNORECASE)
"""The unit as the head of a column has it: ``Params (M)``, ``FLOPs (G)``."""
_POWER = re.compile(r"[~≈]?\s*[\d.,]+\s*(?:[eE]\+?|[x×*·]\s*10(?:\^|\*\*))\d{3,}\b.*", re.ASCII)
"""A number with a power of ten of more digits than a count can have."""
_NEGATIVE = re.compile(r"[-−]\s*[.\d]", re.ASCII)
_SHARE_OR_RATE = re.compile(r"\s*[\d.,]+.*(%|\b[mh]fu\b|flops?/s|\bper second\b)", re.IGNORECASE)
_BETWEEN = re.compile(r"\s*(?:[-–—…]|\.{2,3}|\bto\b)\s*")


def _refuse(plain: str) -> None:
    """Raise UsageError for a negative number and for a range, which are likelier than others."""
    if _NEGATIVE.match(plain):
        raise UsageError(f"{short(plain)} is negative, but a count is not. Leave out the sign.")
    if _SHARE_OR_RATE.match(plain[:LONGEST]):
        raise UsageError(f"{short(plain)} is a utilisation or a rate, not a count: explain it with `reconcile mfu`.")
    ends = _BETWEEN.split(plain[:LONGEST])
    if len(ends) == 2 and all(_FIGURE.fullmatch(end) for end in ends):
        raise UsageError(f"{short(plain)} is a range, but decode looks one number up. Give one of its ends.")


def figure(text: str) -> PrintedFigure:
    """Read a number as people print it. Raises UsageError for anything else, for fractions of an operation, and for a
    rounded 0, to which every count below half its place rounds."""
    plain = _HEADING.sub(r"\2 \1", re.sub(f"[{_SPACES}]", " ", text.strip()))
    parts = _FIGURE.fullmatch(plain) if len(text) <= LONGEST else None
    if parts is None:
        _refuse(plain)
        if _POWER.fullmatch(plain[:LONGEST]):
            raise UsageError(
                f"{short(text)} is too large for a count: the power of ten has at most two digits, such as e12."
            )
        raise UsageError(
            f"{short(text)} is not a number. Write it as 25150826, 3.86e9, 4.1G, 4.1 GFLOPs, 585M MACs or 25.6M params."
        )
    fraction = parts["part"] or ""
    digits = int(re.sub(r"[^0-9]", "", parts["dotted"] or parts["whole"]) + fraction)
    power = int(parts["power"] or (parts["raised"] or "0").translate(_RAISED))
    power += _POWERS[(parts["suffix"] or "").lower()] - len(fraction)
    while power < 0 and digits % 10 == 0:
        digits, power = digits // 10, power + 1
        if digits == 0:
            power = 0
    if power < 0:
        plain = text.strip()
        raise UsageError(
            f"{plain} is not a whole number, but a count is. If it counts billions, write {plain}G or {plain} GFLOPs."
            if not any(parts[name] for name in ("suffix", "flop", "mac", "parameter"))
            else f"{plain} is not a whole number, but a count is. Leave out the digits after the point."
        )
    if digits == 0 and power > 0:
        raise UsageError(
            f"{text.strip()} rounds to 0, as every small count does. Give a figure with a digit other than 0."
        )
    units = ((FLOP, "flop"), (MAC, "mac"), (PARAMETER, "parameter"))
    return PrintedFigure(text.strip(), digits, 10**power, next((unit for unit, name in units if parts[name]), ""))
