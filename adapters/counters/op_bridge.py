"""Bridge from the ledger of a counter of ATen ops (flop_counter, fvcore and others) to the PyTorch trace, module by module.

The counter may see the work of a module split into other ops than the trace (a GRU step by step, a linear layer as one
node).  The same formulas give the work of each op that it saw; in each module these must add up to the work that ran,
component by component.  Work that ran but that the counter did not meet has a cause only if an op that it met contains that
work: an op without a rule (a custom autograd function, or one fused op for an encoder layer that the trace has in parts),
or a node that it saw and then left out of its graph.  Otherwise the model ran other ops under the counter than in the
trace, and nothing can be booked: the difference stays in the residual.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ...core.causes import Cause
from ...core.records import (
    DEAD,
    INPUT_GRADIENT,
    LIVE,
    ON_THREAD,
    TANGENT,
    TRACED_ONLY,
    TWO_TENSORS,
    UNNEEDED,
    UNTRACED,
    WEIGHT_GRADIENT,
    WHOLE,
    Op,
    Sighting,
    Trace,
)
from ...work import COMPONENTS, MASKED, ZERO, Known, Work, known_part
from ...work.attention_kernels import GRADIENTS as GRADIENT_KERNELS
from .bridge import (
    Bridge,
    Item,
    Judged,
    OpCounter,
    View,
    by_layer,
    known_work,
    make_item,
    modules_around,
    sum_of,
    unknown_gap,
    unknown_of,
    unmet,
)
from .op_settling import UnsettledModule, settle_module
from .rulebook import RuleBook, WhyNot, apply

GRADIENTS = (INPUT_GRADIENT, WEIGHT_GRADIENT)
AT_ONCE = (
    "on meta autograd made the gradients that are needed, one by one; the kernel of a CPU computes this one with them"
)
ANOTHER_THREAD = (
    "it ran on a thread that the model started, and the counter is a mode of the thread that calls the model"
)
IS_TRACING = "the model's code asks torch.jit.is_tracing(), and runs this where the answer is %s"
IS_ANOTHER_TENSOR = (
    "one input is given twice, the model's code asks whether these are one tensor, and runs this where they are %s"
)
TANGENT_NOT_TRACED = "a tangent of forward-mode differentiation, which a trace of a graph does not follow"
LEFT_OUT = "the counter's graph leaves it out: no output of the model depends on it"


def bridge_ops(view: View, trace: Trace, book: RuleBook, why_not: WhyNot, *, of_graph: bool = False) -> Bridge:
    """Items of a counter with one rule per ATen op; ``why_not`` says why an op without a rule is not counted, ``of_graph``
    whether the counter goes by a TorchScript graph, which has no tangents of forward-mode differentiation."""
    counter = OpCounter(view.counter, book, view.versions, why_not)
    tangents = _tangents(view, trace) if of_graph else []
    view = _without(view, tangents) if tangents else view
    judged = [counter.judge_op(sighting.op) for sighting in view.sightings]
    met = by_layer(s.op for s in view.sightings if s.role != TRACED_ONLY)
    parts: dict[str, list[Known]] = {}
    for sighting, said in zip(view.sightings, judged, strict=True):
        if sighting.role != TRACED_ONLY:
            parts.setdefault(sighting.op.layer, []).append(said.part)
    at_once = [op for op in trace.ops if op.attrs.get(UNNEEDED) and not any(map(_of_kernel, met.get(op.layer, ())))]
    apart = {op.id for op in (*at_once, *tangents)}
    ran = by_layer(op for op in trace.ops if op.id not in apart)
    items: dict[str, list[Item]] = {}
    wide = _wide(view, trace, judged)
    for sighting, said in zip(view.sightings, judged, strict=True):
        if sighting.op.attrs.get(ON_THREAD):
            item = _unseen(sighting.op, ANOTHER_THREAD)
        elif sighting.role == UNTRACED:
            item = _unseen(sighting.op, _why_untraced(sighting))
        else:
            item = _dropped_item(sighting.op, wide, counter) if sighting.role == DEAD else _item(sighting, said)
        items.setdefault(sighting.op.layer, []).append(item)
        if WHOLE in sighting.op.attrs:
            items[sighting.op.layer].append(_other_parts(sighting, item, counter))
    missing = {
        layer: _lacking_work(ran.get(layer, ()), met.get(layer, ()), parts.get(layer, ()))
        for layer in sorted({*ran, *met, *items})
    }
    holders = _holders(view, missing, wide)
    split = _modules_with_parts(ran, met, counter)
    all_items = [unmet(op, known_work(op) or ZERO, Cause.CALL_NOT_SEEN, AT_ONCE) for op in at_once]
    all_items += [unmet(op, known_work(op) or ZERO, Cause.CALL_NOT_SEEN, TANGENT_NOT_TRACED) for op in tangents]
    for layer, lacks in missing.items():
        module_items = items.get(layer, [])
        if lacks.masked:  # the counter saw the products of causal attention, not that they are causal
            module_items = [*map(_unmasked_item, module_items), *_masked_items(ran.get(layer, ()))]
            lacks = lacks.only(COMPONENTS)
        if lacks:
            ops = (ran.get(layer, []), met.get(layer, []))
            module_items = settle_module(
                UnsettledModule(layer, *ops, module_items, lacks, holders.get(layer), layer in split), counter
            )
        all_items += module_items
    return Bridge(tuple(all_items))


def _lacking_work(ran: Sequence[Op], met: Sequence[Op], parts: Sequence[Known]) -> Work:
    """The work of the ops that ran in a module less that of the ops that a counter met there, which have these ``parts``. Where
    it met equal ops, which share one part, nothing is added up."""
    if len(ran) == len(met) and all(
        known_part(a) is part and a.calls == b.calls for a, b, part in zip(ran, met, parts, strict=True)
    ):
        return ZERO
    return sum_of(ran) - sum_of(met)


def _tangents(view: View, trace: Trace) -> list[Op]:
    """The ops that compute tangents of ops that the counter met."""
    layers = {sighting.op.layer for sighting in view.sightings}
    return [op for op in trace.ops if op.attrs.get(TANGENT) and op.layer in layers]


def _without(view: View, tangents: list[Op]) -> View:
    """The view without the nodes that were made for tangents, too, and of which the graph keeps none: each has one's work."""
    left = Counter[tuple[str, Work | None]]()
    for op in tangents:
        left[op.layer, known_work(op)] += op.calls
    kept: list[Sighting] = []
    for sighting in view.sightings:
        of = (sighting.op.layer, known_work(sighting.op))
        if sighting.role == DEAD and left[of] >= sighting.op.calls:
            left[of] -= sighting.op.calls
        else:
            kept.append(sighting)
    return replace(view, sightings=tuple(kept))


def _of_kernel(op: Op) -> bool:
    """Whether this is a kernel of attention's gradients, which computes them all."""
    of_sdpa = op.op.startswith("aten._scaled_dot_product_") and op.op.endswith("_backward")
    return of_sdpa or op.op in GRADIENT_KERNELS


def _unmasked_item(item: Item) -> Item:
    """An item of an op that the counter met, without the products that its mask discards."""
    if not item.ran.masked:
        return item
    return replace(item, ran=item.ran.only(COMPONENTS), only=item.only or COMPONENTS)


def _masked_items(ops: Iterable[Op]) -> list[Item]:
    """The products of the trace's ops that a causal mask discards."""
    works = ((op, known_work(op) or ZERO) for op in ops)
    reason = "a causal mask discards these products"
    return [unmet(op, work.only((MASKED,)), None, reason, only=(MASKED,)) for op, work in works if work.masked]


def _wide(view: View, trace: Trace, judged: Iterable[Judged]) -> dict[str, Op]:
    """By module, an op without a rule in which other ops may have run.

    Either its work is not known, or it has multiply-adds and is not in the trace.
    """
    ran = {op.op for op in trace.ops}
    wide: dict[str, Op] = {}
    for sighting, said in zip(view.sightings, judged, strict=True):
        if sighting.role == LIVE and said.rule is None:
            op, work = sighting.op, said.work
            if work is None or (work.mac and op.op not in ran):
                wide[op.layer] = op
    return wide


def _holders(view: View, missing: Mapping[str, Work], wide: Mapping[str, Op]) -> dict[str, Op]:
    """For each module that lacks work, the op in which that work may have run: an op in the module, or around it if the
    counter met nothing in the module itself.

    If the work of that op is known, the work that its modules lack has no multiply-adds in total.
    """
    met = {s.op.layer for s in view.sightings}
    holders: dict[str, Op] = {}
    for layer, lacks in missing.items():
        holder = wide.get(layer) if layer in met else _around(layer, wide)
        if lacks and holder is not None:
            holders[layer] = holder
    lacking: dict[str, int] = {}
    for layer, holder in holders.items():
        lacking[holder.layer] = lacking.get(holder.layer, 0) + missing[layer].mac
    return {
        layer: holder for layer, holder in holders.items() if known_work(holder) is None or not lacking[holder.layer]
    }


def _calls(op: Op) -> bool:
    """Whether modules may run inside this op: it is Python code, or one op for several modules."""
    return not op.op.startswith("aten.") or known_work(op) is not None


def _around(layer: str, wide: Mapping[str, Op]) -> Op | None:
    """Among the ops in which modules may run, the one in the nearest module around this one."""
    around = (wide.get(path) for path in modules_around(layer)[1:])
    return next((op for op in around if op is not None and _calls(op)), None)


def _modules_with_parts(ran: Mapping[str, list[Op]], met: Mapping[str, list[Op]], counter: OpCounter) -> set[str]:
    """The modules in which the counter met parts of an op that ran: for flop_counter, PyTorch decomposes what has no formula
    there, and the parts may do more than the op (an interpolation that copies computes its indices). Autograd adds the parts of a
    gradient in a module around the op's."""
    split = set[str]()
    for layer, ops in ran.items():
        names = {op.op for op in met.get(layer, ())}
        parted = [op for op in ops if op.op not in names and counter.rule(op) is None]
        if parted:
            split.add(layer)
        if any(op.phase in GRADIENTS for op in parted):
            split.update(modules_around(layer)[1:])
    return split


def _item(sighting: Sighting, judged: Judged) -> Item:
    op = sighting.op
    rule, missed, work = judged.rule, judged.missed, judged.work
    cause, unknown = judged.cause, judged.part.unknown
    if sighting.role == TRACED_ONLY:
        cause, work, unknown = Cause.UNTAKEN_BRANCH, ZERO, frozenset()
    return make_item(
        op,
        rule,
        counted=judged.counted,
        seen=0 if missed else op.calls,
        ran=work or ZERO,
        times=op.calls,
        cause=cause,
        entry=sighting.entry,
        reason=_why_untraced(sighting) if sighting.role == TRACED_ONLY else missed.reason if missed else "",
        gap="" if sighting.role == TRACED_ONLY else unknown_gap([op]),
        unknown=unknown,
    )


def _why_untraced(sighting: Sighting) -> str:
    """Why the counter's graph alone has this op, or lacks it."""
    traced = sighting.role == TRACED_ONLY
    if sighting.op.attrs.get(TWO_TENSORS):
        return IS_ANOTHER_TENSOR % ("two" if traced else "one")
    return IS_TRACING % ("yes" if traced else "no")


def _other_parts(sighting: Sighting, part: Item, counter: OpCounter) -> Item:
    """What the counter counts of the parts that other processes have: it was shown the shapes of the whole."""
    op = sighting.op
    whole = whole_of(op)
    counted = counter.includes(whole) - counter.includes(op)
    parts, cause = (whole._replace(calls=1), op._replace(calls=-1)), Cause.GLOBAL_SHAPE
    return make_item(
        op, counter.rule(op), met=parts, counted=counted, seen=part.seen, cause=cause, entry=sighting.entry
    )


def whole_of(op: Op) -> Op:
    """The op with the shapes of whole tensors, as a counter is shown it."""
    whole = op.attrs[WHOLE]
    inputs, outputs = (
        tuple(t._replace(shape=tuple(shape)) for t, shape in zip(getattr(op, side), whole[side], strict=True))
        for side in ("inputs", "outputs")
    )
    attrs = {name: value for name, value in op.attrs.items() if name != WHOLE}
    return op._replace(attrs=attrs, inputs=inputs, outputs=outputs)


def _unseen(op: Op, reason: str) -> Item:
    """An op that ran where the counter does not look."""
    return make_item(
        op, None, ran=known_work(op) or ZERO, times=op.calls, cause=Cause.CALL_NOT_SEEN, reason=reason,
        gap=unknown_gap([op]), unknown=unknown_of([op]),
    )  # fmt: skip


def _dropped_item(op: Op, wide: Mapping[str, Op], counter: OpCounter) -> Item:
    """An op that the counter let run and then left out of its graph; Python code is one node there, with all the ops that ran
    inside it."""
    holder = wide.get(op.layer) or _around(op.layer, wide)
    _, missed = apply(counter.rule(op), op, counter.why_not)
    cause, reason = (missed.cause, missed.reason) if missed else (Cause.CALL_NOT_SEEN, LEFT_OUT)
    if holder is not None and known_work(holder) is None:
        cause, reason = Cause.OP_NOT_COUNTED, counter.inside(holder)
    ran = known_work(op) or ZERO
    return make_item(op, None, ran=ran, times=op.calls, cause=cause, reason=reason)
