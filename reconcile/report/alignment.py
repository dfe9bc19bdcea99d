"""Sentences for reports on how the layers of two models were matched, and which layers have no partner and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..align.automatic import count_matches, lone
from ..core.number_format import list_first, number
from ..core.results import Match

SHOWN = 3
HOW_TO_PAIR_ROWS = (
    "A row without a partner is compared with its own model alone. To pair two rows, give their layers one name in both models, "
    "or write the rows with --write-mapping FILE, correct them, and read them with --mapping FILE."
)


def sentences(rows: Sequence[Match]) -> list[str]:
    """``Layers matched: 20 by name+work, 2 by order+work.``, and the layers without a partner, why, and what to do.

    Empty without rows.
    """
    if not rows:
        return []
    lines = [f"Layers matched: {', '.join(f'{number(n)} by {by}' for by, n in count_matches(rows).items()) or 'none'}."]
    for framework, names in lone(rows).items():
        lines.append(f"Without a partner in {framework}: {list_first(names, SHOWN)}.")
    reasons = Counter(row.comment for row in rows if not row.by and row.comment)
    if reasons:
        why = "; ".join(f"{reason} ({number(n)})" for reason, n in reasons.most_common())
        lines.append(f"Why: {why}. {HOW_TO_PAIR_ROWS}")
    return lines
