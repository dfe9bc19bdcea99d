"""All formulas by name, and the parts of their terms: one for the base, one for each assumption. Python 3.6."""

from typing import Dict, Optional, Tuple

from .papers import PAPERS
from .serving import SERVING
from .terms import Facts, Formula, Term, assumed, deviation
from .trainers import TRAINERS

FORMULAS: Dict[str, Formula] = dict(PAPERS, **SERVING, **TRAINERS)


def parts(name: str) -> Dict[str, Tuple[Term, Optional[int]]]:
    """The op names of a formula's parts: the term, and the index of the assumption, None for the base."""
    made: Dict[str, Tuple[Term, Optional[int]]] = {}
    for term in FORMULAS[name].terms:
        base = f"{name}/{term.title}"
        made[base] = (term, None)
        for index, assumption in enumerate(term.assumes):
            made[f"{base}/{assumption.name}"] = (term, index)
    return made


def count_of(term: Term, index: Optional[int], facts: Facts) -> int:
    """What a part counts in one pass."""
    return term.count(assumed(term, facts, 0)) if index is None else deviation(term, facts, index)
