"""A statement as JSON data, each line with its evidence: for the JSON reports of a run, a matrix, --ncu and --ranks."""

from __future__ import annotations

from typing import Any

from ..core.records import Op, Tensor
from ..core.results import Adjustment, Evidence, Residual, Statement
from .json_text import OWN, Form, LateRows, Listed, at_once, plain


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


_op: Form[Op] = Form(
    lambda op: (
        (op.op, op.inputs, op.outputs, op.calls, op.phase, op.within),
        (op.id, op.layer, {k: plain(op.attrs[k]) for k in sorted(op.attrs)}),
    ),
    lambda op, inputs, outputs, calls, phase, within: {
        "id": OWN,
        "op": op,
        "layer": OWN,
        "inputs": [_tensor(t) for t in inputs],
        "outputs": [_tensor(t) for t in outputs],
        "attrs": OWN,
        "calls": calls,
        "phase": phase,
        "within": list(within),
    },
)

_evidence: Form[Evidence] = Form(
    lambda e: (
        (e.side, e.counter, e.rule, e.source, e.cause, e.repeat, e.component, e.formula, e.only, e.seen_times, e.times),
        (e.layer, list(e.ops), LateRows(_op, e.seen)),
    ),
    lambda side, counter, rule, source, cause, repeat, component, formula, only, seen_times, times: {
        "side": side,
        "counter": counter,
        "rule": rule,
        "source": source,
        "cause": None if cause is None else cause.value,
        "repeat": None if repeat is None else repeat.value,
        "layer": OWN,
        "component": component,
        "formula": formula,
        "only": list(only),
        "seen_times": seen_times,
        "times": times,
        "ops": OWN,
        "seen": OWN,
    },
)

_adjustment: Form[Adjustment] = Form(
    lambda line: (
        (line.cause, line.op, line.counter, line.amount),
        (line.layer, LateRows(_evidence, line.evidence)),
    ),
    lambda cause, op, counter, amount: {
        "cause": cause.value,
        "layer": OWN,
        "op": op,
        "counter": counter,
        "amount": amount,
        "evidence": OWN,
    },
)


def _tensor(tensor: Tensor) -> dict[str, Any]:
    return {"shape": plain(tensor.shape), "dtype": tensor.dtype}
