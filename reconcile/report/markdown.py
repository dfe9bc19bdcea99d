"""The Markdown report (``--format md``), for pull requests: prepares the values that templates/report.md.j2 shows."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import jinja2

from ..core.conventions import ALL, Convention
from ..core.escaping import markdown, prose
from ..core.number_format import format_shape, format_signed, list_first, number
from ..core.records import Tensor
from ..core.results import Evidence, LayerRow, Statement
from ..engine.answer import Answer
from ..engine.breakdown import blocks, to_the_work
from ..engine.phases import PhaseTable
from . import document, folds, markdown_tables, view
from .alignment import sentences
from .document.markdown import render_blocks, render_statement, times
from .rendering import environment

MAX_BYTES = 20_000
"""The most bytes of a report that has the table of every layer beside it."""
LINE_LIMITS = (40, 25, 15, 10, 6)
"""The most lines of each of its tables: the first of these numbers with which the report is small enough."""


class Raw(str):
    """Finished Markdown: the template writes it unchanged; it escapes every other string."""

    __slots__ = ()


def to_markdown(
    result: Answer,
    statement: Statement | None = None,
    command: str = "",
    pictures: Mapping[str, str] = MappingProxyType({}),
    table: str = "",
) -> str:
    """The report as Markdown. ``statement`` is the headline (default: see view.describe_answer); ``command``
    reproduces the run; ``pictures`` maps the subject of a picture to a file beside the report that shows it; ``table`` is the
    file beside it that has every layer in a row of its own. With ``table``, the report is cut to ``MAX_BYTES`` bytes, as
    far as its tables allow: the smallest lines of each table share one line, but never residuals and unknown work."""
    shown = view.describe_answer(result, statement)
    for most in (None, *LINE_LIMITS) if table else (None,):
        text = _render_page(shown, command, pictures, table, most)
        if len(text.encode("utf-8", "backslashreplace")) <= MAX_BYTES:
            break
    return text


def _render_page(
    shown: view.AnswerView, command: str, pictures: Mapping[str, str], table: str, most: int | None
) -> str:
    """The report with ``most`` lines in each table, and one for the others."""
    result, headline = shown.result, shown.headline
    about, differ = view.split_description(result)
    counters = document.tabulate(view.COUNTER_TITLES, (cells for cells, _ in shown.counters))
    text = _template().render(
        most=most,
        result=result,
        view=shown,
        headline=headline,
        said=result.verdict,
        counters=Raw("".join(render_blocks([counters])) if shown.counters else ""),
        layers=markdown_tables.layers(result, most),
        phased=_list_phases(shown),
        published=view.list_published(result),
        bridges=_group_bridges(result, headline),
        evidence=[] if headline is None else list(_evidence_rows(headline)),
        components=markdown_tables.components(result, most),
        table=table,
        across=_trace_statements(result),
        command=command,
        pictures=pictures,
        statement=lambda s, brief=False: Raw(render_statement(view.describe_statement(result, s), brief, most)),
        about=about,
        differ="" if result.notes else differ,  # notes replace it
        aligned=sentences(result.alignment) if result.alignment else [],
    )
    return re.sub(r"\n{3,}", "\n\n", text.strip()) + "\n"


@lru_cache(maxsize=1)
def _template() -> jinja2.Template:
    made = environment(_finalize, autoescape=False)
    made.filters.update(
        signed=lambda n: Raw(format_signed(n)),
        prose=lambda t: Raw(prose(t)),
        code=lambda t: Raw(t.replace("```", "'''")),
        cell=_counter_cell,
        phases_folded=markdown_tables.phases,
        lines_folded=markdown_tables.between,
        times=lambda amount, count: Raw(times(amount, count)),
        layers_alike=lambda each: Raw(f" × {number(each.count)}" if each.count > 1 else ""),
        list_of=lambda names: Raw(", ".join(map(markdown, folds.shorten_variants(names)))),
        file=lambda name: Raw(quote(name)),
        names=lambda keys: Raw(", ".join(markdown(k) for k in keys)),
        words=view.state_word,
        phase_cell=lambda row, phase: Raw(view.phase_cell(row, phase)),
        phase_ratio=lambda row: Raw(view.phase_ratio(row)),
        utilisation_sentence=lambda row, steps: Raw(view.utilisation_sentence(row, steps)),
        ratio_sentence=lambda row: Raw(view.ratio_sentence(row)),
    )
    return made.get_template("report.md.j2")


def _finalize(value: Any) -> Any:
    if isinstance(value, Raw):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return number(value)
    return markdown(str(value))


def _counter_cell(row: LayerRow, counter: str) -> Raw:
    """A cell of the layer table: the value, then the amounts to add to it to get the work that ran."""
    causes = to_the_work(row, counter)
    if counter not in row.counters and not causes:
        return Raw("")
    lines = [number(row.counters.get(counter, 0))]
    lines += [f"{cause} {format_signed(amount)}" for cause, amount in causes.items()]
    return Raw("<br>".join(lines))


def _shape_text(tensors: tuple[Tensor, ...]) -> Raw:
    """``(1, 96) (96, 288)``; ? for an unknown dimension, and for a tensor of unknown rank."""
    return Raw(" ".join(format_shape(t.shape) for t in tensors))


def _group_bridges(result: Answer, headline: Statement | None) -> list[tuple[Statement, list[Statement]]]:
    """Each counter's own statement. If the model is large, those with the same lines are together, and the headline is not
    repeated."""
    long = len(result.layers) > folds.MAX_UNFOLDED

    def make_key(s: Statement) -> Hashable:
        lines = tuple((block.cause, part.layer, tuple(part.ops), part.amount, part.reason)
                      for block in blocks(s) for part in block.parts)  # fmt: skip
        return (s.to, s.state, s.reason, s.from_total, origin_of(s.from_), s.to_total, lines)

    def origin_of(name: str) -> str:
        return view.describe_origin(result, name, None).removeprefix(name)

    own = [v.statement for v in result.verdict.counters if v.statement is not None]
    groups = folds.group_same([s for s in own if not (long and s is headline)], make_key, long)
    return [(first, others) for first, *others in groups]


def _evidence_rows(statement: Statement) -> Iterator[tuple[str, Evidence, str, Raw, list[str]]]:
    """The rows of evidence: cause, evidence, layers, shapes and ops. In a long table, many ops under one rule share a row
    that names the layers, and the shapes of the first op."""
    every = [(line.cause.value, e) for line in statement.adjustments for e in line.evidence]

    def make_key(row: tuple[str, Evidence]) -> Hashable:
        cause, e = row
        return (cause, e.side, e.counter, e.rule, e.source, e.seen_times, e.times, e.component, e.formula, _op_names(e))

    for group in folds.group_same(every, make_key, len(every) > folds.MAX_UNFOLDED):
        cause, first = group[0]
        where = folds.fold_names(e.layer for _, e in group)
        inputs = dict.fromkeys(e.seen[0].inputs if e.seen else () for _, e in group)
        shapes = list(dict.fromkeys(map(_shape_text, inputs)))
        yield cause, first, list_first(where, 3), Raw(list_first(shapes, 1)), list(_op_names(first))


def _op_names(e: Evidence) -> tuple[str, ...]:
    return tuple(dict.fromkeys(op.op for op in e.seen))


def _list_phases(shown: view.AnswerView) -> list[tuple[Convention, list[tuple[str, PhaseTable]]]]:
    """The tables by layer and phase, under the run's convention and under the one that counts everything."""
    convention = shown.result.convention
    under_all = view.phase_tables(shown.result, ALL) if convention.name != ALL.name else []
    return [(c, tables) for c, tables in ((convention, shown.phases), (ALL, under_all)) if tables]


def _trace_statements(result: Answer) -> list[Statement]:
    """The statements from trace to trace: the real differences."""
    names = {t.name for t in result.traces}
    return [s for s in result.statements if s.from_ in names and s.to in names]
