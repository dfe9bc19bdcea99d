"""Results broken down for the reports: a statement by cause and layer, a layer by cause, traces by layer and component.

Reports lay out these amounts and do not add up any lines themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..core.conventions import Convention
from ..core.results import Adjustment, LayerRow, Statement, TraceResult
from ..core.work import COMPONENTS, Work
from .phases import sum_by_key

RESIDUAL = "residual"


@dataclass(slots=True)
class Part:
    """One layer's share of a cause: the amount, with the ops and the counters whose accounting it corrects."""

    layer: str
    amount: int = 0
    ops: dict[str, None] = field(default_factory=dict)
    counters: dict[str, None] = field(default_factory=dict)
    reason: str = ""


@dataclass(slots=True)
class Block:
    """One cause of a statement (or its residual) with its layers; the parts add up to ``amount``."""

    cause: str
    amount: int
    parts: list[Part]


def blocks(statement: Statement, layers: Sequence[str] = ()) -> list[Block]:
    """The lines of a statement by cause, in booking order, then by layer (in the order of ``layers``); a residual that
    is not 0 comes last."""
    position = {layer: index for index, layer in enumerate(layers)}
    by_cause: dict[str, list[Adjustment]] = {cause.value: [] for cause in statement.by_cause()}
    for line in statement.adjustments:
        by_cause[line.cause.value].append(line)
    made = [_block(cause, lines) for cause, lines in by_cause.items()]
    for block in made:
        block.parts.sort(key=lambda part: position.get(part.layer, len(position)))
    if statement.residuals:
        parts = [Part(r.layer, r.amount, reason=r.reason) for r in statement.residuals]
        made.append(Block(RESIDUAL, sum(p.amount for p in parts), parts))
    return made


def _block(cause: str, lines: Iterable[Adjustment]) -> Block:
    parts: dict[str, Part] = {}
    for line in lines:
        part = parts.setdefault(line.layer, Part(line.layer))
        part.amount += line.amount
        part.ops[line.op] = None
        if line.counter:
            part.counters[line.counter] = None
    return Block(cause, sum(p.amount for p in parts.values()), list(parts.values()))


def to_the_work(row: LayerRow, counter: str) -> dict[str, int]:
    """The amounts to add to a counter's value in this layer to get the work that ran, by cause; the residual comes last.

    Amounts of 0 are left out.
    """
    amounts = {cause.value: amount for cause, amount in row.causes.get(counter, {}).items() if amount}
    if row.residuals.get(counter):
        amounts[RESIDUAL] = row.residuals[counter]
    return amounts


def differing_components(traces: Sequence[TraceResult]) -> list[tuple[str, str, list[int]]]:
    """The components in which these traces differ, whatever the convention: layer, component, and the count of each trace.

    A component that is unknown in a layer of either is left out there.
    """
    unknown = {(u.layer, name) for trace in traces for u in (*trace.unknown, *trace.unweighed) for name in u.components}
    works = [works_by("layer", trace) for trace in traces]
    rows = []
    for layer in dict.fromkeys(layer for by_layer in works for layer in by_layer):
        columns = [by_layer.get(layer, Work()) for by_layer in works]
        for index, component in enumerate(COMPONENTS):
            counts = [tuple(work)[index] for work in columns]
            if len(set(counts)) > 1 and (layer, component) not in unknown:
                rows.append((layer, component, counts))
    return rows


def known_work(trace: TraceResult, convention: Convention) -> int:
    """FLOPs of the ops of a trace whose work is known; less than its total if the trace is incomplete."""
    return sum(convention.flops(row.work) for row in trace.rows)


def works_by(field: str, trace: TraceResult) -> dict[str, Work]:
    """The known work of each ``"layer"``, or of each ``"phase"``."""
    works: dict[str, Work] = {}
    for row in trace.rows:
        key = getattr(row, field)
        works[key] = works.get(key, Work()) + row.work
    return works


def sum_rows(name: str, rows: Sequence[LayerRow]) -> LayerRow:
    """The sums of these rows. An amount that is unknown in one is unknown in the sum."""
    work = {f: sum(row.work[f] for row in rows) for f in rows[0].work if all(f in row.work for row in rows)}
    causes = {
        counter: sum_by_key([row.causes.get(counter, {}) for row in rows])
        for counter in dict.fromkeys(counter for row in rows for counter in row.causes)
    }
    return LayerRow(
        name, work, sum_by_key([row.counters for row in rows]), causes, sum_by_key([row.residuals for row in rows])
    )
