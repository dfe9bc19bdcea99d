"""An audit's page and table: functions of the verdicts alone, the same whenever they are written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ..core import table
from ..core.text import markdown, number, percent
from .claims import COLUMNS
from .verdict import State, Verdict

FOUND = (
    "verdict",
    "number",
    "unit",
    "reading",
    "arithmetic",
    "left out",
    "readings",
    "numbers",
    "by chance",
    "macs",
    "reason",
)


def to_csv(verdicts: Sequence[Verdict]) -> str:
    """One row per claim: its own columns, and what was found."""
    return table.written([("row", *COLUMNS, *FOUND), *map(_row, verdicts)])


def _row(verdict: Verdict) -> tuple[object, ...]:
    claim, best = verdict.claim, verdict.best
    said = tuple(getattr(claim, name) for name in COLUMNS)
    reading = ("", "", "", "", "") if best is None else (best.value, best.unit, best.what, best.how, best.note)
    counts = ("", "", "") if best is None else (verdict.matches, verdict.numbers, _chance(verdict))
    return (claim.row, *said, verdict.state.value, *reading, *counts, verdict.macs or "", verdict.reason)


def to_markdown(verdicts: Sequence[Verdict], drawn: tuple[int, int], command: str = "") -> str:
    """The page. ``drawn`` is how many random figures are explained, and how many were drawn (verdict.by_chance)."""
    lines = ["# Audit", "", *([f"Written by `{command}`.", ""] if command else []), *_totals(verdicts, drawn), ""]
    lines += [*_readings(verdicts), *_contradictions(verdicts), *_open(verdicts)]
    lines += ["Every row:", "", "| model | input | figure | verdict | number | reading | readings | by chance |"]
    lines += ["|:--|:--|--:|:--|--:|:--|--:|--:|", *map(_line, verdicts), ""]
    lines += [
        "`readings` is how many readings of the model agree with the figure, all of which are in docs/decode.md; the simplest is "
        "shown. `by chance` is the share of random figures of as many digits, between a tenth and ten times the multiply-adds of "
        "the model, that a reading as simple as this one agrees with. The arithmetic and the layers are in `audit.csv`.",
        "",
    ]
    return "\n".join(lines)


def _totals(verdicts: Sequence[Verdict], drawn: tuple[int, int]) -> Iterator[str]:
    states = Counter(verdict.state for verdict in verdicts)
    total = len(verdicts)
    counts = "; ".join(f"{number(states[state])} {state.value}" for state in State)
    yield f"{number(total)} figures: {counts}."
    looked = [verdict for verdict in verdicts if verdict.macs]
    if not looked:
        return
    explained = states[State.EXPLAINED]
    yield f"Of the {number(len(looked))} whose model ran, {percent(explained, len(looked))} are explained."
    hits, draws = drawn
    yield ""
    yield f"Of {number(draws)} random figures for the same models, printed to the same place, {number(hits)} are explained:"
    yield "so many of the figures above would be if they meant nothing. Two digits prove little by themselves."


def _readings(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Which readings explain how many figures."""
    found = Counter(v.best.what for v in verdicts if v.best is not None and v.state is State.EXPLAINED)
    if not found:
        return
    yield "| simplest reading | figures | of those explained | alone |"
    yield "|:--|--:|--:|--:|"
    alone = Counter(
        v.best.what for v in verdicts if v.best is not None and v.state is State.EXPLAINED and v.numbers == 1
    )
    for what, count in sorted(found.items(), key=lambda item: (-item[1], item[0])):
        share = percent(count, found.total())
        yield f"| {markdown(what)} | {number(count)} | {share} | {number(alone[what])} |"
    yield ""
    yield "`alone`: no other number that is read here has the figure's digits."
    yield ""


def _contradictions(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """How many figures are in another unit than they say."""
    held = Counter(
        (v.claim.claim, v.best.unit)
        for v in verdicts
        if v.best is not None and v.state is State.EXPLAINED and v.contradicts
    )
    for (claim, unit), count in sorted(held.items()):
        yield f"{number(count)} explained figures are called {markdown(claim)} and count {unit}s."
    if held:
        yield ""


def _open(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Every claim without an explanation, with its reason."""
    rest = [verdict for verdict in verdicts if verdict.best is None]
    if not rest:
        return
    yield "Without an explanation:"
    yield ""
    yield "| row | model | figure | verdict | reason |"
    yield "|--:|:--|--:|:--|:--|"
    for v in rest:
        said = (v.claim.model, v.claim.printed, v.state.value, v.reason)
        yield f"| {v.claim.row} | {' | '.join(map(markdown, said))} |"
    yield ""


def _line(verdict: Verdict) -> str:
    claim, best = verdict.claim, verdict.best
    cells = [markdown(claim.model), markdown(claim.input), markdown(claim.printed), verdict.state.value]
    if best is None:
        return f"| {' | '.join([*cells, '', '', '', ''])} |"
    found = [number(best.value), markdown(best.what), number(verdict.matches), _chance(verdict)]
    return f"| {' | '.join([*cells, *found])} |"


def _chance(verdict: Verdict) -> str:
    return "" if verdict.chance is None else f"{100 * verdict.chance:.2g} %"
