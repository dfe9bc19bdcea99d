"""The work of a trace by op and layer, why it is incomplete, and the real differences in work between two traces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..align.alignment import Alignment
from ..core.causes import Cause, State
from ..core.conventions import Convention, Conventions
from ..core.records import REGISTERED, Op, Trace
from ..core.results import Adjustment, Evidence, TraceResult, TraceRow, Unknown
from ..core.work import MASKED, PRODUCT_COMPONENTS
from ..work import COMPONENTS, Known, Work, formula_of, is_integer_op, known_part, sum_works
from ..work.attention_masks import is_taken_whole, unknown_mask


def trace_name(framework: str) -> str:
    """Name of a framework's trace in statements."""
    return f"trace@{framework}"


@dataclass(frozen=True, eq=False, slots=True)
class EqualOps:
    """Ops of a trace that compute the same, each as often: ``op`` is one of them. ``work`` is that of all calls of one op, as
    far as it is known; ``mask`` says why the products that a mask discards are unknown, '' if none are."""

    op: Op
    part: Known
    work: Work
    mask: str


@dataclass(frozen=True, eq=False, slots=True)
class WeighedTrace:
    """A trace and the work of its ops, whatever the convention: every op that ran with its layer of the pair and its kind."""

    trace: Trace
    kinds: tuple[EqualOps, ...]
    ops: tuple[tuple[Op, str, EqualOps], ...]
    rows: tuple[TraceRow, ...]


def weigh_ops(trace: Trace, align: Alignment) -> WeighedTrace:
    """The work of every op that ran, computed once for equal ones. An op without a call is in the program, in a loop that runs
    0 times."""
    kinds: dict[tuple[int, int], EqualOps] = {}
    ops: list[tuple[Op, str, EqualOps]] = []
    for op in trace.ops:
        if op.calls:
            part = known_part(op)
            key = (id(part), op.calls)  # equal ops share a part, which their kind keeps
            kind = kinds.get(key)
            if kind is None:
                kind = kinds[key] = EqualOps(op, part, part.work * op.calls, unknown_mask(op))
            ops.append((op, align.layer(trace.framework, op.layer), kind))
    working = {kind for kind in kinds.values() if kind.work}
    rows = tuple(
        TraceRow(op.id, layer, op.layer, op.op, op.inputs, op.outputs, op.calls, op.phase, kind.work)
        for op, layer, kind in ops
        if kind in working
    )
    return WeighedTrace(trace, tuple(kinds.values()), tuple(ops), rows)


def trace_result(trace: Trace, align: Alignment, asked: Conventions) -> TraceResult:
    """As ``result_of``, of a trace whose ops have no work yet."""
    return result_of(weigh_ops(trace, align), align, asked)


def result_of(found: WeighedTrace, align: Alignment, asked: Conventions) -> TraceResult:
    """Work of every op. An op without a formula, or of unknown shape, makes the trace incomplete, and the reason names it.

    An op with only some unknown components does so under the conventions that weigh one of them.
    """
    convention, conventions, trace = asked.chosen, asked.every, found.trace
    unknown = [
        Unknown(align.layer(trace.framework, p.layer), p.op, p.id, p.reason, lacks_formula=False)
        for p in trace.problems
    ]
    unknown += _list_unknown(found, any(c.masked for c in conventions.values()))
    times = Counter(kind for _, _, kind in found.ops)
    idle: Counter[str] = Counter()
    integers: Counter[str] = Counter()
    stated: Counter[str] = Counter()
    for kind in found.kinds:
        if kind.part.unknown and REGISTERED in kind.op.attrs:
            stated[kind.op.op] += convention.flops(kind.work) * times[kind]
        if not kind.work and not kind.part.unknown:
            (integers if _is_of_integers(kind.op) else idle)[kind.op.op] += kind.op.calls * times[kind]
    parameters: Counter[str] = Counter()
    for path, elements in trace.parameters.items():
        parameters[align.layer(trace.framework, path)] += elements
    sums = sum_works(kind.work * times[kind] for kind in found.kinds)
    gaps = frozenset[str]().union(*(u.components for u in unknown))
    in_the_way = [u for u in unknown if convention.weighs(u.components)]
    unweighed = [u for u in unknown if not convention.weighs(u.components)]
    complete = not in_the_way
    return TraceResult(
        name=trace_name(trace.framework),
        framework=trace.framework,
        state=State.EXPLAINED if complete else State.UNEXPLAINED,
        reason="" if complete else f"the trace is incomplete: {_describe_first(in_the_way)}",
        complete=complete,
        device=trace.device,
        versions=trace.versions,
        rows=found.rows,
        unknown=tuple(in_the_way),
        no_arithmetic=dict(sorted(idle.items())),
        integer_ops=dict(sorted(integers.items())),
        totals={name: c.flops(sums) for name, c in conventions.items() if not c.weighs(gaps)},
        notes=(
            *trace.notes,
            *_note_other_conventions(unweighed, conventions),
            *_note_products_taken_whole(trace, align, convention),
        ),
        unweighed=tuple(unweighed),
        stated={name: flops for name, flops in sorted(stated.items()) if flops},
        parameters=parameters,
    )


def _list_unknown(found: WeighedTrace, masks: bool) -> Iterator[Unknown]:
    """The ops whose work is unknown in part, and where ``masks`` have a weight, the ops with one that is unknown."""
    if not any(kind.part.unknown or kind.mask for kind in found.kinds):
        return
    for op, layer, kind in found.ops:
        if kind.part.unknown:
            asks = kind.part.unknown != {MASKED}
            yield Unknown(layer, op.op, op.id, kind.part.reason, kind.part.unknown, lacks_formula=asks)
        if masks and kind.mask:
            yield Unknown(layer, op.op, op.id, kind.mask, frozenset((MASKED,)), lacks_formula=False)


def _is_of_integers(op: Op) -> bool:
    """Whether an op without work computes on integers here; else it never does arithmetic."""
    entry = formula_of(op.op)
    return (entry is None or not entry.zero_reason) and is_integer_op(op)


def _note_other_conventions(unweighed: list[Unknown], conventions: Mapping[str, Convention]) -> tuple[str, ...]:
    """A note that names the ops with unknown work that only other conventions count."""
    names = [name for name, c in conventions.items() if any(c.weighs(u.components) for u in unweighed)]
    return (f"under {', '.join(names)}, this trace is incomplete: {_describe_first(unweighed)}",) if names else ()


def _note_products_taken_whole(trace: Trace, align: Alignment, convention: Convention) -> tuple[str, ...]:
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


def _describe_first(unknown: list[Unknown]) -> str:
    """The first of these ops, its layer, the reason, and how many more there are."""
    first = unknown[0]
    more = f" (and {len(unknown) - 1} more)" if len(unknown) > 1 else ""
    where = f" at layer {first.layer}" if first.layer else ""
    return f"{first.op}{where}: {first.reason}{more}"


def layer_work(trace: Trace, align: Alignment, convention: Convention) -> dict[str, int | None]:
    """As ``work_by_layer``, of a trace whose ops have no work yet."""
    return work_by_layer(weigh_ops(trace, align), convention)


def work_by_layer(found: WeighedTrace, convention: Convention) -> dict[str, int | None]:
    """FLOPs per layer of the pair; None if those of one of its ops are unknown. Layers without work are left out."""
    flops = {
        kind: None
        if convention.weighs(kind.part.unknown) or (convention.masked and kind.mask)
        else convention.flops(kind.work)
        for kind in found.kinds
    }
    sums: dict[str, int | None] = {}
    for _, layer, kind in found.ops:
        amount = flops[kind]
        if amount is None:
            sums[layer] = None
        elif amount:
            so_far = sums.get(layer, 0)
            if so_far is not None:
                sums[layer] = so_far + amount
    return sums


def differences(a: Trace, b: Trace, align: Alignment, convention: Convention) -> tuple[Adjustment, ...]:
    """As ``differences_of``, of traces whose ops have no work yet."""
    return differences_of(weigh_ops(a, align), weigh_ops(b, align), align, convention)


def differences_of(
    a: WeighedTrace, b: WeighedTrace, align: Alignment, convention: Convention
) -> tuple[Adjustment, ...]:
    """Real differences from trace ``a`` to trace ``b``: per layer and component, with the ops that have it.

    A difference in multiply-adds is real-work-differs; one in other elementary operations alone is implementation-differs.
    Both traces must be complete under the convention.
    """
    left, right = _by_layer(a), _by_layer(b)
    adjustments = []
    for layer in align.order([*left, *right]):
        x, y = left.get(layer, {}), right.get(layer, {})
        delta = {name: _sum_component(y, name) - _sum_component(x, name) for name in (*COMPONENTS, MASKED)}
        for name in convention.components:
            amount = convention.weight(name) * delta[name]
            if amount:
                real = delta["mac"] and name in (*PRODUCT_COMPONENTS, MASKED)
                cause = Cause.REAL_WORK_DIFFERS if real else Cause.IMPLEMENTATION_DIFFERS
                adjustments.append(
                    Adjustment(
                        cause, layer, name, "", amount, (_difference_evidence(a.trace, b.trace, x, y, layer, name),)
                    )
                )
    return tuple(adjustments)


def _by_layer(found: WeighedTrace) -> dict[str, dict[str, tuple[Op, Work]]]:
    by_layer: dict[str, dict[str, tuple[Op, Work]]] = {}
    for op, layer, kind in found.ops:
        if kind.work:
            by_layer.setdefault(layer, {})[op.id] = (op, kind.work)
    return by_layer


def _sum_component(ops: Mapping[str, tuple[Op, Work]], component: str) -> int:
    return sum(getattr(work, component) for _, work in ops.values())


def _difference_evidence(
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
        formula=f"{component}: {_list_kinds(a, x, component)} against {_list_kinds(b, y, component)}",
    )


def _list_kinds(trace: Trace, ops: Mapping[str, tuple[Op, Work]], component: str) -> str:
    """``tf 3 x Mul``: the kinds of op that have the component, and how many of each the trace has."""
    kinds = Counter(op.op for op, work in ops.values() if getattr(work, component))
    return f"{trace.framework} " + (", ".join(f"{n} x {kind}" for kind, n in kinds.items()) or "none")
