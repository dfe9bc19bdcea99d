"""Items of a module in which a counter of ATen ops met other ops than ran: causes of the missing work, or a residual.

op_bridge.py adds up the work of each module, and calls ``settle_module`` where the sums differ.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from ...core.causes import Cause
from ...core.records import RECOMPUTATION, Op, Tensor
from ...work import COMPONENTS, ZERO, Work, sum_works
from .bridge import Item, OpCounter, known_work, make_item, other_ops, show_components, unmet


@dataclass(frozen=True, slots=True)
class UnsettledModule:
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


def settle_module(module: UnsettledModule, counter: OpCounter) -> list[Item]:
    """The module's items, with items for the work that it lacks, component by component.

    A component that the counter counts in none of the ops that it met here, and would count in none of those that ran, has items
    of the trace's ops with a cause. The rest is in ops inside ``holder``, or a gap, which stays in the residual.
    """
    if not module.ran and module.holder is None:
        return _settle_without_trace(module, counter)
    counted = sum_works(item.counted * item.seen for item in module.items)
    missing, holder = module.missing, module.holder
    left_out = {name for name, count in missing.items() if count and not getattr(counted, name)}
    if "accumulators" in left_out and counted.mac and missing.mac:
        left_out.discard("accumulators")  # they go with the multiply-adds that are in question
    contested = {name for name in left_out if not holder and _is_contested(name, module, counter)}
    if contested:
        return [*module.items, _make_gap_item(module, missing, counter)]
    others = tuple(name for name in COMPONENTS if name not in left_out)
    kept = [replace(item, ran=_drop_components(item.ran, left_out), only=others) for item in module.items]
    kept += [item for op in module.ran for item in _make_left_out_items(op, left_out, counter, holder)]
    rest = _drop_components(missing, left_out)
    if rest and holder and (inside := _list_inside(module)):
        return [*module.items, *(_make_held_item(op, counter, holder) for op in inside)]
    return [*kept, _make_gap_item(module, rest, counter)] if rest else kept


def _settle_without_trace(module: UnsettledModule, counter: OpCounter) -> list[Item]:
    """The items of a module in which the trace has no op: what the counter counted there is a gap, no difference of formulas,
    and the work that it left out is not known to have run."""
    met = _make_gap_item(module, module.missing, counter)
    counted = [replace(item, ran=ZERO, gap=met.gap) for item in module.items if item.counted]
    left_out = [item for item in module.items if not item.counted]
    work = sum_works(item.ran * item.times for item in left_out)
    return [*counted, *left_out, *([replace(met, ran=ZERO - work)] if work else [])]


def _list_inside(module: UnsettledModule) -> list[Op]:
    """The ops that ran inside calls of which the counter met the call alone: those of the same name in the trace, or else what is
    left there once each op that it met is matched by work to one that ran. Empty where one matches none, or both are left."""
    opaque = {op.op for op in module.met if known_work(op) is None}
    met = Counter[Work]()
    for op in module.met:
        met[known_work(op) or ZERO] += op.calls
    inside: list[Op] = []
    for op in module.ran:
        work = known_work(op) or ZERO
        same = 0 if op.op in opaque else min(met[work], op.calls)
        met[work] -= same
        if work and same < op.calls:
            inside.append(op._replace(calls=op.calls - same))
    by_name = opaque.intersection(op.op for op in inside)
    is_other = by_name and not by_name.issuperset(op.op for op in inside)
    return [] if is_other or any(work and calls for work, calls in met.items()) else inside


def _make_held_item(op: Op, counter: OpCounter, holder: Op) -> Item:
    reason = counter.why_not(op) if op.op == holder.op else counter.inside(holder)
    return unmet(op, known_work(op) or ZERO, Cause.OP_NOT_COUNTED, reason)


def _is_contested(name: str, module: UnsettledModule, counter: OpCounter) -> bool:
    """Whether the rules cannot explain that the counter counts a component in none of the met ops: another amount of it ran
    than was met, or the rule of an op that ran includes it.

    The number of sums that the same products form does not matter: a long sum may be taken in parts, and an add puts each to
    the others.
    """
    missing = module.missing
    parts_added = name == "add" and missing.add == missing.accumulators < 0
    taken_in_parts = name == "accumulators" or parts_added or _may_end_early(module)
    if module.split and getattr(missing, name) < 0 and not missing.mac:
        taken_in_parts = True
    if getattr(missing, name) and (missing.mac or not taken_in_parts):
        return True
    return any(getattr(counter.includes(op), name) for op in module.ran)


def _may_end_early(module: UnsettledModule) -> bool:
    """Whether a checkpoint recomputes a recurrent layer that is one op in the trace and that the counter met step by step:
    PyTorch stops as soon as it needs nothing more, which leaves out some elementwise work of the last step."""
    met = {op.op for op in module.met}
    return any(op.phase == RECOMPUTATION and op.op not in met and (known_work(op) or ZERO).mac for op in module.ran)


def _make_gap_item(module: UnsettledModule, work: Work, counter: OpCounter) -> Item:
    parts = show_components(work)
    reason = f"the ops this counter saw and the work that ran differ by {parts}"
    if all(known_work(op) is not None for op in module.met):
        difference = f"{_describe_suspect(module, work)} (what ran less what it met: {parts})"
        reason = other_ops(counter.name, module.layer, difference)
    return make_item(None, None, layer=module.layer, ran=work, times=1, gap=reason)


def _describe_suspect(module: UnsettledModule, work: Work) -> str:
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


def _drop_components(work: Work, names: set[str]) -> Work:
    return work.only(name for name in COMPONENTS if name not in names)


def _make_left_out_items(op: Op, names: set[str], counter: OpCounter, holder: Op | None) -> list[Item]:
    """The components of a trace op that the counter leaves out, by its formula for the op or with the op that contains it."""
    work = _drop_components(known_work(op) or ZERO, set(COMPONENTS) - names)
    if not work:
        return []
    rule = None if holder else counter.rule(op)
    reason = counter.why_not(op) if rule is None else rule.formula
    if holder:
        reason = counter.inside(holder)
    cause = Cause.OP_NOT_COUNTED if rule is None else Cause.FORMULA_DIFFERS
    return [unmet(op, work, cause, reason, only=tuple(name for name in COMPONENTS if name in names))]
