"""The devices of the table of peaks, each with its dense and sparse FLOP/s and the datasheet."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.text import markdown
from .page import tera
from .peaks import Device, devices
from .readings import cited


def text() -> str:
    """One device per paragraph, for a terminal."""
    return "\n".join(line for device in devices() for line in _lines(device))


def _lines(device: Device) -> Iterator[str]:
    yield device.title
    yield f"  printed as {', '.join(device.names)}"
    for peak in device.peaks:
        sparse = f", with sparsity {tera(peak.sparse)}" if peak.sparse is not None else ""
        yield f"  {f'{peak.dtype} {_sums(peak.sums)}'.strip():18} {tera(peak.dense)}{sparse}"
    yield f"  {cited(device, device.peaks[0])}"
    yield ""


def _sums(sums: str) -> str:
    return "" if sums == "fp32" else sums


def table() -> str:
    """The same as a Markdown table."""
    rows = [
        f"| {markdown(device.title)} | {peak.dtype} {_sums(peak.sums)} | {tera(peak.dense)} | "
        f"{'' if peak.sparse is None else tera(peak.sparse)} | {markdown(cited(device, peak))} |"
        for device in devices()
        for peak in device.peaks
    ]
    return "\n".join(["| device | dtype | dense | with sparsity | datasheet |", "|:--|:--|--:|--:|:--|", *rows]) + "\n"
