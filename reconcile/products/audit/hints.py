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

from ...core.escaping import quote_words
from ...core.number_format import number, probability
from ...core.registry import frameworks, known_counters
from ...launch.request import Point
from ..decode import variants
from ..decode.false_positives import by_chance
from ..decode.hints import find_sibling, list_versions
from ..decode.printed_figure import figure
from ..decode.readings import WORK, Candidate
from ..decode.search import select_comparable
from ..gallery.run import ran
from ..sweep.cell import command_of
from ..sweep.cells import Cell, Manner
from ..sweep.small_models import HEADLESS
from .cell import VARIANTS_OF, candidates_of, ran_of
from .claims import Claim
from .verdict import State, Verdict

MOST = 0.05
"""The share of random figures from which on what is found so is not worth a word."""
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


def select_claims(
    claims: Sequence[Claim], cell: Cell, more: Mapping[int, Cell], of_row: Mapping[int, Cell]
) -> list[Claim]:
    """The rows whose own model that cell of ``again`` runs, and not the one without a head."""
    return [c for c in claims if more.get(c.row) == cell and cell.arguments == of_row[c.row].arguments]


def list_named_counters(claims: Sequence[Claim], cell: Cell) -> tuple[str, ...]:
    """The counters that these rows of one model name, of its frameworks, and that build it in no other way."""
    return tuple(
        name
        for name, c in known_counters().items()
        if not c.recipe
        and c.framework in (cell.factories or frameworks())
        and any(claim.names(c.family) or claim.names(name) for claim in claims)
    )


def add_counted(
    claims: Sequence[Claim], outcomes: Mapping[int, Mapping[str, Any]], more: Mapping[int, Mapping[str, Any]]
) -> dict[int, Mapping[str, Any]]:
    """The outcomes of the rows, each with what the counter that it names reported in its outcome of ``again``."""
    found = dict(outcomes)
    for claim in claims:
        counted = [r for r in more.get(claim.row, {}).get("readings", ()) if r["counter"] and claim.names(r["family"])]
        if counted:
            held = found[claim.row]
            found[claim.row] = {
                **held,
                "readings": [*held["readings"], *(r for r in counted if r not in held["readings"])],
            }
    return found


def add_hints(
    verdicts: Sequence[Verdict], outcomes: Mapping[int, Mapping[str, Any]], of_row: Mapping[int, Cell]
) -> list[Verdict]:
    """The verdicts, with what was found for those that are not explained, and the command that looks further; ``outcomes`` are
    those of ``again``, by row, and ``of_row`` the cells that it was given."""
    known, zoo = _table(verdicts), ran()
    found = []
    for v in verdicts:
        if v.state is State.OPEN and v.macs:
            outcome = outcomes.get(v.claim.row, {})
            silent = [c for c in outcome.get("counters", ()) if c["reported"] is None and v.claim.counter]
            lost = [f"{c['counter']} did not run: {c['reason'].rstrip('.')}" for c in silent]
            look = f"Look further: {spell_decode(v.claim, of_row[v.claim.row])}"
            v = replace(v, reason=". ".join([v.reason, *lost, *_describe_findings(v, outcome, known, zoo), look]))
        found.append(v)
    return found


def spell_decode(claim: Claim, cell: Cell) -> str:
    """The command that looks for the figure of a row among every counter's numbers, too."""
    made = ", ".join(f"{name}={value!r}" for name, value in cell.arguments.items())
    called = {framework: f"{where}({made})" if made else where for framework, where in cell.factories.items()}
    run = command_of(replace(cell, factories=called, arguments={}), Manner())
    return f"{run.replace(' run ', ' decode ', 1)} {quote_words([claim.printed])}"


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
    if share is not None and share > MOST:
        return []
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
