"""From the ledger of a counter that works on ATen ops to the PyTorch trace, module by module.

The counter may see the work of a module split into other ops than the trace (a GRU step by step, a linear layer as one
node).  The same formulas give the work of each op that it saw; in each module these must add up to the work that ran,
component by component.  Work that ran but that the counter did not meet has a cause only if an op that it met contains that
work: an op without a rule (a custom autograd function, or one fused op for an encoder layer that the trace has in parts),
or a node that it saw and then left out of its graph.  Otherwise the model ran other ops under the counter than in the
trace, and nothing can be booked: the difference stays in the residual.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...core.causes import Cause
from ...core.records import DEAD, INPUT_GRADIENT, RECOMPUTATION, WEIGHT_GRADIENT, Op, Sighting, Tensor, Trace
from ...work import COMPONENTS, ZERO, Work, is_integer_op
from .bridge import Bridge, Item, View, by_layer, known_work, make_item, other_ops, sum_of, unknown_of, unmet
from .rulebook import Rule, RuleBook, WhyNot, apply

GRADIENTS = (INPUT_GRADIENT, WEIGHT_GRADIENT)
LEFT_OUT = "the counter's graph leaves it out: no output of the model depends on it"


@dataclass(frozen=True, slots=True)
class _Counter:
    """A counter's rules in its version, and the reason why it does not count an op without a rule."""

    name: str
    book: RuleBook
    versions: Mapping[str, str]
    why_not: WhyNot

    def rule(self, op: Op) -> Rule | None:
        return self.book.of(op, self.versions)

    def includes(self, op: Op) -> Work:
        """The work that it would count for one call of this op."""
        return apply(self.rule(op), op, self.why_not)[0]

    def inside(self, holder: Op) -> str:
        """The reason why it does not count the ops that run inside this one."""
        return f"ran inside of {holder.op}: {self.why_not(holder)}"


@dataclass(frozen=True, slots=True)
class _Module:
    """One module whose met ops do not add up to the ops that ran: ``missing`` is the work that ran less the work that was met.

    ``holder`` is an op without a rule that the counter met, and in which the missing work may have run. ``split`` is set if the
    counter met an op that ran here as other ops, whose work may be more than the op's.
    """

    layer: str
    ran: list[Op]
    met: list[Op]
    items: list[Item]
    missing: Work
    holder: Op | None
    split: bool


def bridge_ops(view: View, trace: Trace, book: RuleBook, why_not: WhyNot) -> Bridge:
    """Items of a counter with one rule per ATen op; ``why_not`` says why an op without a rule is not counted."""
    counter = _Counter(view.counter, book, view.versions, why_not)
    ran = by_layer(trace.ops)
    met = by_layer(s.op for s in view.sightings)
    items: dict[str, list[Item]] = {}
    wide = _wide(view, trace, counter)
    for sighting in view.sightings:
        item = _dropped(sighting.op, wide, counter) if sighting.role == DEAD else _item(sighting, counter)
        items.setdefault(sighting.op.layer, []).append(item)
    missing = {layer: sum_of(ran.get(layer, ())) - sum_of(met.get(layer, ())) for layer in sorted({*ran, *met})}
    holders = _holders(view, missing, wide)
    split = _split(ran, met, counter)
    all_items: list[Item] = []
    for layer, lacks in missing.items():
        module_items = items.get(layer, [])
        if lacks:
            ops = (ran.get(layer, []), met.get(layer, []))
            module_items = _settled(
                _Module(layer, *ops, module_items, lacks, holders.get(layer), layer in split), counter
            )
        all_items += module_items
    return Bridge(tuple(all_items))


def _wide(view: View, trace: Trace, counter: _Counter) -> dict[str, Op]:
    """By module, an op without a rule in which other ops may have run.

    Either its work is not known, or it has multiply-adds and is not in the trace.
    """
    ran = {op.op for op in trace.ops}
    wide: dict[str, Op] = {}
    for sighting in view.sightings:
        op = sighting.op
        if sighting.role != DEAD and counter.rule(op) is None:
            work = known_work(op)
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
    parts = layer.split(".") if layer else []
    around = (wide.get(".".join(parts[:end])) for end in range(len(parts) - 1, -1, -1))
    return next((op for op in around if op is not None and _calls(op)), None)


def _split(ran: Mapping[str, list[Op]], met: Mapping[str, list[Op]], counter: _Counter) -> set[str]:
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
            parts = layer.split(".") if layer else []
            split.update(".".join(parts[:end]) for end in range(len(parts)))
    return split


def _item(sighting: Sighting, counter: _Counter) -> Item:
    op = sighting.op
    rule = counter.rule(op)
    work = known_work(op)
    counted, missed = apply(rule, op, counter.why_not)
    cause = missed.cause if missed else None
    if counted and is_integer_op(op):
        cause = Cause.INTEGER_OP
    return make_item(
        op,
        rule,
        layer=op.layer,
        op=op.op,
        counted=counted,
        seen=0 if missed else op.calls,
        ran=work or ZERO,
        times=op.calls,
        cause=cause,
        entry=sighting.entry,
        reason=missed.reason if missed else "",
        gap="" if work is not None else f"the work of {op.op} is unknown",
        unknown=unknown_of([op]),
    )


def _dropped(op: Op, wide: Mapping[str, Op], counter: _Counter) -> Item:
    """An op that the counter let run and then left out of its graph; Python code is one node there, with all the ops that ran
    inside it."""
    holder = wide.get(op.layer) or _around(op.layer, wide)
    _, missed = apply(counter.rule(op), op, counter.why_not)
    cause, reason = (missed.cause, missed.reason) if missed else (Cause.CALL_NOT_SEEN, LEFT_OUT)
    if holder is not None and known_work(holder) is None:
        cause, reason = Cause.OP_NOT_COUNTED, counter.inside(holder)
    ran = known_work(op) or ZERO
    return make_item(op, None, layer=op.layer, op=op.op, ran=ran, times=op.calls, cause=cause, reason=reason)


def _settled(module: _Module, counter: _Counter) -> list[Item]:
    """The module's items, with items for the work that it lacks, component by component.

    If the counter counts a component in none of the ops that it met here, and would count it in none of those that ran, the
    trace's ops replace the met ones for this component.
    """
    if not module.ran and module.holder is None:
        return _unran(module, counter)
    counted = ZERO
    for item in module.items:
        counted = counted + item.counted * item.seen
    missing, holder = module.missing, module.holder
    left_out = {name for name, count in missing.items() if count and not getattr(counted, name)}
    if "accumulators" in left_out and counted.mac and missing.mac:
        left_out.discard("accumulators")  # they go with the multiply-adds that are in question
    contested = {name for name in left_out if not holder and _contested(name, module, counter)}
    if contested:
        return [*module.items, _gap(module, missing, counter)]
    others = tuple(name for name in COMPONENTS if name not in left_out)
    kept = [replace(item, ran=_without(item.ran, left_out), only=others) for item in module.items]
    kept += [item for op in module.ran for item in _left_out(op, left_out, counter, holder)]
    rest = _without(missing, left_out)
    return [*kept, _gap(module, rest, counter)] if rest else kept


def _unran(module: _Module, counter: _Counter) -> list[Item]:
    """The items of a module in which the trace has no op: nothing that the counter counted there is a difference of formulas, and
    the work that it left out is not known to have run."""
    met = _gap(module, module.missing, counter)
    counted = [replace(item, ran=ZERO, gap=met.gap) for item in module.items if item.counted]
    left_out = [item for item in module.items if not item.counted]
    work = ZERO
    for item in left_out:
        work = work + item.ran * item.times
    return [*counted, *left_out, *([replace(met, ran=ZERO - work)] if work else [])]


def _contested(name: str, module: _Module, counter: _Counter) -> bool:
    """Whether the rules cannot explain that the counter counts a component in none of the met ops: another amount of it ran
    than was met, or the rule of an op that ran includes it.

    The number of sums that the same products form does not matter: a long sum may be taken in parts, and an add puts each to
    the others.
    """
    missing = module.missing
    parts_added = name == "add" and missing.add == missing.accumulators < 0
    taken_in_parts = name == "accumulators" or parts_added or _ends_early(module)
    if module.split and getattr(missing, name) < 0 and not missing.mac:
        taken_in_parts = True
    if getattr(missing, name) and (missing.mac or not taken_in_parts):
        return True
    return any(getattr(counter.includes(op), name) for op in module.ran)


def _ends_early(module: _Module) -> bool:
    """Whether a checkpoint recomputes a recurrent layer that is one op in the trace and that the counter met step by step:
    PyTorch stops as soon as it needs nothing more, before some of the elementwise work of the last step."""
    met = {op.op for op in module.met}
    return any(op.phase == RECOMPUTATION and op.op not in met and (known_work(op) or ZERO).mac for op in module.ran)


def _gap(module: _Module, work: Work, counter: _Counter) -> Item:
    parts = ", ".join(f"{name} {count:+,}" for name, count in work.items() if count)
    reason = f"the ops this counter saw and the work that ran differ by {parts}"
    if all(known_work(op) is not None for op in module.met):
        difference = f"{_strange(module, work)} (what ran less what it met: {parts})"
        reason = other_ops(counter.name, module.layer, difference)
    return make_item(None, None, layer=module.layer, op="", ran=work, times=1, gap=reason)


def _strange(module: _Module, work: Work) -> str:
    """An op that may explain the difference: one with exactly that work, else the one with most of it."""
    name, count = next((name, count) for name, count in work.items() if count)
    candidates, other = (module.ran, module.met) if count > 0 else (module.met, module.ran)
    same = {_kind(op): op.calls for op in other}

    def rank(op: Op) -> tuple[bool, bool, int]:
        amount = getattr(known_work(op) or ZERO, name) * op.calls
        return same.get(_kind(op)) != op.calls, amount == abs(count), amount

    op = max(candidates, key=rank)
    shapes = " x ".join(str(t.shape) for t in op.inputs)
    return f"{op.op} {shapes} {'is in the trace' if count > 0 else 'is not in the trace, or less often'}"


def _kind(op: Op) -> tuple[str, tuple[Tensor, ...]]:
    return op.op, op.inputs


def _without(work: Work, names: set[str]) -> Work:
    return Work(*(0 if name in names else count for name, count in work.items()))


def _left_out(op: Op, names: set[str], counter: _Counter, holder: Op | None) -> list[Item]:
    """The components of a trace op that the counter leaves out, by its formula for the op or with the op that contains it."""
    work = _without(known_work(op) or ZERO, set(COMPONENTS) - names)
    if not work:
        return []
    rule = None if holder else counter.rule(op)
    reason = counter.why_not(op) if rule is None else rule.formula
    if holder:
        reason = counter.inside(holder)
    cause = Cause.OP_NOT_COUNTED if rule is None else Cause.FORMULA_DIFFERS
    return [unmet(op, work, cause, reason, only=tuple(name for name in COMPONENTS if name in names))]
