"""A row of a table in words: its figures as a statement, its value, and what it does not state."""

from __future__ import annotations

from .claims import Row
from .conventions import Reading, denominators, work
from .printed import Printed


def list_lacking_sizes(row: Row) -> list[str]:
    """What a row does not state that the formulas need."""
    found = []
    if row.tokens is None:
        found.append("throughput")
    sizes = [name for name in ("layers", "hidden", "seq") if not getattr(row.shape, name)]
    if not row.shape.params and (sizes or not row.shape.vocab):
        found.append("size of the model")
    elif sizes:
        found.append({"seq": "sequence length"}.get(sizes[0], "shape of the model"))
    if row.claim is not None and row.claim.kind == "share" and not denominators(row):
        found.append("device with a known peak")
    return found


def describe_reading(row: Row, reading: Reading) -> str:
    """``515,636 tokens/s x (6N + 12LhT = 392 GFLOPs) / (512 x 989.4 TFLOP/s of ...)``."""
    peak = reading.denominator.label
    if reading.convention.form is None:
        return f"{row.rate.text if row.rate else ''} / {peak}"
    made = work(row, reading.convention)
    assert made is not None
    assert row.tokens is not None
    again = " x 4/3" if reading.convention.again(row) else ""
    below = f"({row.devices:,} x {peak})" if peak else f"{row.devices:,}"
    return f"{row.tokens.text} tokens/s x ({made.title} = {float(made.total / 10**9):,.4g} GFLOPs){again} / {below}"


def format_value(row: Row, value: Printed) -> str:
    """A share as a percentage, a rate in TFLOP/s."""
    share = row.claim is not None and row.claim.kind == "share"
    return f"{float(100 * value.value):.4g} %" if share else f"{float(value.value / 10**12):.4g} TFLOP/s"
