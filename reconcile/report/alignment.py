"""Sentences on the alignment of two models."""

from __future__ import annotations

from collections.abc import Sequence

from ..align.automatic import counted, lone
from ..core.results import Match
from ..core.text import number

SHOWN = 3


def sentences(rows: Sequence[Match]) -> list[str]:
    """``Layers matched: 20 by name+work, 2 by order+work.``, and the layers without a partner. Empty without rows."""
    if not rows:
        return []
    lines = [f"Layers matched: {', '.join(f'{number(n)} by {by}' for by, n in counted(rows).items()) or 'none'}."]
    for framework, names in lone(rows).items():
        shown = ", ".join(names[:SHOWN]) + (f" and {number(len(names) - SHOWN)} more" if len(names) > SHOWN else "")
        lines.append(f"Without a partner in {framework}: {shown}.")
    return lines
