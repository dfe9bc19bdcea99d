"""All published formulas by name, and their parts.

Each term is a base count plus the difference that each of its assumptions makes.
"""

from __future__ import annotations

from .megatron import MEGATRON
from .papers import PAPERS
from .serving import SERVING
from .terms import Formula, Term
from .trainers import TRAINERS

FORMULAS: dict[str, Formula] = {**PAPERS, **SERVING, **MEGATRON, **TRAINERS}


def parts(name: str) -> dict[str, tuple[Term, int | None]]:
    """The op names of a formula's parts: the term, and the index of the assumption, None for the base."""
    made: dict[str, tuple[Term, int | None]] = {}
    for term in FORMULAS[name].terms:
        base = f"{name}/{term.title}"
        made[base] = (term, None)
        made |= {f"{base}/{assumption.name}": (term, index) for index, assumption in enumerate(term.assumes)}
    return made
