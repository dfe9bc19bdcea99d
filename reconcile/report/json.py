"""The JSON report: all results of a run, for other programs. ``schema.json`` beside this file describes it.

Integers are exact at any size, the order of keys is fixed, and the report names neither the time nor the place of the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.conventions import Convention
from ..core.records import PHASES, Op, Tensor
from ..core.results import (
    Adjustment,
    Claim,
    EntryResult,
    Evidence,
    LayerRow,
    LedgerResult,
    Match,
    Mismatch,
    Residual,
    Statement,
    TraceResult,
    TraceRow,
    Unknown,
)
from ..engine.answer import Answer
from ..engine.phases import PhaseRow
from ..engine.verdict import CounterVerdict, Figure, Verdict
from .json_text import Listed, at_once, layout, made_late, plain
from .view import reason

SCHEMA = 1


def to_json(result: Answer) -> str:
    """The report as JSON text, one record per line where it fits. Rows are made, written and dropped one by one."""
    return layout(_tree(result, made_late))


def to_dict(result: Answer) -> dict[str, Any]:
    """The report as plain dicts, lists, strings and ints."""
    return _tree(result, at_once)


def _tree(result: Answer, listed: Listed = at_once) -> dict[str, Any]:
    convention = result.convention
    first = [t.framework for t in result.traces if t.complete]
    return {
        "schema": SCHEMA,
        "model": result.model,
        "pass": result.pass_,
        "params": {k: plain(v) for k, v in result.params.items()},
        "convention": convention.name,
        "convention_weights": {name: convention.weight(name) for name in convention.components},
        "convention_meaning": convention.meaning,
        "environment": _sorted(result.environment),
        "inputs": dict(result.inputs),
        "exit_code": result.exit_code,
        **({"run": result.run} if result.run else {}),
        "description": result.description,
        "notes": list(result.notes),
        "verdict": _verdict(result.verdict),
        "ledgers": [ledger_data(x, listed) for x in result.ledgers],
        "traces": [trace_data(result, x, listed) for x in result.traces],
        "alignment": listed(_match, result.alignment),
        "layers": listed(lambda x: _layer(x, first), result.layers),
        "statements": [statement_data(x, listed) for x in result.statements],
        **({"published": [_claim(x) for x in result.published]} if result.published else {}),
    }


def _claim(claim: Claim) -> dict[str, Any]:
    return {
        "figure": claim.figure,
        "claim": claim.claim,
        "source": claim.source,
        "what": claim.what,
        "value": claim.value,
    }


def _verdict(run_verdict: Verdict) -> dict[str, Any]:
    return {
        "counters": [_counter(c) for c in run_verdict.counters],
        "figures": [_figure(f) for f in run_verdict.figures],
        "withheld": [{"framework": w.framework, "reason": w.reason, "remedy": w.remedy} for w in run_verdict.withheld],
        "difference": run_verdict.difference,
    }


def _counter(counter: CounterVerdict) -> dict[str, Any]:
    ledger = counter.ledger
    return {
        "counter": ledger.counter,
        "state": counter.state.value,
        "exact": counter.exact,
        "normalised_total": ledger.normalised_total,
        "work": counter.work,
        "off": counter.off,
        "ratio": counter.ratio,
        "causes": [{"cause": cause, "amount": amount} for cause, amount in counter.causes],
        "reason": "" if counter.off is not None else reason(counter),
    }


def _figure(figure: Figure) -> dict[str, Any]:
    return {
        "frameworks": list(figure.frameworks),
        "flops": figure.flops,
        "macs": figure.macs,
        "subject": figure.subject,
        "inputs": figure.inputs,
        "batch": figure.batch,
        "leading": figure.leading,
        "counters": list(figure.counters),
        "notes": list(figure.notes),
        "sentence": figure.sentence,
        "caution": figure.caution,
    }


def ledger_data(ledger: LedgerResult, listed: Listed = at_once) -> dict[str, Any]:
    """A ledger as plain data; ``listed`` makes the lists of records."""
    return {
        "counter": ledger.counter,
        "framework": ledger.framework,
        "state": ledger.state.value,
        "reason": ledger.reason,
        "unit": ledger.unit,
        "device": ledger.device,
        "versions": _sorted(ledger.versions),
        "total": ledger.total,
        "normalised_total": ledger.normalised_total,
        "checked": ledger.checked,
        "unchecked": ledger.unchecked,
        "rule_mismatches": len(ledger.mismatches),
        "mismatches": listed(_mismatch, ledger.mismatches),
        "unsupported": _sorted(ledger.unsupported),
        "notes": list(ledger.notes),
        "entries": listed(_entry, ledger.entries),
    }


def _mismatch(m: Mismatch) -> dict[str, Any]:
    return {
        "entry": m.entry,
        "layer": m.layer,
        "op": m.op,
        "rule": m.rule,
        "source": m.source,
        "expected": m.expected,
        "reported": m.reported,
    }


def _entry(e: EntryResult) -> dict[str, Any]:
    return {"id": e.id, "layer": e.layer, "op": e.op, "value": e.value, "calls": e.calls}


def trace_data(result: Answer, trace: TraceResult, listed: Listed = at_once) -> dict[str, Any]:
    """A trace of this run as plain data."""
    table = result.phase_table(trace)
    return {
        "name": trace.name,
        "framework": trace.framework,
        "state": trace.state.value,
        "reason": trace.reason,
        "complete": trace.complete,
        "device": trace.device,
        "versions": _sorted(trace.versions),
        "totals": dict(trace.totals),
        "unknown": listed(_unknown, trace.unknown),
        "no_arithmetic": _sorted(trace.no_arithmetic),
        "integer_ops": _sorted(trace.integer_ops),
        "notes": list(trace.notes),
        "mfu_flops": table.total.once if table is not None and table.total.known else None,
        "hfu_flops": table.total.total if table is not None and table.total.known else None,
        "phases": listed(_phases, table.rows if table is not None else ()),
        "rows": listed(lambda row: _row(row, result.convention), trace.rows),
    }


def _unknown(u: Unknown) -> dict[str, Any]:
    return {"layer": u.layer, "op": u.op, "id": u.id, "reason": u.reason}


def _phases(row: PhaseRow) -> dict[str, Any]:
    return {
        "layer": row.layer,
        "known": row.known,
        "flops": {phase: row.flops[phase] for phase in PHASES if phase in row.flops},
        "forward": row.forward,
        "backward": row.backward,
        "ratio": None if row.ratio is None else float(row.ratio),
    }


def _row(row: TraceRow, convention: Convention) -> dict[str, Any]:
    tensors = (*row.outputs, *row.inputs)
    return {
        "id": row.id,
        "layer": row.layer,
        "path": row.path,
        "op": row.op,
        "shapes": {"inputs": _shapes(row.inputs), "outputs": _shapes(row.outputs)},
        "dtype": tensors[0].dtype if tensors else "",
        "calls": row.calls,
        "phase": row.phase,
        **{name: getattr(row.work, name) for name in convention.components},
    }


def _match(row: Match) -> dict[str, Any]:
    return {
        "layer": row.layer,
        **{name: list(paths) for name, paths in row.paths.items()},
        "by": row.by,
        "comment": row.comment,
    }


def _layer(row: LayerRow, first: list[str]) -> dict[str, Any]:
    return {
        "layer": row.layer,
        "work": next((row.work[f] for f in first if f in row.work), None),
        "work_by_framework": dict(row.work),
        "counters": dict(row.counters),
        "causes": {counter: {c.value: n for c, n in causes.items()} for counter, causes in row.causes.items()},
        "residuals": dict(row.residuals),
    }


def statement_data(statement: Statement, listed: Listed = at_once) -> dict[str, Any]:
    """A statement as plain data; ``listed`` makes the lists of records."""
    return {
        "from": statement.from_,
        "to": statement.to,
        "state": statement.state.value,
        "reason": statement.reason,
        "from_total": statement.from_total,
        "to_total": statement.to_total,
        "adjustments": listed(_adjustment, statement.adjustments),
        "residual": statement.residual,
        "residuals": listed(_residual, statement.residuals),
    }


def _residual(r: Residual) -> dict[str, Any]:
    return {"layer": r.layer, "amount": r.amount, "reason": r.reason}


def _adjustment(line: Adjustment) -> dict[str, Any]:
    return {
        "cause": line.cause.value,
        "layer": line.layer,
        "op": line.op,
        "counter": line.counter,
        "amount": line.amount,
        "evidence": [_evidence(e) for e in line.evidence],
    }


def _evidence(evidence: Evidence) -> dict[str, Any]:
    return {
        "side": evidence.side,
        "counter": evidence.counter,
        "rule": evidence.rule,
        "source": evidence.source,
        "cause": evidence.cause.value if evidence.cause else None,
        "repeat": None if evidence.repeat is None else evidence.repeat.value,
        "layer": evidence.layer,
        "component": evidence.component,
        "formula": evidence.formula,
        "only": list(evidence.only),
        "seen_times": evidence.seen_times,
        "times": evidence.times,
        "ops": list(evidence.ops),
        "seen": [_op(op) for op in evidence.seen],
    }


def _op(op: Op) -> dict[str, Any]:
    return {
        "id": op.id,
        "op": op.op,
        "layer": op.layer,
        "inputs": [_tensor(t) for t in op.inputs],
        "outputs": [_tensor(t) for t in op.outputs],
        "attrs": {k: plain(op.attrs[k]) for k in sorted(op.attrs)},
        "calls": op.calls,
        "phase": op.phase,
        "within": list(op.within),
    }


def _tensor(tensor: Tensor) -> dict[str, Any]:
    return {"shape": plain(tensor.shape), "dtype": tensor.dtype}


def _shapes(tensors: tuple[Tensor, ...]) -> list[Any]:
    return [plain(t.shape) for t in tensors]


def _sorted(mapping: Mapping[str, Any]) -> dict[str, Any]:
    return {k: plain(mapping[k]) for k in sorted(mapping)}
