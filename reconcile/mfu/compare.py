"""Two setups of one run: from one utilisation to the other, factor by factor."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from ..core.errors import UsageError, brief, short
from ..core.user_files import toml
from .asked import setup_of
from .page import decimal, number, share
from .peaks import STATED, tera
from .printed import Printed, claim
from .setup import Setup

KEYS = (
    "claimed", "device", "dtype", "devices", "peak", "flops_per_second", "tokens_per_second", "step_seconds",
    "tokens_per_step", "flops_per_token", "config", "seq", "formula", "recompute",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Side:
    """One file: what it states, and the utilisation that it claims, or that its figures give if it claims none."""

    name: str
    setup: Setup
    figure: Printed


@dataclass(frozen=True, slots=True)
class Compared:
    """From the first to the second: the factors, and what they leave as an interval."""

    first: Side
    second: Side
    factors: tuple[tuple[Fraction, str], ...]
    remainder: tuple[Fraction, Fraction]

    @property
    def closed(self) -> bool:
        """Whether the remainder is 1."""
        low, high = self.remainder
        return low <= 1 <= high

    def text(self) -> str:
        """The statement for a terminal."""
        rows = [(share(self.first.figure.value), self.first.name)]
        rows += [(f"x {number(factor)}", reading) for factor, reading in self.factors]
        low, high = self.remainder
        rows += [
            (share(self.second.figure.value), self.second.name),
            (
                "1" if self.closed else decimal((low + high) / 2),
                "remainder" if self.closed else "remainder, unexplained",
            ),
        ]
        wide = max(len(left) for left, _ in rows)
        return "\n".join(f"  {left:>{wide}}  {right}" for left, right in rows) + "\n"

    def data(self) -> str:
        """The same as JSON, exact numbers as strings."""
        low, high = self.remainder
        content = {
            "schema": 1,
            "from": {"name": self.first.name, "mfu": str(self.first.figure.value)},
            "to": {"name": self.second.name, "mfu": str(self.second.figure.value)},
            "state": "explained" if self.closed else "not explained",
            "factors": [{"factor": str(factor), "reading": reading} for factor, reading in self.factors],
            "remainder": {"low": str(low), "high": str(high)},
        }
        return json.dumps(content, indent=1) + "\n"


def side(path: Path) -> Side:
    """Read one file. Raises UsageError."""
    stated: dict[str, Any] = toml(path, "the setup")
    for key in stated:
        if key not in KEYS:
            raise UsageError(
                f"the setup {brief(path)} has an unknown key {short(key)}: the keys are {', '.join(KEYS)}."
            )
    devices = stated.get("devices", 1)
    if not isinstance(devices, int) or isinstance(devices, bool) or devices < 1:
        raise UsageError(f"the setup {brief(path)} has {short(devices)} devices: write a whole number above 0.")
    setup = setup_of(stated)
    assert setup.peak is not None
    if "claimed" not in stated:
        return Side(path.stem, setup, setup.stated(setup.peak.dense))
    wanted = claim(str(stated["claimed"]))
    if wanted.kind != "share":
        raise UsageError(f"the setup {brief(path)} claims {short(wanted.text)}: write a utilisation, such as 43%.")
    return Side(path.stem, setup, wanted.figure)


def compared(one: Path, other: Path) -> Compared:
    """From the utilisation of one file to that of the other."""
    first, second = side(one), side(other)
    factors = tuple((factor, reading) for factor, reading in _factors(first.setup, second.setup) if factor != 1)
    product = Fraction(1)
    for factor, _ in factors:
        product *= factor
    # The rates of one figure are known to their printed digits: so is the product.
    half = sum(s.setup.rate.half / s.setup.rate.value for s in (first, second))
    low, high = second.figure.low / first.figure.high, second.figure.high / first.figure.low
    return Compared(first, second, factors, (low / product * (1 - half), high / product * (1 + half)))


def _factors(a: Setup, b: Setup) -> Iterator[tuple[Fraction, str]]:
    if a.tokens is not None and b.tokens is not None:
        yield b.tokens.value / a.tokens.value, f"tokens per second: {a.tokens.text} to {b.tokens.text}"
        work, other = a.numerators[0], b.numerators[0]
        yield other.total / work.total, f"FLOPs per token: {work.title} to {other.title}"
    else:
        yield b.rate.value / a.rate.value, f"FLOP/s: {a.rate.text} to {b.rate.text}"
    yield Fraction(a.devices, b.devices), f"devices: {a.devices:,} to {b.devices:,}"
    assert a.peak is not None
    assert b.peak is not None
    yield Fraction(a.peak.dense, b.peak.dense), f"peak: {_peak(a)} to {_peak(b)}"


def _peak(setup: Setup) -> str:
    assert setup.peak is not None
    stated = setup.device is None or setup.peak.datasheet == STATED
    name = " as stated" if stated or setup.device is None else f" of {setup.device.title}, {setup.peak.dtype}"
    return f"{tera(setup.peak.dense)}{name}"
