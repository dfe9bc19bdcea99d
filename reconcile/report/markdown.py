"""The Markdown report, for pull requests. The template holds the words; this file prepares the rows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import jinja2

from ..core.conventions import ALL, Convention
from ..core.records import Tensor
from ..core.results import RunResult, Statement
from ..core.text import markdown, number, prose, signed
from ..engine.breakdown import blocks, differing_components, to_the_work
from ..engine.phases import PhaseTable
from ..verdict.verdict import counters_of, verdict
from . import view
from .alignment import sentences
from .rendering import environment

DIFFER = "How the frameworks differ here"


class Raw(str):
    """Finished Markdown: the template writes it unchanged; it escapes every other string."""

    __slots__ = ()


def to_markdown(
    result: RunResult,
    statement: Statement | None = None,
    command: str = "",
    pictures: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """The report as Markdown. ``statement`` is the headline (default: see view.default_statement); ``command``
    reproduces the run; ``pictures`` maps the subject of a picture to a file beside the report that shows it."""
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
        bridges=[v.statement for v in counters_of(result) if v.statement is not None],
        across=_between(result),
        components=_components(result),
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


def _cell(row: dict[str, Any], counter: str) -> Raw:
    """A cell of the layer table: the value, then the amounts to add to it to get the work that ran."""
    causes = row["causes"].get(counter, [])
    if counter not in row["counters"] and not causes:
        return Raw("")
    lines = [number(row["counters"].get(counter, 0))]
    lines += [f"{cause} {signed(amount)}" for cause, amount in causes]
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
    """The layer table: rows, and a last row of column sums."""
    if not result.layers:
        return None
    frameworks = [t.framework for t in result.traces if t.complete]
    counters = [x.counter for x in result.ledgers if x.normalised_total is not None]
    rows = []
    for row in result.layers:
        causes = {counter: list(to_the_work(row, counter).items()) for counter in counters}
        rows.append({"layer": row.layer, "work": row.work, "counters": row.counters, "causes": causes})
    work = {f: sum(row.work.get(f, 0) for row in result.layers) for f in frameworks}
    sums = {c: sum(row.counters.get(c, 0) for row in result.layers) for c in counters}
    return {"frameworks": frameworks, "counters": counters, "rows": rows, "work": work, "sums": sums}


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
