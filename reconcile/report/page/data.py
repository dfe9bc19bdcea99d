"""What the page computes with: the books of a run, compact, as JSON that every script engine reads exactly.

Names, shapes, ops and evidence are held once and referred to by position, tables column by column. The page joins a
statement between any two ends from the bridges (each counter to its trace, and trace to trace), so none is in here.
An integer that a double cannot hold is a string of digits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Set
from itertools import permutations
from typing import Any

from ...core.causes import Cause
from ...core.records import Op, Tensor
from ...core.results import Adjustment, Evidence, LedgerResult, RunResult, Statement, TraceResult
from ...core.text import clean
from ...core.work import COMPONENTS
from ...engine.statements import statement_between
from ..json_text import plain

SAFE = 2**53 - 1
"""The largest integer up to which a double holds every one."""
CAUSES = {cause: index for index, cause in enumerate(Cause)}


def exact(value: int) -> int | str:
    """The integer itself while a double can hold it, else its digits."""
    return value if -SAFE <= value <= SAFE else str(value)


def script_json(data: Any) -> str:
    """JSON that may stand inside a ``<script>`` element: nothing in it can end the element or open a comment."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def page_data(views: Sequence[RunResult], ends: tuple[str, str] | None) -> dict[str, Any]:
    """The books of one run under each convention of ``views``; ``ends`` are the statement's that is shown first."""
    return _Books(views[0]).data(views, ends)


def tensors(found: Sequence[Tensor]) -> str:
    """``float32 (1, 96) (96, 288)``; the type is said again where it changes, ? is what is not known."""
    parts, last = [], ""
    for tensor in found:
        if tensor.dtype != last:
            parts.append(tensor.dtype)
            last = tensor.dtype
        if tensor.shape is None:
            parts.append("?")
        else:
            parts.append(f"({', '.join('?' if size is None else str(size) for size in tensor.shape)})")
    return " ".join(parts)


class _Table:
    """Things held once each: what is asked for again is the position it has already."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self._place: dict[Any, int] = {}

    def place(self, key: Any, row: Any) -> int:
        found = self._place.get(key)
        if found is None:
            found = self._place[key] = len(self.rows)
            self.rows.append(row)
        return found


class _Books:
    """Collects the tables of one page."""

    def __init__(self, result: RunResult) -> None:
        self.result = result
        self._strings = _Table()
        self._shapes: dict[tuple[Tensor, ...], int] = {}
        self._seen = _Table()
        self._grounds = _Table()
        self._evidence = _Table()
        self._layers = _Table()
        self._rows: dict[str, int] = {}
        self._ops: dict[str, list[Any]] = {
            "id": [],
            "layer": [],
            "path": [],
            "op": [],
            "in": [],
            "out": [],
            "calls": [],
            "phase": [],
            "work": [],
        }
        self._homes = {x.counter: x.framework for x in result.ledgers}

    def data(self, views: Sequence[RunResult], ends: tuple[str, str] | None) -> dict[str, Any]:
        for view in sorted(views, key=lambda view: -len(view.layers)):  # the one that names most says the order
            for row in view.layers:
                self._layer(row.layer)
        traces = [self._trace(index) for index in range(len(self.result.traces))]
        counters = [self._counter(ledger) for ledger in self.result.ledgers]
        shown = [self._view(view) for view in views]
        return {
            "ends": None if ends is None else list(ends),
            "causes": [[cause.value, cause.meaning] for cause in Cause],
            "components": list(COMPONENTS),
            "traces": traces,
            "counters": counters,
            "ops": self._ops,
            "seen": self._seen.rows,
            "grounds": self._grounds.rows,
            "evidence": self._evidence.rows,
            "views": shown,
            "layers": self._layers.rows,
            "strings": [clean(text) for text in self._strings.rows],
        }

    def _string(self, text: str) -> int:
        return self._strings.place(text, text)

    def _layer(self, name: str) -> int:
        return self._layers.place(name, self._string(name))

    def _shape(self, found: tuple[Tensor, ...]) -> int:
        held = self._shapes.get(found)
        if held is None:
            held = self._shapes[found] = self._string(tensors(found))
        return held

    def _trace(self, index: int) -> dict[str, Any]:
        trace = self.result.traces[index]
        columns = self._ops
        start = len(columns["id"])
        for row in trace.rows:
            self._rows.setdefault(f"{trace.framework}:{row.id}", len(columns["id"]))
            columns["id"].append(self._string(row.id))
            columns["layer"].append(self._layer(row.layer))
            columns["path"].append(self._string(row.path))
            columns["op"].append(self._string(row.op))
            columns["in"].append(self._shape(row.inputs))
            columns["out"].append(self._shape(row.outputs))
            columns["calls"].append(exact(row.calls))
            columns["phase"].append(self._string(row.phase))
            columns["work"].append([exact(count) for count in row.work])
        return {"name": trace.name, "framework": trace.framework, "ops": [start, len(columns["id"])]}

    def _counter(self, ledger: LedgerResult) -> dict[str, Any]:
        return {
            "name": ledger.counter,
            "framework": ledger.framework,
            "unit": ledger.unit,
            "total": None if ledger.normalised_total is None else exact(ledger.normalised_total),
            "entries": {
                "id": [self._string(entry.id) for entry in ledger.entries],
                "layer": [self._layer(entry.layer) for entry in ledger.entries],
                "op": [self._string(entry.op) for entry in ledger.entries],
                "value": [exact(entry.value) for entry in ledger.entries],
                "calls": [exact(entry.calls) for entry in ledger.entries],
            },
        }

    def _view(self, view: RunResult) -> dict[str, Any]:
        names = {t.framework: t.name for t in view.traces}
        by_ends = {(s.from_, s.to): s for s in view.statements}
        bridges = [by_ends.get((x.counter, names.get(x.framework, ""))) for x in view.ledgers]
        between = by_ends.get((view.traces[0].name, view.traces[1].name)) if len(names) > 1 else None
        return {
            "convention": clean(view.convention.name),
            "weights": [view.convention.weight(name) for name in COMPONENTS],
            "bridges": [self._statement(s) for s in bridges],
            "between": self._statement(between),
            "open": self._open(view, {s.from_ for s in bridges if s is not None and _closed(s)}, _closed(between)),
            "work": [self._work(view, t) for t in view.traces],
        }

    def _work(self, view: RunResult, trace: TraceResult) -> list[int | str | None]:
        """FLOPs that ran per layer, in the order of the page's layers; None where that is not known."""
        table = {row.layer: row.work.get(trace.framework) for row in view.layers}
        otherwise = 0 if trace.complete or trace.rows else None
        known = (table.get(self._strings.rows[index], otherwise) for index in self._layers.rows)
        return [None if flops is None else exact(flops) for flops in known]

    def _statement(self, statement: Statement | None) -> dict[str, Any] | None:
        if statement is None or statement.from_total is None or statement.to_total is None or not _closed(statement):
            return None
        lines = statement.adjustments
        return {
            "from": exact(statement.from_total),
            "to": exact(statement.to_total),
            "cause": [CAUSES[line.cause] for line in lines],
            "layer": [self._layer(line.layer) for line in lines],
            "op": [self._string(line.op) for line in lines],
            "amount": [exact(line.amount) for line in lines],
            "evidence": [self._proofs(line) for line in lines],
            "residuals": [[self._layer(r.layer), exact(r.amount), self._string(r.reason)] for r in statement.residuals],
        }

    def _proofs(self, line: Adjustment) -> list[int]:
        return [self._proof(evidence) for evidence in line.evidence]

    def _proof(self, e: Evidence) -> int:
        home = self._homes.get(e.counter, "")
        refs = [self._rows.get(id if e.side == "between" else f"{home}:{id}", clean(id)) for id in e.ops]
        ground = (
            self._string(e.counter),
            self._string(e.rule),
            self._string(e.source),
            self._string(e.formula),
            None if e.repeat is None else CAUSES[e.repeat],
            self._string(", ".join(e.only)),
        )
        times = [exact(e.seen_times), exact(e.times)]
        row = [self._grounds.place(ground, list(ground)), *times, [self._sighting(op) for op in e.seen], refs]
        return self._evidence.place(json.dumps(row), row)

    def _sighting(self, op: Op) -> int:
        attrs = ", ".join(f"{name}={json.dumps(plain(op.attrs[name]))}" for name in sorted(op.attrs))
        row = (
            self._string(op.op),
            self._string(op.id),
            self._shape(op.inputs),
            self._shape(op.outputs),
            self._string(attrs),
            exact(op.calls),
        )
        return self._seen.place(row, list(row))

    def _open(self, view: RunResult, closed: Set[str], between: bool) -> list[list[Any]]:
        """Pairs of ends that no statement joins: state, reason, and what totals there are."""
        traces = {t.name: t.framework for t in view.traces}
        homes: Mapping[str, str] = {**self._homes, **traces}
        found = []
        for a, b in permutations([*self._homes, *traces], 2):
            joined = all(end in closed or end in traces for end in (a, b)) and (between or homes[a] == homes[b])
            if not joined:
                s = statement_between(view, a, b)
                state = "not_comparable" if s is None else s.state.value
                reason = "this run has no statement between the two" if s is None else s.reason
                totals = [None, None] if s is None else [s.from_total, s.to_total]
                found.append([a, b, state, self._string(reason), *(None if n is None else exact(n) for n in totals)])
        return found


def _closed(statement: Statement | None) -> bool:
    return statement is not None and None not in (statement.from_total, statement.to_total, statement.residual)
