"""Hints for the unexplained rows of an audit: variants of the model, and related models, that have the published number.

The models of such rows run once more, each in a process of its own, as variants (decode/variants.py): at another size or in
another form. Related models are those of the same library and family in the same table, and the versions of a network in the zoo.
None of it explains a row: its reason says what was found, and how often a random number is found so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...core.number_format import number, probability
from ...launch.request import Point
from ..decode import variants
from ..decode.false_positives import by_chance
from ..decode.hints import find_sibling, list_versions
from ..decode.printed_figure import figure
from ..decode.readings import WORK, Candidate
from ..decode.search import select_comparable
from ..gallery.run import ran
from ..sweep.cells import Cell
from ..sweep.small_models import HEADLESS
from .cell import VARIANTS_OF, candidates_of, ran_of
from .verdict import State, Verdict

SHOWN = 2
"""Variants and relatives of a row that are named."""


def again(verdicts: Sequence[Verdict], of_row: Mapping[int, Cell]) -> dict[int, Cell]:
    """The cells to run for the rows that are not explained, by their numbers; one for all rows of a model. One whose class has a
    head is made without it."""
    cells = {}
    for v in verdicts:
        if v.state is State.OPEN and v.macs:
            cell, headless = of_row[v.claim.row], v.made.partition(HEADLESS)[2]
            other = {"architectures": headless} if headless else {}
            cells[v.claim.row] = replace(cell, name=f"{VARIANTS_OF} {cell.name}", arguments={**cell.arguments, **other})
    return cells


def add_hints(verdicts: Sequence[Verdict], outcomes: Mapping[int, Mapping[str, Any]]) -> list[Verdict]:
    """The verdicts, with what was found for those that are not explained; ``outcomes`` are those of ``again``, by row."""
    known, zoo = _table(verdicts), ran()
    return [
        replace(v, reason=". ".join([v.reason, *_describe_findings(v, outcomes.get(v.claim.row, {}), known, zoo)]))
        if v.state is State.OPEN and v.macs
        else v
        for v in verdicts
    ]


def _table(verdicts: Sequence[Verdict]) -> dict[str, Candidate]:
    """The multiply-adds of every model of the table that ran, by the model and its input."""
    return {
        " ".join(part for part in (v.claim.model, v.claim.input) if part): Candidate(v.macs, WORK, "MAC", "")
        for v in verdicts
        if v.macs
    }


def _describe_findings(
    verdict: Verdict,
    outcome: Mapping[str, Any],
    known: Mapping[str, Candidate],
    zoo: Mapping[str, Mapping[str, int]],
) -> list[str]:
    """The sentences on one row, without the full stops between them; ``zoo`` is what ran in its networks."""
    wanted, claim = figure(verdict.claim.printed), verdict.claim
    several, headless = ran_of(outcome), verdict.made.partition(HEADLESS)[2]
    if headless:
        itself = variants.Ran(variants.Variant("", (), Point({})), candidates_of(outcome))
        several = [
            replace(one, variant=replace(one.variant, what=f"as {headless}, without a head {one.variant.what}".strip()))
            for one in (itself, *several)
        ]
    said = [
        f"The network {hit.variant.what} has {number(hit.reading.value)}: {hit.reading.what}"
        for hit in variants.hits(several, wanted)[:SHOWN]
    ]
    version = find_sibling(claim.model, wanted, zoo)
    if version is not None:
        said.append(f"{version[0]} of the zoo, another version of it, runs {number(version[2])} {version[1]}")
    others = list_versions(claim.model, zoo)
    family = {name: c for name, c in known.items() if c.value != verdict.macs and are_related(name, claim.model)}
    near = [(name, c.value) for name, c in family.items() if wanted.holds(c.value)]
    said += [
        f"{name} of the same family runs {number(value)} MACs"
        for name, value in sorted(near, key=lambda one: (abs(one[1] - wanted.value), one[0]))[:SHOWN]
    ]
    table = [c for one in several for c in select_comparable(one.readings, wanted)] + list(family.values())
    table += [Candidate(value, WORK, "FLOP", "") for numbers in others.values() for value in numbers.values()]
    share = by_chance(table, wanted, verdict.macs)
    if said and share is not None:
        tried = len(several) + len(family) + len(others)
        said.append(
            f"Of random figures of as many digits, {probability(share)} are found so, among {tried} variants and relatives"
        )
    return said


def are_related(name: str, model: str) -> bool:
    """Whether two models are of one library and one family: the letters that their names begin with are the same."""
    return name.partition(" ")[0] != model and _family(name) == _family(model) != ("", "")


def _family(model: str) -> tuple[str, str]:
    library, colon, name = model.partition("(")[0].partition(" ")[0].partition(":")
    letters = re.match(r"[A-Za-z]+", name.rpartition(".")[2])
    return (library, letters[0].lower()) if colon and letters else ("", "")
