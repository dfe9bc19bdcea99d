"""The CSV report: tidy, one row per line of every statement.

A statement starts with a row ``opening`` (its from_total), then has one row per adjustment, then ``residual`` (per
layer, or a single 0): the amounts of its rows add up to the to_total. A statement without totals is one row
without an amount; its state says why. ``phase`` is the phase of the ops of a line. If a trace has more phases than the
forward one, its work by layer and phase is in rows ``work``, whose ``from`` is empty and whose ``to`` is the trace; a row without
an amount is unknown work.

``layers_csv`` makes the table of every layer that comes with the Markdown report of a large model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..core import table
from ..core.conventions import ALL
from ..core.records import PHASES
from ..core.results import Adjustment, LayerRow, Statement, TraceResult
from ..engine.answer import Answer
from ..engine.breakdown import to_the_work
from ..engine.phases import PhaseRow, PhaseTable

COLUMNS = ("model", "from", "to", "layer", "op", "counter", "cause", "amount", "unit", "state", "phase")
UNIT = "FLOP"


Line = tuple[str, str, str, str, "int | str", str]
"""Layer, op, counter, cause, amount, phase."""


def to_csv(result: Answer) -> str:
    """The report as CSV text."""
    return table.format_report_csv(_rows(result))


def layers_csv(result: Answer) -> str:
    """Every layer in a row of its own, as CSV text: the work that ran per framework; per counter its value, normalised, and the
    amounts to add to it to arrive at that work, in a column per cause that occurs; for a training step the work per phase, under
    the run's convention and under the one that counts everything. A layer, loss or optimizer that only a phase has work of is a
    row, too. An empty cell means that there is no amount."""
    frameworks = [t.framework for t in result.traces]
    counters = [x.counter for x in result.ledgers if x.normalised_total is not None]
    phased = _list_phases(result)
    held = {row.layer: row for row in result.layers}
    every = dict.fromkeys([*held, *(layer for _, layers in phased for layer in layers)])
    listed = [held.get(layer) or LayerRow(layer, {}, {}, {}, {}) for layer in every]
    to_add = [{c: to_the_work(row, c) for c in counters} for row in listed]
    causes = {c: list(dict.fromkeys(cause for amounts in to_add for cause in amounts[c])) for c in counters}
    head = ["layer", *(f"work ({f})" for f in frameworks)]
    for counter in counters:
        head += [counter, *(f"{counter}: {cause}" for cause in causes[counter])]
    head += [f"{each.convention} ({each.framework}): {phase}" for each, _ in phased for phase in each.phases]
    rows: list[list[object]] = [[*head]]
    for row, amounts in zip(listed, to_add, strict=True):
        cells: list[object] = [row.layer, *(row.work.get(f, "") for f in frameworks)]
        for counter in counters:
            cells += [row.counters.get(counter, ""), *(amounts[counter].get(cause, "") for cause in causes[counter])]
        for by_phase, layers in phased:
            flops = layers[row.layer].flops if row.layer in layers and layers[row.layer].known else {}
            cells += [flops.get(phase, "") for phase in by_phase.phases]
        rows.append(cells)
    return table.format_report_csv(rows)


def _list_phases(result: Answer) -> list[tuple[PhaseTable, dict[str, PhaseRow]]]:
    """Per convention and trace the table by phase, and its rows by layer."""
    conventions = dict.fromkeys((result.convention, ALL))
    tables = [result.phase_table(t, convention) for convention in conventions for t in result.traces]
    return [(found, {row.layer: row for row in found.rows}) for found in tables if found is not None]


def _rows(result: Answer) -> Iterator[tuple[object, ...]]:
    yield COLUMNS
    phases = {f"{t.framework}:{row.id}": row.phase for t in result.traces for row in t.rows}
    homes = {x.counter: x.framework for x in result.ledgers}
    for statement in result.statements:
        head = (result.model, statement.from_, statement.to)
        for layer, op, counter, cause, amount, phase in _statement_lines(statement, phases, homes):
            yield (*head, layer, op, counter, cause, amount, UNIT, statement.state.value, phase)
    for trace in result.traces:
        for layer, op, counter, cause, amount, phase in _work_lines(result, trace):
            yield (result.model, "", trace.name, layer, op, counter, cause, amount, UNIT, trace.state.value, phase)


def _statement_lines(statement: Statement, phases: Mapping[str, str], homes: Mapping[str, str]) -> Iterator[Line]:
    if statement.from_total is None or statement.residual is None:
        yield "", "", "", "", "", ""
        return
    yield "", "", statement.from_, "opening", statement.from_total, ""
    for line in statement.adjustments:
        yield line.layer, line.op, line.counter, line.cause.value, line.amount, _phase(line, phases, homes)
    for rest in statement.residuals:
        yield rest.layer, "", "", "residual", rest.amount, ""
    if not statement.residuals:
        yield "", "", "", "residual", statement.residual, ""


def _phase(line: Adjustment, phases: Mapping[str, str], homes: Mapping[str, str]) -> str:
    """The phase of the ops that ran or, if none ran, of those that the counter saw; several phases are joined by +."""
    names: set[str] = set()
    for e in line.evidence:
        ids = [id if e.side == "between" else f"{homes.get(e.counter, '')}:{id}" for id in e.ops]
        names |= {phases[id] for id in ids if id in phases} or {op.phase for op in e.seen}
    return "+".join(phase for phase in PHASES if phase in names)


def _work_lines(result: Answer, trace: TraceResult) -> Iterator[Line]:
    by_phase = result.phase_table(trace)
    for row in by_phase.rows if by_phase is not None else ():
        for phase in PHASES:
            if phase in row.flops:
                yield row.layer, "", "", "work", row.flops[phase], phase
        if not row.known:
            yield row.layer, "", "", "work", "", ""
