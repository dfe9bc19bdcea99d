"""Traces at home: their work, why they are incomplete, and the real differences between two of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ..align.alignment import Alignment
from ..core.causes import Cause, State
from ..core.conventions import Convention, Conventions
from ..core.records import REGISTERED, Op, Trace
from ..core.results import Adjustment, Evidence, TraceResult, TraceRow, Unknown
from ..core.work import MASKED, PRODUCTS
from ..work import COMPONENTS, ZERO, Work, formula_of, is_integer_op, known_part
from ..work.causal import is_taken_whole, unknown_mask


def trace_name(framework: str) -> str:
    """Name of a framework's trace in statements."""
    return f"trace@{framework}"


def ran(trace: Trace) -> list[Op]:
    """The ops that ran: an op without a call is in the program, in a loop that runs 0 times."""
    return [op for op in trace.ops if op.calls]


def trace_result(trace: Trace, align: Alignment, asked: Conventions) -> TraceResult:
    """Work of every op. An op without a formula, or of unknown shape, makes the trace incomplete, and the reason names it.

    An op with only some unknown components does so under the conventions that weigh one of them.
    """
    convention, conventions = asked.chosen, asked.every
    rows: list[TraceRow] = []
    unknown = [Unknown(align.layer(trace.framework, p.layer), p.op, p.id, p.reason) for p in trace.problems]
    idle: Counter[str] = Counter()
    integers: Counter[str] = Counter()
    stated: Counter[str] = Counter()
    total = ZERO
    masks = any(c.masked for c in conventions.values())
    for op in ran(trace):
        layer = align.layer(trace.framework, op.layer)
        part = known_part(op)
        work = part.work * op.calls
        if part.unknown:
            unknown.append(Unknown(layer, op.op, op.id, part.reason, part.unknown))
        if part.unknown and REGISTERED in op.attrs:
            stated[op.op] += convention.flops(work)
        if masks and (reason := unknown_mask(op)):
            unknown.append(Unknown(layer, op.op, op.id, reason, frozenset((MASKED,))))
        if work:
            rows.append(_row(op, layer, work))
            total = total + work
        elif not part.unknown:
            _classify(op, idle, integers)
    gaps = frozenset[str]().union(*(u.components for u in unknown))
    in_the_way = [u for u in unknown if convention.weighs(u.components)]
    unweighed = [u for u in unknown if not convention.weighs(u.components)]
    complete = not in_the_way
    return TraceResult(
        name=trace_name(trace.framework),
        framework=trace.framework,
        state=State.EXPLAINED if complete else State.UNEXPLAINED,
        reason="" if complete else _incomplete(in_the_way),
        complete=complete,
        device=trace.device,
        versions=trace.versions,
        rows=tuple(rows),
        unknown=tuple(in_the_way),
        no_arithmetic=dict(sorted(idle.items())),
        integer_ops=dict(sorted(integers.items())),
        totals={name: c.flops(total) for name, c in conventions.items() if not c.weighs(gaps)},
        notes=(*trace.notes, *_elsewhere(unweighed, conventions), *_whole(trace, align, convention)),
        unweighed=tuple(unweighed),
        stated={name: flops for name, flops in sorted(stated.items()) if flops},
    )


def _row(op: Op, layer: str, work: Work) -> TraceRow:
    return TraceRow(op.id, layer, op.layer, op.op, op.inputs, op.outputs, op.calls, op.phase, work)


def _classify(op: Op, idle: Counter[str], integers: Counter[str]) -> None:
    """Count an op without work: it never does arithmetic, or it computes on integers here."""
    entry = formula_of(op.op)
    if (entry is None or not entry.zero_reason) and is_integer_op(op):
        integers[op.op] += op.calls
    else:
        idle[op.op] += op.calls


def _incomplete(unknown: list[Unknown]) -> str:
    return f"the trace is incomplete: {_first(unknown)}"


def _elsewhere(unweighed: list[Unknown], conventions: Mapping[str, Convention]) -> tuple[str, ...]:
    """A note that names the ops with unknown work that only other conventions count."""
    names = [name for name, c in conventions.items() if any(c.weighs(u.components) for u in unweighed)]
    return (f"under {', '.join(names)}, this trace is incomplete: {_first(unweighed)}",) if names else ()


def _whole(trace: Trace, align: Alignment, convention: Convention) -> tuple[str, ...]:
    """A note that names the products that a mask may discard in part and that a convention for masked products takes whole."""
    ops = [op for op in trace.ops if is_taken_whole(op.op, op.inputs)] if convention.masked else []
    if not ops:
        return ()
    layer = align.layer(trace.framework, ops[0].layer)
    more = sum(op.calls for op in ops) - 1
    where = (f" at layer {layer}" if layer else "") + (f" and {more} more" if more else "")
    return (
        f"under {convention.name}, {ops[0].op}{where} of two stacks of matrices is taken whole: if it is a product of attention, "
        f"nothing in the trace shows which of its scores a mask discards",
    )


def _first(unknown: list[Unknown]) -> str:
    """The first of these ops, its layer, the reason, and how many more there are."""
    first = unknown[0]
    more = f" (and {len(unknown) - 1} more)" if len(unknown) > 1 else ""
    where = f" at layer {first.layer}" if first.layer else ""
    return f"{first.op}{where}: {first.reason}{more}"


def layer_work(trace: Trace, align: Alignment, convention: Convention) -> dict[str, int | None]:
    """FLOPs per layer of the pair; None if those of one of its ops are unknown. Layers without work are left out."""
    sums: dict[str, int | None] = {}
    for op in ran(trace):
        layer = align.layer(trace.framework, op.layer)
        part = known_part(op)
        if convention.weighs(part.unknown) or (convention.masked and unknown_mask(op)):
            sums[layer] = None
            continue
        flops = convention.flops(part.work) * op.calls
        so_far = sums.get(layer, 0)
        if flops and so_far is not None:
            sums[layer] = so_far + flops
    return sums


def differences(a: Trace, b: Trace, align: Alignment, convention: Convention) -> tuple[Adjustment, ...]:
    """Real differences from trace ``a`` to trace ``b``: per layer and component, with the ops that have it.

    A difference in multiply-adds is real-work-differs; one in other elementary operations alone is implementation-differs.
    Both traces must be complete under the convention.
    """
    left, right = _by_layer(a, align), _by_layer(b, align)
    adjustments = []
    for layer in align.order([*left, *right]):
        x, y = left.get(layer, {}), right.get(layer, {})
        delta = {name: _sum(y, name) - _sum(x, name) for name in (*COMPONENTS, MASKED)}
        for name in convention.components:
            amount = convention.weight(name) * delta[name]
            if amount:
                real = delta["mac"] and name in (*PRODUCTS, MASKED)
                cause = Cause.REAL_WORK_DIFFERS if real else Cause.IMPLEMENTATION_DIFFERS
                adjustments.append(Adjustment(cause, layer, name, "", amount, (_proof(a, b, x, y, layer, name),)))
    return tuple(adjustments)


def _by_layer(trace: Trace, align: Alignment) -> dict[str, dict[str, tuple[Op, Work]]]:
    by_layer: dict[str, dict[str, tuple[Op, Work]]] = {}
    for op in trace.ops:
        work = known_part(op).work * op.calls
        if work:
            by_layer.setdefault(align.layer(trace.framework, op.layer), {})[op.id] = (op, work)
    return by_layer


def _sum(ops: Mapping[str, tuple[Op, Work]], component: str) -> int:
    return sum(getattr(work, component) for _, work in ops.values())


def _proof(
    a: Trace, b: Trace, x: Mapping[str, tuple[Op, Work]], y: Mapping[str, tuple[Op, Work]], layer: str, component: str
) -> Evidence:
    """Ids of the ops on either side that have this component, ``tf:id`` and ``torch:id``."""
    ids = [
        f"{trace.framework}:{id}"
        for trace, ops in ((a, x), (b, y))
        for id, (_, work) in ops.items()
        if getattr(work, component)
    ]
    return Evidence(
        side="between",
        counter="",
        rule="",
        source="",
        cause=None,
        repeat=None,
        seen=(),
        ops=tuple(ids),
        seen_times=0,
        times=0,
        layer=layer,
        component=component,
        formula=f"{component}: {_spelled(a, x, component)} against {_spelled(b, y, component)}",
    )


def _spelled(trace: Trace, ops: Mapping[str, tuple[Op, Work]], component: str) -> str:
    """``tf 3 x Mul``: the kinds of op that have the component, and how many of each the trace has."""
    kinds = Counter(op.op for op, work in ops.values() if getattr(work, component))
    return f"{trace.framework} " + (", ".join(f"{n} x {kind}" for kind, n in kinds.items()) or "none")
