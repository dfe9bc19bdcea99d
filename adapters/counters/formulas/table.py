"""All published formulas by name, and their parts.

Each term is a base count plus the difference that each of its assumptions makes.
"""

from __future__ import annotations

from .megatron import MEGATRON
from .papers import PAPERS
from .serving import SERVING
from .terms import ATTENTION, ONE_SEQUENCE, SCORES, Facts, Formula, Term, assume_facts, deviation
from .trainers import TRAINERS


def assume_unpacked(formula: Formula) -> Formula:
    """The formula with what it takes for granted of packed documents, unless it is given their lengths."""
    if formula.packed:
        return formula
    terms = [
        term._replace(assumes=(ONE_SEQUENCE,) + term.assumes) if term.kind in (ATTENTION, SCORES) else term
        for term in formula.terms
    ]
    return formula._replace(terms=tuple(terms))


FORMULAS: dict[str, Formula] = {
    name: assume_unpacked(formula) for name, formula in dict(PAPERS, **SERVING, **MEGATRON, **TRAINERS).items()
}


def parts(name: str) -> dict[str, tuple[Term, int | None]]:
    """The op names of a formula's parts: the term, and the index of the assumption, None for the base."""
    made: dict[str, tuple[Term, int | None]] = {}
    for term in FORMULAS[name].terms:
        base = f"{name}/{term.title}"
        made[base] = (term, None)
        for index, assumption in enumerate(term.assumes):
            made[f"{base}/{assumption.name}"] = (term, index)
    return made


def count_of(term: Term, index: int | None, facts: Facts) -> int:
    """What a part counts in one pass: the base of a term (``index`` None), or the difference that an assumption makes."""
    return term.count(assume_facts(term, facts, 0)) if index is None else deviation(term, facts, index)
