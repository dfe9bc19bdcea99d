"""What the gallery measured of each pair, for ``reconcile explain models``: weights, work, difference of the outputs."""

from __future__ import annotations

from ...model_zoo.loading import zoo_names
from .report import parity
from .rows import source_of
from .run import GalleryRow, read_gallery


def model_notes() -> dict[str, str]:
    """A note for every pair of the zoo: its weights, its work, and how far its two outputs are apart."""
    rows = read_gallery()
    return {name: describe_row(rows[name]) if name in rows else "not measured yet" for name in zoo_names()}


def describe_row(row: GalleryRow) -> str:
    """Weights, work and how far the two outputs are apart, as the gallery has them."""
    weights = "" if row.weights is None else f"{row.weights:,} weights"
    work = " or ".join(f"{flops:,}" for flops in dict.fromkeys(row.work.values())) + " FLOP (matmul)"
    proven = ", ".join(f"{name}={value}" for name, value in row.proven_at.items())
    outputs = f"outputs within {parity(row).rstrip('*')}" + (f" (at {proven})" if proven else "")
    if row.declared:
        outputs = "outputs differ, as declared"
    settings = ", ".join(f"{name}={value}" for name, value in row.settings.items())
    stale = "" if source_of(row.model) == row.source else "measured before the pair was last changed"
    return "; ".join(part for part in (weights, work, outputs, settings, stale) if part)
