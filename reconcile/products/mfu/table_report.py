"""The Markdown page and the CSV of ``reconcile mfu --table``: functions of the verdicts alone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction

from ...core import table
from ...core.text import markdown, number, percent
from .claims import COLUMNS
from .table_verdicts import State, Verdict

FOUND = ("verdict", "statement", "factor", "convention", "agrees", "by chance", "reason")
MOST = 400
"""Rows of a page that lists them; the others are in the CSV."""


def to_csv(verdicts: Sequence[Verdict]) -> str:
    """One row per claim: its own columns, and what was found."""
    return table.format_report_csv([("row", *COLUMNS, *FOUND), *map(_row, verdicts)])


def _row(v: Verdict) -> tuple[object, ...]:
    factor = "" if v.factor is None else str(v.factor)
    found = (v.state.value, v.statement, factor, v.convention, v.agrees, _chance(v), v.reason)
    return (v.row.number, *(v.row[name] for name in COLUMNS), *found)


def _chance(v: Verdict) -> str:
    return "" if v.chance is None else f"{100 * v.chance:.2g} %"


def states(verdicts: Sequence[Verdict]) -> str:
    """How many rows have which verdict."""
    found = Counter(v.state for v in verdicts)
    return f"{number(len(verdicts))} rows: " + "; ".join(f"{number(found[s])} {s.value}" for s in State) + "."


def are_all_explained(verdicts: Sequence[Verdict]) -> bool:
    """Whether every row is explained."""
    return not [v for v in verdicts if v.state is not State.EXPLAINED]


def complete(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The rows that state their throughput and the model: explained or contradicted, by its tokens."""
    return [v for v in verdicts if v.row.tokens is not None and v.state in (State.EXPLAINED, State.CONTRADICTED)]


def to_markdown(verdicts: Sequence[Verdict], command: str = "") -> str:
    """The page."""
    stated = complete(verdicts)
    good = sum(v.state is State.EXPLAINED for v in stated)
    lines = [
        "# Published utilisations",
        "",
        *([f"Written by `{command}`.", ""] if command else []),
        states(verdicts),
        "",
    ]
    if stated:
        lines += [
            f"{number(len(stated))} rows state their throughput and their model; {number(good)} of them "
            f"({percent(good, len(stated))}) are explained, to the printed digits or within the rounding of what is printed.",
            "",
        ]
    parts = (_sources(verdicts), _changes(verdicts), _open(verdicts), _every(verdicts))
    return "\n".join([*lines, *(line for part in parts for line in part)])


def _by_source(verdicts: Sequence[Verdict]) -> dict[str, list[Verdict]]:
    found: dict[str, list[Verdict]] = {}
    for v in verdicts:
        found.setdefault(v.row.source, []).append(v)
    return found


def _sources(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Which convention each source uses: inferred from all its rows."""
    yield "## What each source counts"
    yield ""
    yield "| source | convention | peak | rows | of |"
    yield "|:--|:--|:--|--:|--:|"
    for source, rows in _by_source(verdicts).items():
        counts: Counter[str] = Counter(v.convention for v in rows if v.state is State.EXPLAINED)
        for convention, count in counts.most_common():
            peaks = Counter(v.peak for v in rows if v.convention == convention and v.peak)
            peak = "; ".join(name for name, _ in peaks.most_common(2))
            yield f"| {markdown(short(source))} | {markdown(convention)} | {markdown(peak)} | {count} | {len(rows)} |"
    yield ""
    yield (
        "N is the number of parameters, L layers, h the width, T the sequence length, V the vocabulary, n heads. 12LhT is whole "
        "attention, 6LhT causal attention. A convention of several rows was not luck: fewer than 0.05 of all conventions would "
        "explain as many rows of the source if the claims meant nothing."
    )
    yield ""


def short(source: str) -> str:
    """The source, with a commit's first seven digits."""
    return re.sub(r"@([0-9a-f]{7})[0-9a-f]{33}", r"@\1", source)


def _house(v: Verdict) -> str:
    """Who publishes: the name in parentheses, else the first word."""
    inside = re.search(r"[(]([^)]+)[)]", v.row["who"])
    return inside[1] if inside else v.row["who"].split(" ")[0]


def _changes(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Where one publisher counts in several ways."""
    houses: dict[str, dict[str, list[str]]] = {}
    for v in verdicts:
        if v.state is State.EXPLAINED and v.row["who"] and v.convention:
            shown = houses.setdefault(_house(v), {}).setdefault(v.convention, [])
            name = v.row["who"].split(" (")[0]
            if name not in shown:
                shown.append(name)
    several = {house: ways for house, ways in houses.items() if len(ways) > 1}
    if not several:
        return
    yield "## Where the convention changed"
    yield ""
    for house, ways in several.items():
        yield (
            f"- {house}: " + "; ".join(f"{convention} ({', '.join(names)})" for convention, names in ways.items()) + "."
        )
    yield ""


def _open(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Every row that is not explained, with its reason."""
    rest = [v for v in verdicts if v.state is not State.EXPLAINED]
    if not rest:
        return
    yield "## Not explained"
    yield ""
    yield "| row | claimed | verdict | factor | reason |"
    yield "|:--|--:|:--|--:|:--|"
    for v in sorted(rest, key=lambda v: list(State).index(v.state)):
        factor = "" if v.factor is None else five(v.factor)
        yield f"| {markdown(v.row.key)} | {markdown(claim_text(v))} | {v.state.value} | {factor} | {markdown(v.reason)} |"
    yield ""


def claim_text(v: Verdict) -> str:
    """The claim with its kind."""
    return f"{v.row['claimed']} {v.row['claimed_kind']}"


def five(factor: Fraction) -> str:
    """Five digits."""
    return f"{float(factor):.5g}"


def _every(verdicts: Sequence[Verdict]) -> Iterator[str]:
    good = [v for v in verdicts if v.state is State.EXPLAINED]
    if not good:
        return
    yield "## Explained"
    yield ""
    if len(good) > MOST:
        yield f"The {number(len(good))} rows are in `mfu.csv`."
        yield ""
        return
    yield "| row | claimed | is | agrees | by chance |"
    yield "|:--|--:|:--|:--|--:|"
    for v in good:
        also = f"; {v.reason}" if v.reason else ""
        told = (markdown(v.row.key), markdown(claim_text(v)), markdown(v.statement + also), v.agrees, _chance(v))
        yield "| " + " | ".join(map(str, told)) + " |"
    yield ""
    yield "`by chance` is the share of random claims of as many digits that a convention of the row's source gives."
    yield ""
