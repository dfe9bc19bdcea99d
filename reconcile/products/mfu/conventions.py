"""Conventions of published utilisations (formula, recomputation or not, peak), and a row's value under each of them.

table_verdicts.py infers which convention each source of ``reconcile mfu --table`` follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from .agreement import BEST, CUT, ROUNDING, agreement, by_chance
from .claims import Row
from .closed_forms import FORMS, Form, Numerator
from .peaks import LARGEST, TERA, Device, Peak, devices, find_devices, tera
from .printed_number import Printed

PLAIN, HARDWARE, ALWAYS = "as it is", "recomputation in HFU alone", "recomputation in every row"
MODES = (PLAIN, HARDWARE, ALWAYS)
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e\+?\d{1,2}(?!\d))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Denominator:
    """A peak that a row may have divided by: FLOP/s, and whose it is. ``device`` is None for a peak that the source states."""

    flops: int
    label: str
    device: Device | None = None
    peak: Peak | None = None


@dataclass(frozen=True, slots=True)
class Convention:
    """A formula, or the printed rate where that is None, and when four thirds of it are taken."""

    form: Form | None
    mode: str

    @property
    def title(self) -> str:
        """In words."""
        name = self.form.title if self.form is not None else "the printed rate"
        return name if self.mode == PLAIN else f"{name}, {self.mode}"

    def again(self, row: Row) -> bool:
        """Whether a third is added for this row."""
        full = row["recompute"] not in ("none", "selective")
        return self.mode == ALWAYS or (self.mode == HARDWARE and row.hardware and full)


@dataclass(frozen=True, slots=True)
class Reading:
    """A row's value under a convention with a denominator, and how the claim agrees with it."""

    convention: Convention
    denominator: Denominator
    value: Printed
    agrees: str

    @property
    def rank(self) -> int:
        """Lower is better."""
        return BEST.index(self.agrees) if self.agrees else 9


CONVENTIONS = tuple(
    Convention(form, mode)
    for form in sorted(FORMS, key=lambda f: f.cost)
    for mode in MODES
    if mode == PLAIN or not form.recomputes
)
RATE = Convention(None, PLAIN)


def denominators(row: Row) -> list[Denominator]:
    """The peaks that the row may have used, the stated one first; one of 1 FLOP/s for a row that states a rate."""
    assert row.claim is not None
    if row.claim.kind == "rate":
        return [Denominator(1, "")]
    return list({d.flops: d for d in (*_stated_conventions(row["peak_stated"]), *_own(row))[::-1]}.values())[::-1]


def _stated_conventions(text: str) -> Iterator[Denominator]:
    """What a source states; not what the collector of the table inferred from the claim."""
    if "implied" in text:
        return
    for match in _NUMBER.finditer(text):
        value = Fraction(match[0].replace(",", ""))
        if TERA <= value < LARGEST or 20 <= value < 10_000:
            flops = int(value if value >= TERA else value * TERA)
            yield Denominator(flops, f"{tera(flops)}, as the source states")


def _own(row: Row) -> Iterator[Denominator]:
    for device in candidates(row["device"]):
        for dtype in dtypes(row["dtype"]):
            for peak in device.rates(dtype):
                for flops, how in peak.prints:
                    said = f"{tera(flops)} of {device.title}, {peak.dtype}"
                    yield Denominator(flops, said + (f" ({how})" if how else ""), device, peak)


def dtypes(text: str) -> list[str]:
    """The dtypes of a cell: ``fp16/bf16``; bf16 or fp16 if it is empty."""
    parts = [part.strip() for part in re.split(r"[/,]", text) if part.strip()]
    return parts or ["bf16", "fp16"]


@lru_cache(maxsize=256)
def candidates(text: str) -> tuple[Device, ...]:
    """The devices that a cell may mean: those that its words fit, else those whose product it names."""
    words = re.sub(r"[(].*|\?", " ", text).replace("_", " ")
    found = find_devices(words)
    if found:
        return tuple(found)
    spoken = set(re.findall(r"[a-z0-9]+", words.lower()))
    named = [d for d in devices() if (own := _product(d)) and own <= spoken]
    longest = max((len(_product(d)) for d in named), default=0)
    return tuple(d for d in named if len(_product(d)) == longest)


def _product(device: Device) -> set[str]:
    words = set(re.findall(r"[a-z0-9]+", re.sub(r"[(].*", "", device.product).lower()))
    return words - {"instinct", "geforce"}


def work(row: Row, convention: Convention) -> Numerator | None:
    """FLOPs per token of the row under the convention."""
    return None if convention.form is None else convention.form.of(row.shape)


def value(row: Row, convention: Convention, denominator: Denominator, loose: bool = False) -> Printed | None:
    """What the row should claim; None if it does not state what that takes."""
    if convention.form is None:
        return None if row.rate is None else row.rate.over(denominator.flops)
    made = work(row, convention)
    if made is None or row.tokens is None or not row.devices:
        return None
    total = made.total * (Fraction(4, 3) if convention.again(row) else 1)
    tokens = row.tokens.loose if loose else row.tokens
    return tokens.over(row.devices * denominator.flops / total)


def readings(row: Row) -> list[Reading]:
    """The row under every convention and denominator that it states enough for."""
    assert row.claim is not None
    found = []
    peaks = denominators(row)
    for convention in (RATE, *CONVENTIONS):
        for denominator in peaks:
            for loose in (False, True):
                made = value(row, convention, denominator, loose)
                if made is None:
                    continue
                how = agreement(made, row.claim.figure)
                if how or not loose:
                    found.append(Reading(convention, denominator, made, ROUNDING if how == CUT and loose else how))
                if how:
                    break
    return found


def chance(row: Row, made: list[Reading]) -> float:
    """The share of random claims of as many digits that one of these readings agrees with."""
    assert row.claim is not None
    return by_chance(row.claim.figure, [one.value for one in made]) if made else 0.0
