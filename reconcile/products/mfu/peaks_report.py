"""The output of ``reconcile mfu peaks`` (devices with datasheet FLOP/s) and ``mfu trainers`` (peaks that trainers use)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from ...core.text import markdown
from .peaks import Device, devices, tera
from .readings import cite_device
from .report import decimal
from .trainers import Entry, every


def text() -> str:
    """One device per paragraph, for a terminal."""
    return "\n".join(line for device in devices() for line in _lines(device))


def _lines(device: Device) -> Iterator[str]:
    yield device.title
    yield f"  printed as {', '.join(device.names)}"
    for peak in device.peaks:
        sparse = f", with sparsity {tera(peak.sparse)}" if peak.sparse is not None else ""
        yield f"  {f'{peak.dtype} {_sums(peak.sums)}'.strip():18} {tera(peak.dense)}{sparse}"
    yield f"  {cite_device(device, device.peaks[0])}"
    yield ""


def _sums(sums: str) -> str:
    return "" if sums == "fp32" else sums


def trainers() -> str:
    """What trainers divide by where it is not the datasheet's, as a Markdown page."""
    rows = sorted({row for entry in every() for row in _entry(entry)})
    return "\n".join([*HEAD, *rows]) + "\n"


HEAD = (
    "# Peaks that trainers divide by",
    "",
    "A true MFU is shown divided by the factor: 0.32 shows 3.2 times too much. The numbers are those of the commits that",
    "`reconcile/products/mfu/trainers.toml` names. `reconcile mfu trainers FILE.py` reads the table of a newer source file.",
    "",
    "| trainer | device | dtype | divides by | datasheet | factor | why | where |",
    "|:--|:--|:--|--:|--:|--:|:--|:--|",
)


def _entry(entry: Entry) -> Iterator[str]:
    for device in devices():
        if device.product != entry.product:
            continue
        for peak in device.rates(entry.dtype):
            factor = Fraction(entry.flops, peak.dense)
            if abs(factor - 1) < Fraction(1, 1000):
                continue
            cells = (
                entry.trainer, device.title, entry.dtype, tera(entry.flops), tera(peak.dense), decimal(factor), entry.why,
                entry.source,
            )  # fmt: skip
            yield f"| {' | '.join(map(markdown, cells))} |"
