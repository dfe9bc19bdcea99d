"""The data in the HTML page: statements, layers, ops and evidence of a run as compact JSON that JavaScript reads exactly.

Names, shapes, ops and evidence are stored once and referred to by position; tables are stored by column. The page makes the
statement between any two ends from the bridges (each counter to its trace, and trace to trace), so only these are here.
An integer that a double cannot hold is a string of digits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Set
from itertools import combinations, permutations
from typing import Any

from ...core.causes import Cause
from ...core.escaping import escape_line
from ...core.number_format import format_shape
from ...core.records import Op, Tensor
from ...core.results import Evidence, LedgerResult, Statement, TraceResult
from ...core.work import COMPONENTS, MASKED
from ...engine.answer import Answer
from ...engine.statements import statement_between
from ..json_text import plain

MAX_EXACT_INTEGER = 2**53 - 1
"""A double holds every integer up to this one exactly."""
CAUSE_INDEX = {cause: index for index, cause in enumerate(Cause)}


def json_integer(value: int) -> int | str:
    """The integer itself if a double can hold it, else its digits."""
    return value if -MAX_EXACT_INTEGER <= value <= MAX_EXACT_INTEGER else str(value)


def page_data(views: Sequence[Answer], ends: tuple[str, str] | None) -> dict[str, Any]:
    """The books of one run under each convention of ``views``; ``ends`` are the ends of the statement that is shown first."""
    return _Books(views[0]).collect(views, ends)


def describe_tensors(operands: Sequence[Tensor]) -> str:
    """Types and shapes as text: ``float32 (1, 96) (96, 288)``; the type is repeated if it changes; ? is unknown."""
    parts, last = [], ""
    for tensor in operands:
        if tensor.dtype != last:
            parts.append(tensor.dtype)
            last = tensor.dtype
        parts.append(format_shape(tensor.shape))
    return " ".join(parts)


class _Table:
    """Rows that are stored once each; a key that was seen before gets the same position."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self._positions: dict[Any, int] = {}

    def add_row(self, key: Any, row: Any) -> int:
        index = self._positions.get(key)
        if index is None:
            index = self._positions[key] = len(self.rows)
            self.rows.append(row)
        return index


class _Books:
    """Collects the tables of one page."""

    def __init__(self, result: Answer) -> None:
        self.result = result
        self._strings = _Table()
        self._shapes: dict[tuple[Tensor, ...], int] = {}
        self._seen = _Table()
        self._grounds = _Table()
        self._evidence = _Table()
        self._layers = _Table()
        self._rows: dict[str, int] = {}
        self._ops: dict[str, list[Any]] = {
            name: [] for name in ("id", "layer", "path", "op", "in", "out", "calls", "phase", "work")
        }
        self._homes = {x.counter: x.framework for x in result.ledgers}
        self._components: tuple[str, ...] = COMPONENTS

    def collect(self, views: Sequence[Answer], ends: tuple[str, str] | None) -> dict[str, Any]:
        if any(view.convention.masked for view in views):
            self._components = (*COMPONENTS, MASKED)
        for view in sorted(views, key=lambda view: -len(view.layers)):  # the view with the most layers gives the order
            for row in view.layers:
                self._add_layer(row.layer)
        traces = [self._add_trace(index) for index in range(len(self.result.traces))]
        counters = [self._counter_table(ledger) for ledger in self.result.ledgers]
        shown = [self._convention_view(view) for view in views]
        return {
            "ends": None if ends is None else list(ends),
            "causes": [[cause.value, cause.meaning] for cause in Cause],
            "components": list(self._components),
            "traces": traces,
            "counters": counters,
            "ops": self._ops,
            "seen": self._seen.rows,
            "grounds": self._grounds.rows,
            "evidence": self._evidence.rows,
            "views": shown,
            "layers": self._layers.rows,
            "strings": [escape_line(text) for text in self._strings.rows],
        }

    def _add_string(self, text: str) -> int:
        return self._strings.add_row(text, text)

    def _add_layer(self, name: str) -> int:
        return self._layers.add_row(name, self._add_string(name))

    def _add_shapes(self, operands: tuple[Tensor, ...]) -> int:
        index = self._shapes.get(operands)
        if index is None:
            index = self._shapes[operands] = self._add_string(describe_tensors(operands))
        return index

    def _add_trace(self, index: int) -> dict[str, Any]:
        trace = self.result.traces[index]
        columns = self._ops
        start = len(columns["id"])
        for row in trace.rows:
            self._rows.setdefault(f"{trace.framework}:{row.id}", len(columns["id"]))
            columns["id"].append(self._add_string(row.id))
            columns["layer"].append(self._add_layer(row.layer))
            columns["path"].append(self._add_string(row.path))
            columns["op"].append(self._add_string(row.op))
            columns["in"].append(self._add_shapes(row.inputs))
            columns["out"].append(self._add_shapes(row.outputs))
            columns["calls"].append(json_integer(row.calls))
            columns["phase"].append(self._add_string(row.phase))
            columns["work"].append([json_integer(getattr(row.work, name)) for name in self._components])
        return {"name": trace.name, "framework": trace.framework, "ops": [start, len(columns["id"])]}

    def _counter_table(self, ledger: LedgerResult) -> dict[str, Any]:
        return {
            "name": ledger.counter,
            "framework": ledger.framework,
            "unit": ledger.unit,
            "total": None if ledger.normalised_total is None else json_integer(ledger.normalised_total),
            "entries": {
                "id": [self._add_string(entry.id) for entry in ledger.entries],
                "layer": [self._add_layer(entry.layer) for entry in ledger.entries],
                "op": [self._add_string(entry.op) for entry in ledger.entries],
                "value": [json_integer(entry.value) for entry in ledger.entries],
                "calls": [json_integer(entry.calls) for entry in ledger.entries],
            },
        }

    def _convention_view(self, view: Answer) -> dict[str, Any]:
        names = {t.framework: t.name for t in view.traces}
        by_ends = {(s.from_, s.to): s for s in view.statements}
        pairs = combinations(range(len(view.traces)), 2)
        bridges = [by_ends.get((x.counter, names.get(x.framework, ""))) for x in view.ledgers]
        between = [(i, j, by_ends.get((view.traces[i].name, view.traces[j].name))) for i, j in pairs]
        known = [(i, j, held) for i, j, s in between if (held := self._statement_table(s)) is not None]
        return {
            "convention": escape_line(view.convention.name),
            "weights": [view.convention.weight(name) for name in self._components],
            "bridges": [self._statement_table(s) for s in bridges],
            "between": [{"ends": [i, j], **held} for i, j, held in known],
            "open": self._list_ends_without_statement(
                view,
                {s.from_ for s in bridges if s is not None and s.is_closed},
                {frozenset((view.traces[i].framework, view.traces[j].framework)) for i, j, _ in known},
            ),
            "work": [self._work_by_layer(view, t) for t in view.traces],
        }

    def _work_by_layer(self, view: Answer, trace: TraceResult) -> list[int | str | None]:
        """FLOPs that ran per layer, in the order of the page's layers; None if that is unknown."""
        table = {row.layer: row.work.get(trace.framework) for row in view.layers}
        otherwise = 0 if trace.complete or trace.rows else None
        known = (table.get(self._strings.rows[index], otherwise) for index in self._layers.rows)
        return [None if flops is None else json_integer(flops) for flops in known]

    def _statement_table(self, statement: Statement | None) -> dict[str, Any] | None:
        if statement is None or statement.from_total is None or statement.to_total is None or not statement.is_closed:
            return None
        lines = statement.adjustments
        return {
            "from": json_integer(statement.from_total),
            "to": json_integer(statement.to_total),
            "cause": [CAUSE_INDEX[line.cause] for line in lines],
            "layer": [self._add_layer(line.layer) for line in lines],
            "op": [self._add_string(line.op) for line in lines],
            "amount": [json_integer(line.amount) for line in lines],
            "evidence": [[self._add_proof(evidence) for evidence in line.evidence] for line in lines],
            "residuals": [
                [self._add_layer(r.layer), json_integer(r.amount), self._add_string(r.reason)]
                for r in statement.residuals
            ],
        }

    def _add_proof(self, e: Evidence) -> int:
        home = self._homes.get(e.counter, "")
        refs = [self._rows.get(id if e.side == "between" else f"{home}:{id}", escape_line(id)) for id in e.ops]
        ground = (
            self._add_string(e.counter),
            self._add_string(e.rule),
            self._add_string(e.source),
            self._add_string(e.formula),
            None if e.repeat is None else CAUSE_INDEX[e.repeat],
            self._add_string(", ".join(e.only)),
        )
        times = [json_integer(e.seen_times), json_integer(e.times)]
        row = [self._grounds.add_row(ground, list(ground)), *times, [self._add_sighting(op) for op in e.seen], refs]
        return self._evidence.add_row(json.dumps(row), row)

    def _add_sighting(self, op: Op) -> int:
        attrs = ", ".join(f"{name}={json.dumps(plain(op.attrs[name]))}" for name in sorted(op.attrs))
        row = (
            self._add_string(op.op),
            self._add_string(op.id),
            self._add_shapes(op.inputs),
            self._add_shapes(op.outputs),
            self._add_string(attrs),
            json_integer(op.calls),
        )
        return self._seen.add_row(row, list(row))

    def _list_ends_without_statement(
        self, view: Answer, closed: Set[str], between: Set[frozenset[str]]
    ) -> list[list[Any]]:
        """The pairs of ends without a statement between them: state, reason, and the known totals."""
        traces = {t.name: t.framework for t in view.traces}
        homes: Mapping[str, str] = {**self._homes, **traces}
        pairs = []
        for a, b in permutations([*self._homes, *traces], 2):
            met = homes[a] == homes[b] or frozenset((homes[a], homes[b])) in between
            joined = met and all(end in closed or end in traces for end in (a, b))
            if not joined:
                s = statement_between(view, a, b)
                state = "not_comparable" if s is None else s.state.value
                reason = "this run has no statement between the two" if s is None else s.reason
                totals = [None, None] if s is None else [s.from_total, s.to_total]
                pairs.append(
                    [a, b, state, self._add_string(reason), *(None if n is None else json_integer(n) for n in totals)]
                )
        return pairs
