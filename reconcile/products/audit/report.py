"""The Markdown page and the CSV table of an audit: functions of the verdicts alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...core import table
from ...core.text import markdown, number
from . import summary
from .claims import COLUMNS, WRITTEN
from .source_inference import Found
from .verdict import Verdict

MOST = 200
"""Rows of a page that lists them."""
SHOWN = 40
"""Models with several figures that a page lists."""


def to_csv(verdicts: Sequence[Verdict]) -> str:
    """One row per claim: its own columns, and what was found."""
    return table.format_report_csv([WRITTEN, *map(_row, verdicts)])


def _row(verdict: Verdict) -> tuple[object, ...]:
    claim, best = verdict.claim, verdict.best
    said = tuple(getattr(claim, name) for name in COLUMNS)
    reading = ("", "", "", "", "") if best is None else (best.value, best.unit, best.what, best.how, best.note)
    counts = ("",) * 4 if best is None else (verdict.matches, verdict.numbers, chance(verdict), verdict.evidence)
    return (claim.row, *said, verdict.state.value, *reading, *counts, verdict.macs or "", verdict.reason)


def to_markdown(
    verdicts: Sequence[Verdict], drawn: tuple[int, int], command: str = "", found: Sequence[Found] = ()
) -> str:
    """The page. ``drawn`` is how many random figures are explained, and how many were drawn (verdict.by_chance); ``found`` is
    what each source counts."""
    lines = ["# Audit", "", *([f"Written by `{command}`.", ""] if command else []), summary.states(verdicts), ""]
    for sentence in summary.proves(verdicts, drawn):
        lines += [sentence, ""]
    lines += [
        *_words(verdicts),
        *_sources(found),
        *_kinds(verdicts),
        *_readings(verdicts),
        *_several(verdicts),
        *_open(verdicts),
        *_every(verdicts),
    ]
    return "\n".join(lines)


def _words(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """The words of the page that a reader may not know."""
    for word, meaning in summary.words(verdicts):
        yield f"* **{word}**: {meaning}"
    yield ""


def _sources(found: Sequence[Found]) -> Iterator[str]:
    """What each source counts, and how sure that is."""
    if not found:
        return
    yield "| source | reading of its rows | rows | of | likelier with it |"
    yield "|:--|:--|--:|--:|--:|"
    for one in found:
        said = (markdown(one.source or "not named"), markdown(one.what), number(one.rows), number(one.of))
        yield f"| {' | '.join(said)} | {summary.times(one)} |"
    yield ""
    yield summary.HOW_SOURCES_ARE_READ
    yield ""


def _kinds(verdicts: Sequence[Verdict]) -> Iterator[str]:
    lines = summary.kinds(verdicts)
    if not lines:
        return
    yield "| of the explained figures | figures | share |"
    yield "|:--|--:|--:|"
    for line in lines:
        yield f"| {markdown(line.what)} | {number(line.count)} | {line.share} |"
    yield ""


def _readings(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Which readings explain how many figures."""
    found = summary.readings(verdicts)
    if not found:
        return
    yield "| simplest reading | figures | of those explained | alone |"
    yield "|:--|--:|--:|--:|"
    for line, alone in found:
        yield f"| {markdown(line.what)} | {number(line.count)} | {line.share} | {number(alone)} |"
    yield ""
    yield "`alone`: no other number that is read here has the figure's digits."
    yield ""


def _several(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """The models that have several figures, and what each of these is."""
    groups = summary.several(verdicts)
    if not groups:
        return
    closed = sum(all(v.best is not None for v in group.verdicts) for group in groups)
    yield f"{number(len(groups))} models have several figures for one input; of {number(closed)}, all figures are explained."
    if len(groups) > SHOWN:
        yield f"The {SHOWN} whose figures are furthest apart:"
    yield ""
    yield "| model | figures | what they are |"
    yield "|:--|:--|:--|"
    for group in groups[:SHOWN]:
        yield f"| {markdown(group.model)} | {markdown(group.figures)} | {markdown('; '.join(group.why))} |"
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


def _every(verdicts: Sequence[Verdict]) -> Iterator[str]:
    if len(verdicts) > MOST:
        yield f"The {number(len(verdicts))} rows are in `audit.csv`, and in `index.html`, where you can search them."
        yield ""
        return
    yield "Every row:"
    yield ""
    yield "| model | input | figure | verdict | number | reading | readings | by chance |"
    yield "|:--|:--|--:|:--|--:|:--|--:|--:|"
    yield from map(_line, verdicts)
    yield ""
    yield (
        "`readings` is how many readings of the model agree with the figure, all of which are in docs/decode.md; the simplest is "
        "shown. `by chance` is the share of random figures of as many digits, between a tenth and ten times the multiply-adds of "
        "the model, that a reading as simple as this one agrees with. The arithmetic and the layers are in `audit.csv`."
    )
    yield ""


def _line(verdict: Verdict) -> str:
    claim, best = verdict.claim, verdict.best
    cells = [markdown(claim.model), markdown(claim.input), markdown(claim.printed), verdict.state.value]
    if best is None:
        return f"| {' | '.join([*cells, '', '', '', ''])} |"
    what = ", ".join(part for part in (best.what, verdict.evidence) if part)
    found = [number(best.value), markdown(what), number(verdict.matches), chance(verdict)]
    return f"| {' | '.join([*cells, *found])} |"


def chance(verdict: Verdict) -> str:
    return "" if verdict.chance is None else f"{100 * verdict.chance:.2g} %"
