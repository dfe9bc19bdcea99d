"""Bridge from the ledger of a counter of graph nodes (tf.profiler, ONNX counters) to the trace: node by node, matched by name.

Two nodes with the same name are the same node only if they do the same work in one run, as far as the counter's graph has
shapes, and if the node ran once (in a static graph) or as often as in the trace.
"""

from __future__ import annotations

from dataclasses import replace

from ...core.causes import Cause
from ...core.records import DEAD, DUPLICATE, INITIALIZER, RUN_STATS_TRUNCATED, UNENTERED, Op, Sighting, Trace
from ...work import ZERO, Work, is_integer_op, sum_works
from .bridge import Bridge, Item, View, known_work, make_item, other_ops, unknown_of, unmet
from .rulebook import NotCounted, Rule, RuleBook, WhyNot, apply

NOT_ITS_BODY = "the graph holds the call %s, not its body"
BY_ROLE = {DEAD: Cause.DEAD_OP, INITIALIZER: Cause.INITIALIZER, DUPLICATE: Cause.DUPLICATE_GRAPH}


def bridge_nodes(view: View, trace: Trace, book: RuleBook, why_not: WhyNot, *, one_file: bool = False) -> Bridge:
    """Items for every node that the counter had in its graph, and for live work in bodies that it did not enter; ``why_not`` says
    why a node without a rule is not counted. If the counter and the trace read ``one_file``, whose nodes never ran, a node with
    other shapes is still the same one: the counter inferred them wrongly, and its rule has counted with them."""
    ran = {op.id: op for op in trace.ops}
    chosen = _choose_branches(view, trace)
    untaken = {*trace.untaken, *(id for id, call in chosen.items() if call is None)}
    repeat = Cause.RUN_STATS_TRUNCATED if RUN_STATS_TRUNCATED in view.notes else None
    items: list[Item] = []
    present: set[str] = set()
    for sighting in view.sightings:
        id = sighting.op.id
        present.add(id)
        rule = book.of(sighting.op, view.versions)
        counted, missed = apply(rule, sighting.op, why_not)
        op = ran.get(id)
        if op is not None and UNENTERED in op.attrs and not counted:  # its work is a user's
            missed = NotCounted(Cause.BODY_NOT_ENTERED, NOT_ITS_BODY % id)
        if op is not None and not is_integer_op(op):
            item = _of_op(sighting, rule, counted, missed, op, repeat)
            items.append(item if item.gap else replace(item, gap=_contradiction(sighting, op, view, repeat, one_file)))
        elif counted and (call := chosen.get(id)):
            items.append(replace(_of_op(sighting, rule, counted, missed, sighting.op, None), layer=call.layer, ops=()))
        elif counted:
            cause = _never_ran(sighting, untaken)
            gap = "" if cause else f"{id} is counted, but did not run"
            seen = sighting.op.calls
            items.append(
                make_item(sighting.op, rule, counted=counted, seen=seen, cause=cause, entry=sighting.entry, gap=gap)
            )
        elif missed and op is None and _never_ran(sighting, untaken) is None:
            items += _lost_node_items(sighting, missed, view)
    for op in trace.ops:
        if op.id not in present and op not in chosen.values() and not is_integer_op(op):
            items.extend(_unseen(op, present))
    return Bridge(tuple(items))


def _choose_branches(view: View, trace: Trace) -> dict[str, Op | None]:
    """The nodes in branches of calls that were not entered: the branch that does the work which a formula gives of its call ran,
    and its nodes have the call here; those of the others did not. Calls of which no branch does that are left out."""
    found: dict[str, Op | None] = {}
    for call in (op for op in trace.ops if UNENTERED in op.attrs):
        nodes = [met.op for met in view.sightings if met.op.id.startswith(f"{call.id}/")]
        roles = {op.id: op.id.removeprefix(f"{call.id}/").partition("/")[0] for op in nodes}
        works = {
            role: sum_works(known_work(op) or ZERO for op in nodes if roles[op.id] == role) for role in roles.values()
        }
        taken = next((role for role, work in works.items() if work == known_work(call)), None)
        found |= {id: call if role == taken else None for id, role in roles.items()} if taken else {}
    return found


def _never_ran(sighting: Sighting, untaken: set[str]) -> Cause | None:
    """The reason why a counted node is not work of the trace: the first cause in booking order."""
    if sighting.role in BY_ROLE:
        return BY_ROLE[sighting.role]
    if sighting.op.id in untaken:
        return Cause.UNTAKEN_BRANCH
    return Cause.INTEGER_OP if is_integer_op(sighting.op) else None


def _of_op(
    sighting: Sighting, rule: Rule | None, counted: Work, missed: NotCounted | None, op: Op, repeat: Cause | None
) -> Item:
    work = known_work(op)
    return make_item(
        sighting.op,
        rule,
        layer=op.layer,
        op=op.op,
        counted=counted,
        seen=0 if missed else sighting.op.calls,
        ran=work or ZERO,
        times=op.calls,
        cause=missed.cause if missed else None,
        repeat=repeat,
        entry=sighting.entry,
        ops=(op.id,),
        reason=missed.reason if missed else "",
        gap="" if work is not None or missed else f"the work of {op.id} is unknown",
        unknown=unknown_of([op]),
    )


def _lost_node_items(sighting: Sighting, missed: NotCounted, view: View) -> list[Item]:
    """A node that outputs depend on and that the counter left out: its work is in neither total, and it is unknown
    why the trace lacks it."""
    op, work = sighting.op, known_work(sighting.op)
    if not work:
        return []
    gap = other_ops(view.counter, op.layer, f"{op.op} {op.id} is not in the trace")
    left_out = make_item(op, None, ran=work, times=op.calls, cause=missed.cause, reason=missed.reason)
    return [left_out, make_item(op, None, met=(), ran=ZERO - work, times=op.calls, gap=gap)]


def _contradiction(sighting: Sighting, ran: Op, view: View, repeat: Cause | None, one_file: bool) -> str:
    """The contradiction if the nodes of the counter and the trace differ, or ran a different number of times; '' if none."""
    met = sighting.op
    if sighting.role in BY_ROLE:
        return other_ops(view.counter, ran.layer, f"{ran.id} ran, but in the counter's graph it is {sighting.role}")
    work = known_work(met)
    is_body = UNENTERED in ran.attrs  # which the node itself is not
    same = one_file or ((is_body or work in (None, known_work(ran))) and _fit(met, ran))
    if met.op != ran.op or not same:
        shapes = " and ".join(f"{op.op} of {', '.join(str(t.shape) for t in op.inputs)}" for op in (met, ran))
        return other_ops(view.counter, ran.layer, f"{ran.id} is {shapes} in the trace")
    if met.calls not in (1, ran.calls) and repeat is None:
        return other_ops(view.counter, ran.layer, f"{ran.id} ran {met.calls:,} x, and {ran.calls:,} x in the trace")
    return ""


def _fit(met: Op, ran: Op) -> bool:
    """Whether the shapes of two nodes of one kind can be the same, where the counter's graph knows them in part."""
    pairs = [(a.shape, b.shape) for a, b in zip(met.inputs, ran.inputs, strict=False)]
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    return all(
        len(a) == len(b) and all(None in sizes or len(set(sizes)) == 1 for sizes in zip(a, b, strict=True))
        for a, b in known
    )


def _unseen(op: Op, present: set[str]) -> list[Item]:
    """Live work whose node is not in the counter's graph: it is in the body of a call that is."""
    work = known_work(op)
    if not work:
        return []
    call = next((c for c in op.within if c in present), None)
    if call is None:
        return [unmet(op, work, None, "", gap=f"{op.id} ran, but is not in the counter's graph")]
    return [unmet(op, work, Cause.BODY_NOT_ENTERED, NOT_ITS_BODY % call)]
