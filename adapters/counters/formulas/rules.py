"""Rules of the formula counters: one for the base and for each assumption of every term, computed from the facts of a layer."""

from __future__ import annotations

from ....core.records import Op
from ....work import Work
from ..rulebook import RuleBook
from .table import FORMULAS, parts
from .terms import Term, count_of

BOOK = RuleBook("formula", "torch", {})
"""Sources are spelled out in the table of terms."""


def _register(op: str, term: Term, index: int | None) -> None:
    file, _, lines = term.source.partition(":")
    BOOK.files[file] = file
    source = ", ".join(f"{file}:{line}" for line in lines.split(", "))
    formula = term.formula if index is None else f"{term.formula}: {term.assumes[index].formula}"

    @BOOK.rule(op, source=source, formula=formula)
    def count(sighting: Op) -> Work:
        amount = count_of(term, index, sighting.attrs)
        return Work(special=amount) if term.plain else Work(mac=amount)


for name in FORMULAS:
    for op, (term, index) in parts(name).items():
        _register(op, term, index)
