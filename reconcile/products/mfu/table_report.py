"""The page of ``reconcile mfu --table`` as a Document, and its CSV: functions of the verdicts alone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ...core import table
from ...core.number_format import number, percent, probability
from ...report.document import Block, Document, Inline, Items, Span, Text, mark_code, section, tabulate
from .claims import COLUMNS
from .report import decimal
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
    return "" if v.chance is None else probability(v.chance)


def count_states(verdicts: Sequence[Verdict]) -> str:
    """A sentence for the page and the terminal: how many rows have which verdict."""
    found = Counter(v.state for v in verdicts)
    return f"{number(len(verdicts))} rows: " + "; ".join(f"{number(found[s])} {s.value}" for s in State) + "."


def are_all_explained(verdicts: Sequence[Verdict]) -> bool:
    """Whether every row is explained."""
    return not [v for v in verdicts if v.state is not State.EXPLAINED]


def select_complete(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Those of the verdicts on rows that state their throughput in tokens and their model: explained or contradicted."""
    return [v for v in verdicts if v.row.tokens is not None and v.state in (State.EXPLAINED, State.CONTRADICTED)]


def describe_table(verdicts: Sequence[Verdict], command: str = "") -> Document:
    """``README.md``: the verdicts by source, the changes of convention, and the rows. ``command`` is what writes the page."""
    stated = select_complete(verdicts)
    good = sum(v.state is State.EXPLAINED for v in stated)
    share = (
        f"{number(len(stated))} rows state their throughput and their model; {number(good)} of them "
        f"({percent(good, len(stated))}) are explained, to the printed digits or within the rounding of what is printed."
    )
    rest = sorted((v for v in verdicts if v.state is not State.EXPLAINED), key=lambda v: list(State).index(v.state))
    return Document(
        "Published claims",
        "",
        (
            *([Text(("Written by ", Span(command, "code"), "."))] if command else []),
            Text(count_states(verdicts)),
            *([Text(share)] if stated else []),
            *section(
                "What each source counts", tabulate("source|convention|peak|rows>|of>", _sources(verdicts)), NOTATION
            ),
            *section(
                "FLOPs of a token by its rates",
                tabulate("model|tokens of a sequence>|lowest>|highest>|rows>", _quotients(verdicts)),
            ),
            *section("Where the convention changed", Items(tuple(_changes(verdicts)))),
            *section("Not explained", tabulate("row|claimed>|verdict|factor>|reason", map(_open, rest))),
            *_every([v for v in verdicts if v.state is State.EXPLAINED]),
        ),
    )


NOTATION = Text(
    "N is the number of parameters, L layers, h the width, T the sequence length, V the vocabulary, n heads. 12LhT is whole "
    "attention, 6LhT causal attention. A convention of several rows was not luck: fewer than 0.05 of all conventions would "
    "explain as many rows of the source if the claims meant nothing."
)
BY_CHANCE = "`by chance` is the share of random claims of as many digits that a convention of the row's source gives."


def _sources(verdicts: Sequence[Verdict]) -> Iterator[tuple[Inline, ...]]:
    """Which convention each source uses: inferred from all its rows."""
    by_source: dict[str, list[Verdict]] = {}
    for v in verdicts:
        by_source.setdefault(v.row.source, []).append(v)
    for source, rows in by_source.items():
        counts = Counter(v.convention for v in rows if v.state is State.EXPLAINED)
        for convention, count in counts.most_common():
            peaks = Counter(v.peak for v in rows if v.convention == convention and v.peak)
            peak = "; ".join(name for name, _ in peaks.most_common(2))
            short = re.sub(r"@([0-9a-f]{7})[0-9a-f]{33}", r"@\1", source)  # a commit
            yield short, convention, peak, str(count), str(len(rows))


def _quotients(verdicts: Sequence[Verdict]) -> Iterator[tuple[Inline, ...]]:
    """The FLOP/s of a device over its tokens per second, in GFLOPs, where rows of one model and sequence length claim both."""
    found: dict[tuple[str, str], list[float]] = {}
    for v in verdicts:
        if v.row.claim is not None and v.row.claim.kind == "rate" and v.row.tokens is not None and v.row.devices:
            rate = v.row.claim.figure.value * v.row.devices / v.row.tokens.value
            found.setdefault((v.row["model"] or v.row["who"], v.row["seq"] or "not stated"), []).append(
                float(rate / 10**9)
            )
    for (model, seq), rates in found.items():
        yield model, seq, f"{min(rates):.5g} G", f"{max(rates):.5g} G", str(len(rates))


def _publisher(v: Verdict) -> str:
    """Who publishes: the name in parentheses, else the first word."""
    inside = re.search(r"[(]([^)]+)[)]", v.row["who"])
    return inside[1] if inside else v.row["who"].split(" ")[0]


def _changes(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Where one publisher counts in several ways."""
    publishers: dict[str, dict[str, dict[str, None]]] = {}
    for v in verdicts:
        if v.state is State.EXPLAINED and v.row["who"] and v.convention:
            publishers.setdefault(_publisher(v), {}).setdefault(v.convention, {})[v.row["who"].split(" (")[0]] = None
    for publisher, ways in publishers.items():
        if len(ways) > 1:
            counted = (f"{convention} ({', '.join(names)})" for convention, names in ways.items())
            yield f"{publisher}: {'; '.join(counted)}."


def _open(v: Verdict) -> tuple[Inline, ...]:
    """A row that is not explained, with its reason."""
    return v.row.key, _claim_of(v), v.state.value, "" if v.factor is None else decimal(v.factor), v.reason


def _claim_of(v: Verdict) -> str:
    """The claim with its kind."""
    return f"{v.row['claimed']} {v.row['claimed_kind']}"


def _every(good: Sequence[Verdict]) -> Iterable[Block]:
    if len(good) > MOST:
        return section("Explained", Text(mark_code(f"The {number(len(good))} rows are in `mfu.csv`.")))
    rows = [
        (v.row.key, _claim_of(v), "; ".join(filter(None, (v.statement, v.reason))), v.agrees, _chance(v)) for v in good
    ]
    shown = tabulate("row|claimed>|is|agrees|by chance>", rows)
    return section("Explained", shown, Text(mark_code(BY_CHANCE))) if good else ()
