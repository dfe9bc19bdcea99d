"""``reconcile mfu compare``: the ratio of the utilisations of two setups as a product of named factors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from pathlib import Path
from typing import Any

from ...core.errors import UsageError, brief, short
from ...core.user_files import read_toml
from ...report.document import Document
from .peaks import STATED, TERA, tera
from .printed_number import Printed, claim
from .report import decimal, describe_remainder, number, share, tabulate_factors
from .setup import Setup, setup_of

KEYS = (
    "claimed", "device", "dtype", "devices", "peak", "flops_per_second", "tokens_per_second", "step_seconds",
    "tokens_per_step", "flops_per_step", "flops_per_token", "config", "seq", "formula", "recompute",
)  # fmt: skip

ANY, UNRATED = "MFU", "no rate is stated, so this is any utilisation"


@dataclass(frozen=True, slots=True)
class Side:
    """One file: what it states, and the utilisation that it claims, or that its figures give if it claims none. ``figure`` is
    None if it states no rate, either. ``rate`` says that it is FLOP/s of one device."""

    name: str
    setup: Setup
    figure: Printed | None
    rate: bool = False

    @property
    def has_rate(self) -> bool:
        """Whether it states a rate."""
        return self.setup.flops is not None or self.setup.tokens is not None


@dataclass(frozen=True, slots=True)
class Compared:
    """The factors from the first utilisation to the second, and the remainder as an interval.

    Two setups without a rate are of one run at one rate. A claim of one of them then gives the other; without a claim only their
    quotient is known.
    """

    first: Side
    second: Side
    factors: tuple[tuple[Fraction, str], ...]
    remainder: tuple[Fraction, Fraction]

    @property
    def is_closed(self) -> bool:
        """Whether the remainder is 1."""
        low, high = self.remainder
        return low <= 1 <= high

    @property
    def product(self) -> Fraction:
        """All factors together."""
        return prod((factor for factor, _ in self.factors), start=Fraction(1))

    @property
    def ends(self) -> tuple[Fraction | None, Fraction | None]:
        """The two utilisations; None if neither is known."""
        first, second = self.first.figure, self.second.figure
        if first is None and second is None:
            return None, None
        one = first.value if first is not None else second.value / self.product if second is not None else None
        assert one is not None
        return one, second.value if second is not None else one * self.product

    def _format(self, value: Fraction) -> str:
        rate = self.first.rate or self.second.rate
        return f"{decimal(value / TERA)} TFLOP/s" if rate else share(value)

    def describe(self) -> Document:
        """The page: from one utilisation to the other, factor by factor."""
        first, second = self.ends
        rows = [(ANY, f"{self.first.name}: {UNRATED}") if first is None else (self._format(first), self.first.name)]
        rows += [(f"x {number(factor)}", reading) for factor, reading in self.factors]
        rows += [
            (f"{number(self.product)} {ANY}" if second is None else self._format(second), self.second.name),
            describe_remainder(self.remainder),
        ]
        what = "rate" if self.first.rate or self.second.rate else ANY
        answer = f"The {what} of {self.second.name} is {number(self.product)} times that of {self.first.name}"
        answer += "." if self.is_closed else " by these factors, and not by what is claimed."
        title = f"From {self.first.name} to {self.second.name}"
        return Document(title, answer, (tabulate_factors(rows),), self.is_closed)

    def data(self) -> str:
        """The same as JSON, exact numbers as strings; null for a utilisation that is not known."""
        low, high = self.remainder
        ends = [None if end is None else str(end) for end in self.ends]
        content = {
            "schema": 1,
            "from": {"name": self.first.name, "mfu": ends[0]},
            "to": {"name": self.second.name, "mfu": ends[1]},
            "state": "explained" if self.is_closed else "not explained",
            "factors": [{"factor": str(factor), "reading": reading} for factor, reading in self.factors],
            "remainder": {"low": str(low), "high": str(high)},
        }
        return json.dumps(content, indent=1) + "\n"


def side(path: Path) -> Side:
    """Read what one TOML file states. Raises UsageError."""
    stated: dict[str, Any] = read_toml(path, "the setup")
    for key in stated:
        if key not in KEYS:
            raise UsageError(
                f"the setup {brief(path)} has an unknown key {short(key)}: the keys are {', '.join(KEYS)}."
            )
    devices = stated.get("devices", 1)
    if not isinstance(devices, int) or isinstance(devices, bool) or not 1 <= devices <= 10**9:
        raise UsageError(
            f"the setup {brief(path)} has {short(devices)} devices: write a whole number from 1 to 1,000,000,000."
        )
    setup = setup_of(stated, peaked=False, rated=False)
    if "claimed" not in stated:
        unrated = setup.flops is None and setup.tokens is None
        peak = setup.peak.dense if setup.peak is not None else 1
        return Side(
            path.stem, setup, None if unrated else setup.utilisation_at(peak), setup.peak is None and not unrated
        )
    wanted = claim(str(stated["claimed"]))
    if wanted.kind != "share" and setup.peak is not None:
        raise UsageError(
            f"the setup {brief(path)} claims {short(wanted.text)} beside a peak: write a utilisation, such as 43%, or leave "
            "the device and its peak out."
        )
    return Side(path.stem, setup, wanted.figure, wanted.kind != "share")


def compare_files(one: Path, other: Path) -> Compared:
    """The factors from the utilisation of one TOML file to that of the other. Raises UsageError."""
    first, second = side(one), side(other)
    for what, mine, others in (
        ("rate", first.has_rate, second.has_rate),
        ("peak", first.setup.peak is not None, second.setup.peak is not None),
        (
            "FLOPs per token",
            first.has_rate or bool(first.setup.numerators),
            second.has_rate or bool(second.setup.numerators),
        ),
    ):
        if mine != others:
            with_, without = (one, other) if mine else (other, one)
            raise UsageError(
                f"the setup {brief(without)} states no {what}, and {brief(with_)} does: state both or none."
            )
    if first.figure is not None and second.figure is not None and first.rate != second.rate:
        raise UsageError(
            f"one of {brief(one)} and {brief(other)} gives a utilisation, and the other FLOP/s: give two of a kind."
        )
    factors = tuple((factor, reading) for factor, reading in _factors(first.setup, second.setup) if factor != 1)
    if first.figure is None or second.figure is None:
        return Compared(first, second, factors, (Fraction(1), Fraction(1)))
    product = prod((factor for factor, _ in factors), start=Fraction(1))
    # The rates of one figure are known to their printed digits: so is the product.
    half = sum((s.setup.rate.half / s.setup.rate.value for s in (first, second) if s.has_rate), Fraction(0))
    low, high = second.figure.low / first.figure.high, second.figure.high / first.figure.low
    return Compared(first, second, factors, (low / product * (1 - half), high / product * (1 + half)))


def _factors(a: Setup, b: Setup) -> Iterator[tuple[Fraction, str]]:
    if a.tokens is not None and b.tokens is not None:
        yield b.tokens.value / a.tokens.value, f"tokens per second: {a.tokens.text} to {b.tokens.text}"
    elif a.tokens is not None or b.tokens is not None or (a.flops is not None and b.flops is not None):
        yield b.rate.value / a.rate.value, f"FLOP/s: {a.rate.text} to {b.rate.text}"
    if (a.tokens is None) == (b.tokens is None) and a.numerators and b.numerators:
        work, other = a.numerators[0], b.numerators[0]
        yield other.total / work.total, f"FLOPs per token: {work.title} to {other.title}"
    yield Fraction(a.devices, b.devices), f"devices: {a.devices:,} to {b.devices:,}"
    if a.peak is not None and b.peak is not None:
        yield Fraction(a.peak.dense, b.peak.dense), f"peak: {_peak(a)} to {_peak(b)}"


def _peak(setup: Setup) -> str:
    assert setup.peak is not None
    stated = setup.device is None or setup.peak.datasheet == STATED
    name = " as stated" if stated or setup.device is None else f" of {setup.device.title}, {setup.peak.dtype}"
    return f"{tera(setup.peak.dense)}{name}"
