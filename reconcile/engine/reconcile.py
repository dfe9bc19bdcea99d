"""Reconciles every ledger with its trace, the traces with each other, and counters of two environments. Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from ..align.alignment import Alignment
from ..core.causes import Cause, State
from ..core.conventions import Convention, Conventions
from ..core.records import Ledger, Trace
from ..core.results import Adjustment, LayerRow, LedgerResult, Residual, Statement, TraceResult
from .ledger import Bridged, Reconciled, book_items, bridge_ledger, reconcile_ledger
from .statements import block_statement, chain_statements, close_statement, reverse_statement
from .traces import WeighedTrace, differences, differences_of, result_of, trace_name, weigh_ops, work_by_layer

CAUSES_DO_NOT_LEAD_THERE = "the causes of this layer do not lead to the work that ran in it"


@dataclass(frozen=True, slots=True)
class Missing:
    """A trace or ledger that could not be obtained: its state (FAILED, SKIPPED or NOT_COMPARABLE) and one sentence. ``absent`` is
    the counter's distribution if the reason is that it is not installed."""

    name: str
    framework: str
    state: State
    reason: str
    unit: str = ""
    device: str = ""
    absent: str = ""


@dataclass(frozen=True, slots=True)
class Books:
    """Everything that the engine computes from one run under one convention."""

    traces: tuple[TraceResult, ...]
    ledgers: tuple[LedgerResult, ...]
    layers: tuple[LayerRow, ...]
    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """What is computed from one run whatever the convention: the work of each trace, and each ledger beside its trace. A ledger
    whose framework has no trace is as it was."""

    align: Alignment
    traces: tuple[WeighedTrace | Missing, ...]
    ledgers: tuple[Bridged | Ledger | Missing, ...]


def gather_facts(traces: Sequence[Trace | Missing], ledgers: Sequence[Ledger | Missing], align: Alignment) -> Facts:
    """Weigh every trace, and bridge every ledger to the trace of its framework."""
    raw = {t.framework: t for t in traces if isinstance(t, Trace)}
    return Facts(
        align,
        tuple(weigh_ops(t, align) if isinstance(t, Trace) else t for t in traces),
        tuple(
            bridge_ledger(x, raw[x.framework], align) if isinstance(x, Ledger) and x.framework in raw else x
            for x in ledgers
        ),
    )


def books_of(found: Facts, conventions: Conventions) -> Books:
    """Reconcile every ledger with the trace of its framework, and the traces with each other.

    There is a statement from every counter to its trace; and for every two frameworks one between their traces, and one from
    every counter of the first to every counter of the second.
    """
    convention, align = conventions.chosen, found.align
    raw = {t.trace.framework: t for t in found.traces if isinstance(t, WeighedTrace)}
    results = [
        result_of(t, align, conventions)
        if isinstance(t, WeighedTrace)
        else TraceResult(trace_name(t.framework), t.framework, t.state, t.reason, complete=False)
        for t in found.traces
    ]
    known = {t.framework: t for t in results}
    work = {framework: work_by_layer(trace, convention) for framework, trace in raw.items()}
    done_by: dict[str, Reconciled] = {}
    cells: dict[str, Mapping[str, int]] = {}
    ledger_results = []
    for ledger in found.ledgers:
        if isinstance(ledger, Missing):
            ledger_results.append(
                LedgerResult(ledger.name, ledger.framework, ledger.state, ledger.reason, ledger.unit, ledger.device)
            )
        elif isinstance(ledger, Bridged):
            done = book_items(ledger, align, convention)
            if known[done.ledger.framework].complete:
                done = _add_open_residuals(done, work[done.ledger.framework], ledger.spans)
            done_by[done.ledger.counter] = done
            cells[done.ledger.counter] = done.cells
            ledger_results.append(done.ledger)
        else:
            bare = _without_trace(ledger, known[ledger.framework], align)
            cells[ledger.counter] = bare.cells
            ledger_results.append(bare.ledger)
    own = [
        (led.framework, _statement_to_trace(led, known[led.framework], done_by, convention)) for led in ledger_results
    ]
    statements = [statement for _, statement in own]
    for first, second in combinations(results, 2):
        statements += _statements_between(first, second, own, raw, align, convention)
    layers = _layer_rows(raw, work, cells, done_by, align)
    return Books(tuple(results), tuple(ledger_results), layers, tuple(statements))


def _add_open_residuals(
    done: Reconciled, work: Mapping[str, int | None], spans: Iterable[frozenset[str]] = ()
) -> Reconciled:
    """The path to a complete trace, with what its bridge leaves open between a layer's value and the work that ran there.

    The layers of one item, which has its causes in one of them, are held to their work together: ``spans``.
    """
    sums = Counter(done.cells)
    for layer, amount in ((x.layer, x.amount) for lines in (done.adjustments, done.residuals) for x in lines):
        sums[layer] += amount
    together = _join_spans(spans)
    rests: Counter[str] = Counter()
    for layer in dict.fromkeys((*work, *sums)):
        rests[together.get(layer, layer)] += (work.get(layer) or 0) - sums[layer]
    more = [Residual(layer, rest, CAUSES_DO_NOT_LEAD_THERE) for layer, rest in rests.items() if rest]
    if not more:
        return done
    return replace(done, residuals=(*done.residuals, *more), ledger=replace(done.ledger, state=State.UNEXPLAINED))


def _without_trace(ledger: Ledger, trace: TraceResult, align: Alignment) -> Reconciled:
    """A ledger whose framework has no trace: its own numbers are kept, layer by layer, but nothing can be checked."""
    empty = Trace(ledger.framework, {}, "", (), (), (), (), ())
    bare = reconcile_ledger(ledger._replace(sightings=()), empty, align, Convention("nothing"))
    reason = f"there is no trace to compare it with: {trace.reason}"
    return replace(bare, ledger=replace(bare.ledger, state=State.NOT_COMPARABLE, reason=reason))


def _statement_to_trace(
    ledger: LedgerResult, trace: TraceResult, bridged: Mapping[str, Reconciled], convention: Convention
) -> Statement:
    ends = (ledger.counter, trace_name(ledger.framework))
    totals = (ledger.normalised_total, trace.totals.get(convention.name))
    done = bridged.get(ledger.counter)
    if ledger.total is None:
        return block_statement(*ends, ledger.state, f"{ledger.counter}: {ledger.reason}", totals)
    if not trace.complete:
        return block_statement(*ends, State.NOT_COMPARABLE, trace.reason, totals, done.adjustments if done else ())
    assert done is not None
    return close_statement(*ends, totals, done.adjustments, done.residuals)


def _statements_between(
    first: TraceResult,
    second: TraceResult,
    own: Sequence[tuple[str, Statement]],
    raw: Mapping[str, WeighedTrace],
    align: Alignment,
    convention: Convention,
) -> list[Statement]:
    """Trace to trace, and every counter of the first framework to every counter of the second.

    ``own`` are the statements of the counters to their traces, each with its framework.
    """
    totals = (first.totals.get(convention.name), second.totals.get(convention.name))
    bad = next((t for t in (first, second) if not t.complete), None)
    if bad is None:
        between = differences_of(raw[first.framework], raw[second.framework], align, convention)
        middle = close_statement(first.name, second.name, totals, between, ())
    else:
        state = bad.state if bad.state in (State.FAILED, State.SKIPPED) else State.NOT_COMPARABLE
        middle = block_statement(first.name, second.name, state, bad.reason, totals)
    left = [s for framework, s in own if framework == first.framework]
    right = [reverse_statement(s) for framework, s in own if framework == second.framework]
    return [middle, *(chain_statements((a, middle, b)) for a in left for b in right)]


@dataclass(frozen=True, slots=True)
class End:
    """One end of a statement between runs: its name, the ledger, and the trace that the ledger is reconciled with."""

    name: str
    ledger: Ledger
    trace: Trace


def reconcile_runs(a: End, b: End, align: Alignment, convention: Convention) -> Statement:
    """The statement from a counter in one environment to a counter in another: A to its trace, trace to trace, and on to B."""
    left = reconcile_ledger(a.ledger, a.trace, align, convention)
    right = reconcile_ledger(b.ledger, b.trace, align, convention)
    middle = () if a.trace is b.trace else differences(a.trace, b.trace, align, convention)
    return statement_across((a.name, left), middle, (b.name, right))


def statement_across(a: tuple[str, Reconciled], middle: Sequence[Adjustment], b: tuple[str, Reconciled]) -> Statement:
    """The statement from ledger to ledger, each with its name; ``middle`` leads from the work of the first to that of the
    second."""
    left, right = _close_ledger(*a), _close_ledger(*b)
    return chain_statements(
        (
            left,
            close_statement(left.to, right.to, (left.to_total, right.to_total), middle, ()),
            reverse_statement(right),
        )
    )


def _close_ledger(name: str, done: Reconciled) -> Statement:
    """The statement from a ledger to the work that ran, to which its lines and residuals lead."""
    total = done.ledger.normalised_total
    assert total is not None
    ran = total + sum(line.amount for line in done.adjustments) + sum(r.amount for r in done.residuals)
    return close_statement(name, f"{name}: trace", (total, ran), done.adjustments, done.residuals)


def _layer_rows(
    raw: Mapping[str, WeighedTrace],
    work: Mapping[str, Mapping[str, int | None]],
    cells: Mapping[str, Mapping[str, int]],
    bridged: Mapping[str, Reconciled],
    align: Alignment,
) -> tuple[LayerRow, ...]:
    """A row per layer. ``cells`` are the values per layer of every counter that has a total, with a trace or without one."""
    names = [name for table in work.values() for name in table]
    names += [name for by_layer in cells.values() for name in by_layer]
    names += [line.layer for done in bridged.values() for line in done.adjustments]
    names += [r.layer for done in bridged.values() for r in done.residuals]
    ran = dict.fromkeys(align.layer(framework, path) for framework, found in raw.items() for path in found.trace.layers)
    occurring = set(names)
    names = [
        name for name in ran if name in occurring
    ] + names  # layers that ran, in the order of execution, come first
    causes: dict[str, dict[str, dict[Cause, int]]] = {}
    residuals: dict[str, dict[str, int]] = {}
    for counter, done in bridged.items():
        for line in done.adjustments:
            cell = causes.setdefault(line.layer, {}).setdefault(counter, {})
            cell[line.cause] = cell.get(line.cause, 0) + line.amount
        for r in done.residuals:
            by_counter = residuals.setdefault(r.layer, {})
            by_counter[counter] = by_counter.get(counter, 0) + r.amount
    return tuple(
        LayerRow(
            layer=name,
            work={f: known for f, table in work.items() if (known := table.get(name, 0)) is not None},
            counters={counter: by_layer.get(name, 0) for counter, by_layer in cells.items()},
            causes=causes.get(name, {}),
            residuals=residuals.get(name, {}),
        )
        for name in align.order(names)
    )


def _join_spans(spans: Iterable[frozenset[str]]) -> dict[str, str]:
    """The first layer of each group of layers that share spans, by layer."""
    groups: list[set[str]] = []
    for span in spans:
        apart = [group for group in groups if not group & span]
        groups = [*apart, set(span).union(*(group for group in groups if group & span))]
    return {layer: min(group) for group in groups for layer in group}
