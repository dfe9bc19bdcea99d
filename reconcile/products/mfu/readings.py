"""The closed list of readings of ``reconcile mfu``: factors by which a claim may differ from its setup (docs/mfu.md)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from math import prod

from .peaks import Device, Peak, devices, tera
from .setup import Setup
from .trainers import Entry, entries

NEAR, FAR, DISTANT = 1, 3, 5
"""Costs: what threads show often; another formula; another device."""
ROUNDED = Fraction(1, 500)
"""Peaks so near to each other are one peak, printed differently."""


@dataclass(frozen=True, slots=True)
class Factor:
    """A factor between the stated utilisation and the claim. Two factors of one ``kind`` do not go together."""

    factor: Fraction
    reading: str
    source: str
    kind: str
    cost: int = NEAR
    causes: tuple[tuple[str, Fraction], ...] = field(default=())


def singles(setup: Setup, share: bool) -> list[Factor]:
    """Every reading of the setup, the likeliest first; without those of the peak for a claim that is no share of one."""
    peaks = _peaks(setup.device, setup.peak) if share and setup.peak is not None and setup.device is not None else ()
    found = (*_devices(setup), *(one for one in peaks if abs(one.factor - 1) > ROUNDED), *_work(setup))
    return [one for one in found if one.factor != 1]


def _devices(setup: Setup) -> Iterator[Factor]:
    source = f"{setup.devices:,} devices"
    if setup.devices > 1:
        yield Factor(Fraction(setup.devices), "devices counted as 1", source, "devices")
        yield Factor(
            Fraction(1, setup.devices), "the rate of one device divided by all devices", source, "devices", FAR
        )
    for size in range(1, len(setup.splits) + 1):
        for group in combinations(setup.splits, size):
            factor = prod(count for _, count in group)
            name = " x ".join(name.upper() for name, _ in group)
            yield Factor(Fraction(factor), f"devices counted as the world over {name}", f"{name} = {factor}", "devices")
    if setup.accumulation > 1:
        source = f"{setup.accumulation} micro-batches"
        yield Factor(
            Fraction(1, setup.accumulation), "the tokens of one micro-batch for those of a step", source, "batch"
        )
        yield Factor(Fraction(setup.accumulation), "micro-batches counted twice", source, "batch")


def _work(setup: Setup) -> Iterator[Factor]:
    if setup.recompute != "none":
        full = "PaLM (2204.02311), appendix B: HFU counts the forward pass again"
        yield Factor(Fraction(4, 3), "recomputation counted: HFU called MFU", full, "recompute")
        yield Factor(Fraction(3, 4), "recomputation left out of a rate that counts it", full, "recompute")
    if setup.padding:
        kept, source = 1 - setup.padding, "the share of padding that you gave"
        yield Factor(1 / kept, "padding counted as tokens", source, "padding")
        yield Factor(kept, "padding left out of the tokens", source, "padding")
    if setup.flops is None and setup.numerators:
        stated = setup.numerators[0]
        for other in setup.numerators[1:]:
            if other.total > 0:
                causes = tuple(other.differs(stated).items())
                reading = f"{other.title} in place of {stated.title}"
                yield Factor(other.total / stated.total, reading, other.source, "formula", NEAR + other.cost, causes)


def _peaks(device: Device, peak: Peak) -> Iterator[Factor]:
    """Denominators that are taken for the device's own."""

    def over(flops: int, reading: str, source: str, cost: int = NEAR) -> Factor:
        return Factor(Fraction(peak.dense, flops), reading, source, "peak", cost)

    def own(flops: int, reading: str, source: str, cost: int = NEAR) -> Factor:
        return Factor(_simple(Fraction(peak.dense, flops)), reading, source, "peak", cost)

    if peak.sparse is not None:
        yield own(peak.sparse, f"the peak with sparsity, {tera(peak.sparse)}", cite_device(device, peak))
        yield Factor(Fraction(2), "the dense peak halved once more", "OLMo-core pull request 614", "peak", FAR)
    for other in device.peaks:
        if other.dense and (other.dtype, other.sums) != (peak.dtype, peak.sums):
            name = f"{other.dtype} {other.sums}".strip() if other.dtype == peak.dtype else other.dtype
            yield own(other.dense, f"the peak of {name}, {tera(other.dense)}", cite_device(device, other))
            if other.sparse and other.dtype == "fp8":
                yield own(other.sparse, f"the peak of {name} with sparsity", cite_device(device, other), FAR)
    printed = [flops for flops, _ in peak.prints]
    for entry in entries(device.product, peak.dtype):
        if entry.flops in printed:
            continue
        yield over(entry.flops, describe_entry(entry), entry.source, FAR if entry.host else NEAR)
    for other_device in devices():
        if other_device.title == device.title:
            continue
        same = other_device.product == device.product
        for other in other_device.rates(peak.dtype):
            reading = f"the peak of {other_device.title}, {tera(other.dense)}"
            yield over(other.dense, reading, cite_device(other_device, other), NEAR if same else DISTANT)


def _simple(factor: Fraction) -> Fraction:
    """Two rates of one device differ by a power of two; a datasheet that rounds both hides it (989.4 and 1,978.9)."""
    for power in range(-4, 5):
        plain = Fraction(2) ** power
        if abs(factor / plain - 1) < Fraction(1, 500):
            return plain
    return factor


def describe_entry(entry: Entry) -> str:
    """A trainer's number in words."""
    return f"{entry.trainer}'s peak, {tera(entry.flops)}: {entry.why}"


def cite_device(device: Device, peak: Peak) -> str:
    """Where a peak comes from: the datasheet with its page, that you state it, or where it was read without a datasheet."""
    page = f", {peak.page}" if peak.page else ""
    return f"{peak.datasheet}{page}" if peak.datasheet else f"no datasheet found; read in {device.read}"
