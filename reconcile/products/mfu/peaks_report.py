"""The pages of ``reconcile mfu peaks`` (devices with datasheet FLOP/s) and ``mfu trainers`` (peaks that trainers use)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from ...report.document import Block, Document, Heading, Items, Text, mark_code, tabulate
from .peaks import Device, devices, find, find_devices, tera
from .readings import cite_device
from .report import decimal
from .source_tables import Given
from .trainers import Entry, every

NEAR = Fraction(1, 200)
"""Numbers of a source this near to the datasheet's are rounded, not different."""
HOW_FACTORS_SHOW = "A true MFU is shown divided by the factor: 0.32 shows 3.2 times too much."


def describe_peaks(name: str = "") -> Document:
    """The devices of the table, or those that a name fits. Raises UsageError if it fits none."""
    found = (find_devices(name) or [find(name)]) if name else devices()
    blocks = tuple(block for device in found for block in _describe_device(device))
    return Document("Peaks of devices", f"{len(found)} device{'s' * (len(found) > 1)}.", blocks)


def _describe_device(device: Device) -> tuple[Block, ...]:
    lines = [f"printed as {', '.join(device.names)}"]
    for peak in device.peaks:
        name = f"{peak.dtype} {'' if peak.sums == 'fp32' else peak.sums}".strip()
        sparse = f", with sparsity {tera(peak.sparse)}" if peak.sparse is not None else ""
        lines.append(f"{name:18} {tera(peak.dense)}{sparse}")
    return Heading(device.title), Items((*lines, cite_device(device, device.peaks[0])))


def describe_trainers() -> Document:
    """What trainers divide by where it is not the datasheet's."""
    rows = sorted({row for entry in every() for row in _describe_entry(entry)})
    source = (
        "The numbers are those of the commits that `reconcile/products/mfu/trainers.toml` names. `reconcile mfu trainers "
        "FILE.py` reads the table of a newer source file."
    )
    blocks = (
        Text(mark_code(f"{HOW_FACTORS_SHOW} {source}")),
        tabulate("trainer|device|dtype|divides by>|datasheet>|factor>|why|where", rows),
    )
    return Document("Peaks that trainers divide by", "", blocks)


def _describe_entry(entry: Entry) -> Iterator[tuple[str, ...]]:
    for device in devices():
        for peak in device.rates(entry.dtype) if device.product == entry.product else ():
            factor = Fraction(entry.flops, peak.dense)
            if abs(factor - 1) >= Fraction(1, 1000):
                divides = (tera(entry.flops), tera(peak.dense), decimal(factor))
                yield (entry.trainer, device.title, entry.dtype, *divides, entry.why, entry.source)


def describe_source(given: Sequence[Given], source: str) -> Document:
    """The table of peaks of a source file: each device whose number is not the datasheet's, and how many are."""
    wrong = sorted((one for one in given if abs(one.factor - 1) > NEAR), key=lambda one: one.factor)
    rows = [
        (
            one.device.title, one.name, f"L{one.line}", tera(int(one.flops)), f"{tera(one.peak.dense)} {one.peak.dtype}",
            decimal(one.factor), cite_device(one.device, one.peak),
        )
        for one in wrong
    ]  # fmt: skip
    titles = "device|printed as|line>|divides by>|datasheet, dense>|factor>|datasheet"
    right = f"{len(given)} devices get a number, {len(given) - len(wrong)} of them the datasheet's (within 0.5 %)."
    false = 'A condition that is not `"H100" in name` was taken for false.'
    blocks = (tabulate(titles, rows), Text(mark_code(f"{HOW_FACTORS_SHOW} {false}")))
    return Document(f"Peaks in {source}", right, blocks)
