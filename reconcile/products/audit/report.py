"""Renders an audit's verdicts as a Document, as HTML with a searchable table, as CSV, and as a table for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import resources

from markupsafe import Markup

from ...core import table
from ...core.number_format import number, percent, probability
from ...report.document import (
    Block,
    Document,
    Fold,
    Inline,
    Items,
    Span,
    Table,
    Text,
    mark_code,
    section,
    strong,
    tabulate,
)  # fmt: skip
from ...report.document.html import blocks_to_html
from ...report.page import finalize, hash_of, style_page
from ...report.rendering import environment
from . import summary
from .claims import COLUMNS, WRITTEN
from .scatter_plot import picture
from .source_inference import SourceReading
from .verdict import State, Verdict

MAX_LISTED_ROWS = 200
"""Rows of a page, and of the terminal, that lists them."""
MAX_LISTED_MODELS = 40
"""Models with several figures that a page lists."""
WHAT_ALONE_MEANS = "`alone`: no other number that is read here has the figure's digits."
HOW_ROWS_ARE_READ = (
    "`readings` is how many readings of the model agree with the figure, all of which are in docs/decode.md; the simplest is "
    "shown. `by chance` is the share of random figures of as many digits, between a tenth and ten times the multiply-adds of "
    "the model, that a reading as simple as this one agrees with. The arithmetic and the layers are in `audit.csv`."
)


def to_csv(verdicts: Sequence[Verdict]) -> str:
    """One row per claim: its own columns, and what was found."""
    return table.format_report_csv([WRITTEN, *map(_row, verdicts)])


def _row(verdict: Verdict) -> tuple[object, ...]:
    claim, best = verdict.claim, verdict.best
    said = tuple(getattr(claim, name) for name in COLUMNS)
    reading = ("", "", "", "", "") if best is None else (best.value, best.unit, best.what, best.how, best.note)
    counts = ("",) * 4 if best is None else (verdict.matches, verdict.numbers, chance(verdict), verdict.evidence)
    return (claim.row, *said, verdict.state.value, *reading, *counts, verdict.macs or "", verdict.reason)


def describe_audit(
    verdicts: Sequence[Verdict], drawn: tuple[int, int], command: str = "", found: Sequence[SourceReading] = ()
) -> Document:
    """``README.md``. ``drawn`` is how many random figures are explained, and how many were drawn (verdict.by_chance); ``found``
    is what each source counts."""
    rest = tuple(
        (str(v.claim.row), v.claim.model, v.claim.printed, v.state.value, v.reason) for v in verdicts if v.best is None
    )
    return Document(
        "Audit",
        "",
        (
            *introduce(verdicts, drawn, command),
            describe_words(verdicts),
            *describe_sources(found),
            *describe_readings(verdicts),
            *_models_with_several_figures(summary.group_by_model(verdicts)),
            *([Text("Without an explanation:")] if rest else []),
            *_with_note(tabulate("row>|model|figure>|verdict|reason", rest)),
            *_all_rows(verdicts),
        ),
    )


def tabulate_rows(verdicts: Sequence[Verdict]) -> Table:
    """What each figure counts, or why that is not known, a row each: for the terminal."""
    rows = []
    for v in verdicts:
        far = "differs" if v.of_parameters else "neither"
        counts = f"{v.best.unit}s" if v.best else far if v.state is State.OPEN else v.state.value
        found = "; ".join(filter(None, (v.best.what if v.best else v.reason, v.evidence, *v.remarks)))
        rows.append((str(v.claim.row), v.claim.printed, counts, f"{summary.name_model(v)}: {found}"))
    return tabulate("row>|figure>|counts|model: reading or reason", rows)


def introduce(verdicts: Sequence[Verdict], drawn: tuple[int, int], command: str) -> Iterator[Block]:
    """The command that writes the page, how many figures have which verdict, and what that proves."""
    if command:
        yield Text(("Written by ", Span(command, "code"), "."))
    yield from map(Text, (summary.states(verdicts), *summary.proves(verdicts, drawn)))


def describe_words(verdicts: Sequence[Verdict]) -> Items:
    """The words of the page that a reader may not know."""
    return Items(tuple((strong(word), f": {meaning}") for word, meaning in summary.words(verdicts)))


def describe_sources(found: Sequence[SourceReading]) -> tuple[Block, ...]:
    """What each source counts, and how sure that is."""
    rows = [
        (one.source or "not named", one.what, number(one.rows), number(one.of), f"10^{one.power:,.0f}") for one in found
    ]
    return _with_note(
        tabulate("source|reading of its rows|rows>|of>|likelier with it>", rows), summary.HOW_SOURCES_ARE_READ
    )


def describe_readings(verdicts: Sequence[Verdict]) -> tuple[Block, ...]:
    """What the explained figures count, and which readings explain how many."""
    of = len(summary.select_explained(verdicts))
    kinds = ((what, number(count), percent(count, of)) for what, count in summary.kinds(verdicts))
    readings = ((w, number(n), percent(n, of), number(alone)) for w, n, alone in summary.readings(verdicts))
    return (
        *_with_note(tabulate("of the explained figures|figures>|share>", kinds)),
        *_with_note(
            tabulate("simplest reading|figures>|of those explained>|alone>", readings), mark_code(WHAT_ALONE_MEANS)
        ),
    )


def _with_note(shown: Table, *notes: Inline) -> tuple[Block, ...]:
    """The table and sentences on it; nothing for one without rows."""
    return (shown, *map(Text, notes)) if shown.rows else ()


def tabulate_models(groups: Sequence[Sequence[Verdict]]) -> Table:
    """The models that have several figures, and what each of these is."""
    rows = []
    for group in groups:
        why = "; ".join(v.state.value if v.best is None else v.best.what for v in group)
        rows.append((summary.name_model(group[0]), ", ".join(v.claim.figure for v in group), why))
    return tabulate("model|figures|what they are", rows)


def _models_with_several_figures(groups: Sequence[Sequence[Verdict]]) -> Iterator[Block]:
    if not groups:
        return
    closed = sum(all(v.best is not None for v in group) for group in groups)
    several = f"{number(len(groups))} models have several figures for one input; of {number(closed)}, all figures are explained."
    furthest = f" The {MAX_LISTED_MODELS} whose figures are furthest apart:" if len(groups) > MAX_LISTED_MODELS else ""
    yield Text(several + furthest)
    yield tabulate_models(groups[:MAX_LISTED_MODELS])


def _all_rows(verdicts: Sequence[Verdict]) -> Iterator[Block]:
    if len(verdicts) > MAX_LISTED_ROWS:
        yield Text(
            mark_code(
                f"The {number(len(verdicts))} rows are in `audit.csv`, and in `index.html`, where you can search them."
            )
        )
        return
    yield Text("Every row:")
    titles = "model|input|figure>|verdict|number>|reading|readings>|by chance>"
    yield from _with_note(tabulate(titles, map(_line, verdicts)), mark_code(HOW_ROWS_ARE_READ))


def _line(verdict: Verdict) -> tuple[str, ...]:
    claim, best = verdict.claim, verdict.best
    found = ("", "", "", "")
    if best is not None:
        what = ", ".join(part for part in (best.what, verdict.evidence, verdict.made) if part)
        found = (number(best.value), what, number(verdict.matches), chance(verdict))
    return (claim.model, claim.input, claim.printed, verdict.state.value, *found)


def chance(verdict: Verdict) -> str:
    """``0.036 %``; '' for a figure without a reading."""
    return "" if verdict.chance is None else probability(verdict.chance)


def to_html(
    verdicts: Sequence[Verdict], drawn: tuple[int, int], command: str = "", found: Sequence[SourceReading] = ()
) -> str:
    """``index.html``. ``drawn`` is how many random figures are explained, and how many were drawn (verdict.by_chance); ``found``
    is what each source counts."""
    template = environment(finalize, autoescape=True, package=__package__, folder=".")
    rules, script = (resources.files(__package__).joinpath(f"audit.{end}").read_text("utf-8") for end in ("css", "js"))
    style = style_page(rules)
    present = {verdict.state for verdict in verdicts}
    groups = summary.group_by_model(verdicts)
    sources, readings = describe_sources(found), describe_readings(verdicts)
    several = (Fold(f"{number(len(groups))} models", (tabulate_models(groups),)),) if groups else ()
    parts = (
        ("What each source counts", sources),
        ("What the explained figures count", readings),
        ("Several figures for one model", several),
    )
    words = Fold("Words of this page", (describe_words(verdicts),))
    return template.get_template("audit.html.j2").render(
        verdicts=verdicts,
        states=[state for state in State if state in present],
        introduction=blocks_to_html((*introduce(verdicts, drawn, command), words)),
        picture=picture(verdicts),
        drawn=[state for state in State if any(v.state is state and v.macs for v in verdicts)],
        parts=blocks_to_html(block for title, blocks in parts for block in section(title, *blocks)),
        chance=chance,
        style=Markup(style),
        style_hash=Markup(hash_of(style)),
        script=Markup(script),
        script_hash=Markup(hash_of(script)),
    )
