"""The JSON report: all results of a run, for other programs. ``schema.json`` beside this file describes it.

Integers are exact at any size, the order of keys is fixed, and the report names neither the time nor the place of the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from operator import attrgetter
from typing import Any

from ..core.causes import Cause
from ..core.records import PHASES, Tensor
from ..core.results import LayerRow, LedgerResult, Match, TraceResult, TraceRow
from ..engine.answer import Answer
from ..engine.phases import PhaseRow
from ..engine.verdict import CounterVerdict, Verdict
from .json_statements import statement_data
from .json_text import OWN_VALUE, Form, RowMaker, fields_of, late_rows, layout, make_form, plain, rows_at_once
from .view import describe_reason

SCHEMA = 1

Tensors = tuple[Tensor, ...]
Amounts = tuple[tuple[str, int], ...]
Causes = tuple[tuple[str, tuple[tuple[Cause, int], ...]], ...]


def to_json(result: Answer) -> str:
    """The report as JSON text, one record per line where it fits. Rows are made, written and dropped one by one."""
    return layout(_report_data(result, late_rows))


def to_dict(result: Answer) -> dict[str, Any]:
    """The report as plain dicts, lists, strings and ints."""
    return _report_data(result, rows_at_once)


def _report_data(result: Answer, listed: RowMaker = rows_at_once) -> dict[str, Any]:
    convention = result.convention
    first = [t.framework for t in result.traces if t.complete]
    return {
        "schema": SCHEMA,
        "model": result.model,
        "pass": result.pass_,
        "params": {k: plain(v) for k, v in result.params.items()},
        "convention": convention.name,
        "convention_weights": convention.weights,
        "convention_meaning": convention.meaning,
        "environment": _sort_mapping(result.environment),
        "inputs": dict(result.inputs),
        "exit_code": result.exit_code,
        **({"run": result.run} if result.run else {}),
        "description": result.description,
        "notes": list(result.notes),
        "verdict": _verdict_data(result.verdict),
        "ledgers": [ledger_data(x, listed) for x in result.ledgers],
        "traces": [trace_data(result, x, listed) for x in result.traces],
        "alignment": listed(_match_data, result.alignment),
        "layers": listed(_layer_row_form(first), result.layers),
        "statements": [statement_data(x, listed) for x in result.statements],
        **(
            {"published": [fields_of(x, "figure claim source what value") for x in result.published]}
            if result.published
            else {}
        ),
    }


def _verdict_data(run_verdict: Verdict) -> dict[str, Any]:
    return {
        "counters": [_counter_data(c) for c in run_verdict.counters],
        "figures": [fields_of(f, FIGURE_FIELDS) for f in run_verdict.figures],
        "withheld": [fields_of(w, "framework reason remedy") for w in run_verdict.withheld],
        "difference": run_verdict.difference,
    }


def _counter_data(counter: CounterVerdict) -> dict[str, Any]:
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
        "reason": "" if counter.off is not None else describe_reason(counter),
    }


FIGURE_FIELDS = "frameworks flops macs subject inputs batch leading counters notes sentence caution"
"""The fields of a figure in a report."""


def ledger_data(ledger: LedgerResult, listed: RowMaker = rows_at_once) -> dict[str, Any]:
    """A ledger as plain data; ``listed`` makes the lists of records."""
    return {
        **fields_of(ledger, "counter framework state reason unit device"),
        "versions": _sort_mapping(ledger.versions),
        **fields_of(ledger, "total normalised_total checked unchecked"),
        "rule_mismatches": len(ledger.mismatches),
        "mismatches": listed(_mismatch_data, ledger.mismatches),
        "unsupported": _sort_mapping(ledger.unsupported),
        "notes": list(ledger.notes),
        "entries": listed(_entry_form, ledger.entries),
    }


_mismatch_data = partial(fields_of, names="entry layer op rule source expected reported")
_entry_form = make_form("id layer op value calls", own="id layer")


def trace_data(result: Answer, trace: TraceResult, listed: RowMaker = rows_at_once) -> dict[str, Any]:
    """A trace of this run as plain data."""
    table = result.phase_table(trace)
    return {
        **fields_of(trace, "name framework state reason complete device"),
        "versions": _sort_mapping(trace.versions),
        "totals": dict(trace.totals),
        "unknown": listed(_unknown_data, trace.unknown),
        "no_arithmetic": _sort_mapping(trace.no_arithmetic),
        "integer_ops": _sort_mapping(trace.integer_ops),
        "notes": list(trace.notes),
        **({"steps": trace.steps} if trace.steps != 1 else {}),
        "mfu_flops": table.total.mfu_flops if table is not None and table.total.known else None,
        "hfu_flops": table.total.hfu_flops if table is not None and table.total.known else None,
        "phases": listed(_phase_data, table.rows if table is not None else ()),
        "rows": listed(_trace_row_form(result.convention.components), trace.rows),
    }


_unknown_data = partial(fields_of, names="layer op id reason")


def _phase_data(row: PhaseRow) -> dict[str, Any]:
    return {
        "layer": row.layer,
        "known": row.known,
        "flops": {phase: row.flops[phase] for phase in PHASES if phase in row.flops},
        "forward": row.forward,
        "backward": row.backward,
        "ratio": None if row.ratio is None else float(row.ratio),
    }


def _trace_row_form(components: tuple[str, ...]) -> Form[TraceRow]:
    """The rows of a trace, with these components of the work."""
    counts = attrgetter(*components)

    def make_shared(
        op: str, inputs: Tensors, outputs: Tensors, calls: int, phase: str, work: tuple[int, ...]
    ) -> dict[str, Any]:
        tensors = (*outputs, *inputs)
        return {
            "id": OWN_VALUE,
            "layer": OWN_VALUE,
            "path": OWN_VALUE,
            "op": op,
            "shapes": {"inputs": _shape_data(inputs), "outputs": _shape_data(outputs)},
            "dtype": tensors[0].dtype if tensors else "",
            "calls": calls,
            "phase": phase,
            **dict(zip(components, work, strict=True)),
        }

    return Form(
        lambda r: ((r.op, r.inputs, r.outputs, r.calls, r.phase, counts(r.work)), (r.id, r.layer, r.path)), make_shared
    )


def _match_data(row: Match) -> dict[str, Any]:
    return {
        "layer": row.layer,
        **{name: list(paths) for name, paths in row.paths.items()},
        "by": row.by,
        "comment": row.comment,
    }


def _layer_row_form(first: list[str]) -> Form[LayerRow]:
    """The rows of layers; ``work`` is that of the first of these frameworks that has the layer."""

    def parts(row: LayerRow) -> tuple[tuple[Any, ...], tuple[str]]:
        causes = tuple((counter, tuple(causes.items())) for counter, causes in row.causes.items())
        return (*(tuple(x.items()) for x in (row.work, row.counters, row.residuals)), causes), (row.layer,)

    def make_shared(work: Amounts, counters: Amounts, residuals: Amounts, causes: Causes) -> dict[str, Any]:
        ran = dict(work)
        return {
            "layer": OWN_VALUE,
            "work": next((ran[f] for f in first if f in ran), None),
            "work_by_framework": ran,
            "counters": dict(counters),
            "causes": {counter: {c.value: n for c, n in amounts} for counter, amounts in causes},
            "residuals": dict(residuals),
        }

    return Form(parts, make_shared)


def _shape_data(tensors: tuple[Tensor, ...]) -> list[Any]:
    return [plain(t.shape) for t in tensors]


def _sort_mapping(mapping: Mapping[str, Any]) -> dict[str, Any]:
    return {k: plain(mapping[k]) for k in sorted(mapping)}
