"""A statement as JSON data, each line with its evidence: for the JSON reports of a run, a matrix, --ncu and --ranks."""

from __future__ import annotations

from functools import partial
from typing import Any

from ..core.records import Op
from ..core.results import Adjustment, Evidence, Statement
from .json_text import OWN_VALUE, Form, LateRows, RowMaker, fields_of, plain, rows_at_once


def statement_data(statement: Statement, listed: RowMaker = rows_at_once) -> dict[str, Any]:
    """A statement as plain data; ``listed`` makes the lists of records."""
    return {
        **fields_of(statement, "from_ to state reason from_total to_total"),
        "adjustments": listed(_adjustment, statement.adjustments),
        "residual": statement.residual,
        "residuals": listed(_residual, statement.residuals),
    }


_residual = partial(fields_of, names="layer amount reason")
_tensor = partial(fields_of, names="shape dtype")

_op: Form[Op] = Form(
    lambda op: (
        (op.op, op.inputs, op.outputs, op.calls, op.phase, op.within),
        (op.id, op.layer, {k: plain(op.attrs[k]) for k in sorted(op.attrs)}),
    ),
    lambda op, inputs, outputs, calls, phase, within: {
        "id": OWN_VALUE,
        "op": op,
        "layer": OWN_VALUE,
        "inputs": [_tensor(t) for t in inputs],
        "outputs": [_tensor(t) for t in outputs],
        "attrs": OWN_VALUE,
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
        "layer": OWN_VALUE,
        "component": component,
        "formula": formula,
        "only": list(only),
        "seen_times": seen_times,
        "times": times,
        "ops": OWN_VALUE,
        "seen": OWN_VALUE,
    },
)

_adjustment: Form[Adjustment] = Form(
    lambda line: (
        (line.cause, line.op, line.counter, line.amount),
        (line.layer, LateRows(_evidence, line.evidence)),
    ),
    lambda cause, op, counter, amount: {
        "cause": cause.value,
        "layer": OWN_VALUE,
        "op": op,
        "counter": counter,
        "amount": amount,
        "evidence": OWN_VALUE,
    },
)
