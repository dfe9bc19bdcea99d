"""The arithmetic of counters that ask numpy for the FLOPs of an einsum."""

from __future__ import annotations

from collections.abc import Sequence


def printed_flops(equation: str, shapes: Sequence[tuple[int, ...]]) -> int:
    """numpy.einsum_path's optimized FLOP count, of which it prints four digits."""
    import numpy as np  # not at home, unless a counter met an einsum

    text = np.einsum_path(equation, *(np.broadcast_to(np.float32(0), s) for s in shapes), optimize="optimal")[1]
    line = next(part for part in text.split("\n") if "optimized flop" in part.lower())
    return int(float(line.split(":")[-1]))
