"""The Markdown report, for pull requests. The template holds the words; this file prepares the rows."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import jinja2

from ..core.conventions import ALL, Convention
from ..core.records import Tensor
from ..core.results import Adjustment, Evidence, LayerRow, RunResult, Statement
from ..core.text import markdown, number, prose, signed
from ..engine.breakdown import Part, blocks, differing_components, to_the_work
from ..engine.phases import PhaseTable
from ..verdict.verdict import counters_of, verdict
from . import folds, view
from .alignment import sentences
from .folds import Fold
from .rendering import environment

DIFFER = "How the frameworks differ here"


class Raw(str):
    """Finished Markdown: the template writes it unchanged; it escapes every other string."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class _Share:
    """A line of a cause: ``count`` layers or blocks, each of which has the amount."""

    name: str
    ops: tuple[str, ...]
    reason: str
    count: int
    amount: int


def to_markdown(
    result: RunResult,
    statement: Statement | None = None,
    command: str = "",
    pictures: Mapping[str, str] = MappingProxyType({}),
    table: str = "",
) -> str:
    """The report as Markdown. ``statement`` is the headline (default: see view.default_statement); ``command``
    reproduces the run; ``pictures`` maps the subject of a picture to a file beside the report that shows it; ``table`` is the
    file beside it that has every layer in a row of its own."""
    headline = view.default_statement(result) if statement is None else statement
    about, differ = _description(result)
    text = _template().render(
        result=result,
        summary=view.summary(result),
        headline=headline,
        said=verdict(result),
        verdicts=counters_of(result),
        layers=_layers(result),
        phased=_phased(result),
        published=view.published(result),
        bridges=_bridges(result, headline),
        evidence=[] if headline is None else list(_evidence(headline)),
        table=table,
        across=_between(result),
        components=folds.fold(_components(result), itemgetter(0), lambda row: (row[1], tuple(row[2]))),
        broken=view.broken(result),
        unknown=view.unknown(result),
        lost=view.traces_lost(result),
        left_out=any(x.unsupported for x in result.ledgers)
        or any(t.no_arithmetic or t.integer_ops for t in result.traces),
        command=command,
        pictures=pictures,
        blocks=lambda s: blocks(s, [row.layer for row in result.layers]),
        about=about,
        differ=differ,
        aligned=sentences(result.alignment),
        origin=lambda name, total: view.origin(result, name, total),
    )
    return re.sub(r"\n{3,}", "\n\n", text.strip()) + "\n"


@lru_cache(maxsize=1)
def _template() -> jinja2.Template:
    made = environment(_finalize, autoescape=False)
    made.filters.update(
        signed=lambda n: Raw(signed(n)),
        prose=lambda t: Raw(prose(t)),
        code=lambda t: Raw(t.replace("```", "'''")),
        cell=_cell,
        folded=_folded,
        phases_folded=folds.phases,
        lines_folded=_lines,
        times=lambda share: _times(share.amount, share.count),
        times_of=_times,
        layers_alike=lambda each: Raw(f" × {number(each.count)}" if each.count > 1 else ""),
        list_of=lambda names: Raw(", ".join(map(markdown, folds.short(names)))),
        file=lambda name: Raw(quote(name)),
        shapes=_shapes,
        names=lambda keys: Raw(", ".join(markdown(k) for k in keys)),
        words=lambda name: name.replace("_", " "),
        reason=view.reason,
        distance=view.distance,
        phases=lambda trace, convention: Raw(view.by_phase(trace, convention)),
        phase_cell=lambda row, phase: Raw(view.phase_cell(row, phase)),
        phase_ratio=lambda row: Raw(view.phase_ratio(row)),
        ratio_sentence=lambda row: Raw(view.ratio_sentence(row)),
        broken=lambda pair: view.broken_sentence(*pair),
        unknown=lambda pair: view.unknown_sentence(*pair),
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


def _cell(row: LayerRow, counter: str) -> Raw:
    """A cell of the layer table: the value, then the amounts to add to it to get the work that ran."""
    causes = to_the_work(row, counter)
    if counter not in row.counters and not causes:
        return Raw("")
    lines = [number(row.counters.get(counter, 0))]
    lines += [f"{cause} {signed(amount)}" for cause, amount in causes.items()]
    return Raw("<br>".join(lines))


def _shapes(tensors: tuple[Tensor, ...]) -> Raw:
    """``(1, 96) (96, 288)``; ? for an unknown dimension, and for a tensor of unknown rank."""
    return Raw(" ".join("?" if t.shape is None else f"({', '.join(map(_size, t.shape))})" for t in tensors))


def _size(size: int | None) -> str:
    return "?" if size is None else str(size)


def _description(result: RunResult) -> tuple[str, str]:
    """The author's text on the pair in two parts: the model, and the differences of the frameworks.

    The second part is '' if the pair has notes, which then replace it.
    """
    about, _, rest = result.description.partition(DIFFER)
    return about.strip(), "" if result.notes else rest.strip(": \n")


def _layers(result: RunResult) -> dict[str, Any] | None:
    """The layer table: rows, and a last row of column sums. A long one has the same column once."""
    if not result.layers:
        return None
    frameworks = [t.framework for t in result.traces if t.complete]
    counters = [x.counter for x in result.ledgers if x.normalised_total is not None]
    work = {f: sum(row.work.get(f, 0) for row in result.layers) for f in frameworks}
    sums = {c: sum(row.counters.get(c, 0) for row in result.layers) for c in counters}
    long = len(result.layers) > folds.FEW
    rows = folds.rows(result.layers)
    return {
        "frameworks": folds.same(frameworks, lambda f: tuple(row.work.get(f) for row in result.layers), long),
        "counters": folds.same(counters, lambda c: tuple(_cell(row, c) for row in result.layers), long),
        "rows": rows,
        "folded": any(row.count > 1 for row in rows),
        "work": work,
        "sums": sums,
    }


def _bridges(result: RunResult, headline: Statement | None) -> list[tuple[Statement, list[Statement]]]:
    """Each counter's own statement. If the model is large, those with the same lines are together, and the headline is not
    repeated."""
    long = len(result.layers) > folds.FEW

    def shown(s: Statement) -> Hashable:
        lines = tuple((block.cause, part.layer, tuple(part.ops), part.amount, part.reason)
                      for block in blocks(s) for part in block.parts)  # fmt: skip
        return (s.to, s.state, s.reason, s.from_total, origin_of(s.from_), s.to_total, lines)

    def origin_of(name: str) -> str:
        return view.origin(result, name, None).removeprefix(name)

    own = [v.statement for v in counters_of(result) if v.statement is not None]
    groups = folds.same([s for s in own if not (long and s is headline)], shown, long)
    return [(first, others) for first, *others in groups]


def _evidence(statement: Statement) -> Iterator[tuple[str, Evidence, str, Raw, list[str]]]:
    """The rows of evidence: cause, evidence, layers, shapes and ops. In a long table, what one rule says of many ops is a row
    that names the layers, and the shapes of the first."""
    every = [(line.cause.value, e) for line in statement.adjustments for e in line.evidence]

    def shown(row: tuple[str, Evidence]) -> Hashable:
        cause, e = row
        return (cause, e.side, e.counter, e.rule, e.source, e.seen_times, e.times, e.component, e.formula, _ops(e))

    for group in folds.same(every, shown, len(every) > folds.FEW):
        cause, first = group[0]
        where = folds.names(e.layer for _, e in group)
        shapes = list(dict.fromkeys(_shapes(e.seen[0].inputs) if e.seen else Raw("") for _, e in group))
        yield cause, first, _first_of(where, 3), Raw(_first_of(shapes, 1)), list(_ops(first))


def _ops(e: Evidence) -> tuple[str, ...]:
    return tuple(dict.fromkeys(op.op for op in e.seen))


def _first_of(texts: Sequence[str], most: int) -> str:
    more = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {number(more)} more" if more > 0 else "")


def _lines(adjustments: Sequence[Adjustment]) -> list[Fold[Adjustment]]:
    """The lines between two traces."""
    return folds.fold(
        adjustments,
        lambda line: line.layer,
        lambda line: (line.cause, line.op, line.amount, tuple((e.component, e.formula) for e in line.evidence)),
    )


def _folded(parts: Sequence[Part], brief: bool) -> list[_Share]:
    """The layers of a cause, those that are alike in one line; with ``brief``, those of a block as well, if they are many."""
    alike = folds.parts(parts)
    if brief and len(alike) > folds.FEW and not any(part.reason for part in parts):  # a residual keeps its reasons
        return [
            _Share(s.name, tuple(dict.fromkeys(op for p in s.lines for op in p.ops)), s.folds[0].one.reason, s.count,
                   sum(part.amount for part in s.lines) // s.count)
            for s in folds.structures(alike)
        ]  # fmt: skip
    return [_Share(each.name, tuple(each.one.ops), each.one.reason, each.count, each.one.amount) for each in alike]


def _times(amount: int, count: int) -> Raw:
    """``+30 (10 × +3)``; ``+3`` where there is one."""
    return Raw(signed(amount) if count == 1 else f"{signed(count * amount)} ({number(count)} × {signed(amount)})")


def _phased(result: RunResult) -> list[tuple[Convention, list[tuple[str, PhaseTable]]]]:
    """The tables by layer and phase, under the run's convention and under the one that counts everything."""
    conventions = [result.convention, *([ALL] if result.convention.name != ALL.name else [])]
    return [(c, tables) for c in conventions if (tables := view.phase_tables(result, c))]


def _between(result: RunResult) -> list[Statement]:
    """The statements from trace to trace: the real differences."""
    names = {t.name for t in result.traces}
    return [s for s in result.statements if s.from_ in names and s.to in names]


def _components(result: RunResult) -> list[tuple[str, str, list[int]]]:
    """The components in which two complete traces differ, by layer: (layer, component, counts)."""
    if len(result.traces) < 2 or not all(t.complete for t in result.traces):
        return []
    return differing_components(result.traces)
