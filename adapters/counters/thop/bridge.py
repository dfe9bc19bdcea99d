"""From a thop ledger to the PyTorch trace: a hooked module accounts for its own work that ran.

That work must equal our own formula for the module, with the calls and tensor shapes that thop saw (own.py).  Otherwise the
model ran other ops under thop than in the trace, and nothing can be booked.
"""

from __future__ import annotations

from dataclasses import replace

from ....core.causes import Cause
from ....core.records import ALIAS, Op, Sighting, Trace
from ....work import ZERO, Work
from ..bridge import Bridge, Item, View, known_work, make_item, other_ops, unknown_of, unmet
from ..rulebook import NotCounted, Rule, apply
from .own import of_sightings
from .rounding import float32_sum
from .rules import BOOK, FLOAT32

SUM = "(sum)"
"""The entry of what is lost or gained where the counts of all modules are added; it belongs to no module."""

CONTAINERS = ("torch.nn.modules.container.Sequential", "torch.nn.modules.container.ModuleList")


def bridge(view: View, trace: Trace) -> Bridge:
    """One item per hooked module and path; ops that ran elsewhere are booked one by one."""
    classes = {s.op.layer: s.op for s in view.sightings}
    hooked = {
        path for path, op in classes.items() if BOOK.find(op.op, view.versions) is not None and op.op not in CONTAINERS
    }
    inside: dict[str, list[Op]] = {}
    items: list[Item] = []
    for op in trace.ops:
        owner = _owner(op.layer, hooked)
        if owner is None or op.layer != owner:
            items.extend(_without_hook(op, classes, view, owner))
        else:
            inside.setdefault(owner, []).append(op)
    by_entry: dict[str, list[Sighting]] = {}
    for sighting in view.sightings:
        by_entry.setdefault(sighting.entry, []).append(sighting)
    sums: list[tuple[int, int]] = []
    for entry, sightings in by_entry.items():
        owner = sightings[0].op.layer
        if owner in hooked:
            own, others = _apart(sightings, inside.get(owner, []))
            items.append(_of_module(entry, sightings, own, view))
            items += [item for op in others for item in _in_hook(op, sightings[0])]
            addends = [(_macs(_counted(s, view)), s.op.calls * s.copies) for s in sightings]
            items += _rounded(entry, sightings[0].op, addends, view)
            sums.append((float32_sum(addends), 1))
    items += _rounded(SUM, Op(FLOAT32, FLOAT32, "", (), (), {}), sums, view)
    return Bridge(tuple(items))


def _counted(sighting: Sighting, view: View) -> Work:
    """What the rules count for one call of a module."""
    return apply(BOOK.find(sighting.op.op, view.versions), sighting.op, lambda op: "")[0]


def _macs(work: Work) -> int:
    """The number that thop's hook adds for this work."""
    return work.mac + work.add + work.mul + work.div + work.cmp + work.special


def _rounded(entry: str, of: Op, addends: list[tuple[int, int]], view: View) -> list[Item]:
    """What adding in float32 changes at one entry, in a release that does so; nothing if every sum is exact."""
    rule = BOOK.find(FLOAT32, view.versions)
    if rule is None:
        return []
    sighting = of._replace(
        id=entry, op=FLOAT32, inputs=(), outputs=(), attrs={"addends": [[*addend] for addend in addends if addend[0]]}
    )
    counted = rule.compute(sighting)
    if not counted:
        return []
    return [
        make_item(
            sighting, rule, layer=of.layer, op=of.op, counted=counted, seen=1, cause=Cause.FLOAT32_ROUNDING, entry=entry
        )
    ]


def _owner(path: str, hooked: set[str]) -> str | None:
    """The outermost hooked module around ``path``: thop does not look below one."""
    parts = path.split(".") if path else []
    for end in range(len(parts) + 1):
        prefix = ".".join(parts[:end])
        if prefix in hooked:
            return prefix
    return None


def _without_hook(op: Op, classes: dict[str, Op], view: View, owner: str | None) -> list[Item]:
    work = known_work(op)
    if not work:
        return []
    if owner is not None:
        cause, reason = Cause.CALL_NOT_SEEN, f"thop does not look inside of {classes[owner].op}"
    elif op.layer not in classes and "keras" not in view.versions:
        difference = f"{op.op} is in the trace, and this module was not called"
        gap = other_ops(view.counter, op.layer, difference)
        return [make_item(None, None, layer=op.layer, op=op.op, ran=work, times=op.calls, ops=(op.id,), gap=gap)]
    else:
        cause, reason = _why(classes.get(op.layer), view)
    return [unmet(op, work, cause, reason)]


def _in_hook(op: Op, of: Sighting) -> list[Item]:
    """The op of a hook that the model itself put on a module."""
    if of.role == ALIAS:
        return []
    reason = f"a functional call in a hook of {of.op.op}: thop hooks modules only"
    return [unmet(op, known_work(op) or ZERO, Cause.CALL_NOT_SEEN, reason)]


def _apart(sightings: list[Sighting], ops: list[Op]) -> tuple[list[Op], list[Op]]:
    """A module's own ops, and those of the hooks that the model itself put on it: the ops that the module does not need.

    All ops belong to the module if it has no hook, or if they cannot be told apart.
    """
    wanted, (ran, unknown) = of_sightings([s.op for s in sightings]), _sum(ops)
    if not sightings[0].op.attrs.get("hooks") or wanted is None or unknown:
        return ops, []
    own: list[Op] = list(ops)
    others: list[Op] = []
    for op in reversed(ops):
        left = ran - (known_work(op) or ZERO) * op.calls
        if ran != left and all(count >= 0 for _, count in (left - wanted).items()):
            own.remove(op)
            others.insert(0, op)
            ran = left
    return (own, others) if ran == wanted else (ops, [])


def _why(module: Op | None, view: View) -> tuple[Cause, str]:
    if module is None:
        return (
            Cause.CALL_NOT_SEEN,
            "no hook of thop was run there: it does not walk to the layers that one of Keras holds",
        )
    base = next((b for b in module.attrs["bases"] if BOOK.find(b, view.versions) is not None), None)
    if base is not None and base not in CONTAINERS:
        return Cause.CALL_NOT_SEEN, f"{module.op} is a subclass of {base}: thop matches exact classes"
    if module.op.startswith("torch.nn."):
        return Cause.OP_NOT_COUNTED, f"thop has no hook for {module.op}"
    return Cause.CALL_NOT_SEEN, f"a functional call in {module.op}.forward: thop hooks modules only"


def _of_module(entry: str, sightings: list[Sighting], ops: list[Op], view: View) -> Item:
    first = sightings[0]
    rule: Rule | None = None
    counted, missed = ZERO, None
    for sighting in sightings:
        rule = BOOK.find(sighting.op.op, view.versions)
        part, missed = apply(rule, sighting.op, lambda op: f"thop has no hook for {op.op}")
        counted = counted + part * sighting.op.calls
    ran, unknown = _sum(ops)
    alias = first.role == ALIAS
    if not first.copies and missed is None:
        missed = NotCounted(
            Cause.OP_NOT_COUNTED, "this release of thop adds up the children of the model, without the model"
        )
    gaps = unknown_of(ops)
    gap = (
        ""
        if alias
        else f"the work of {unknown} is unknown"
        if unknown
        else _contradiction(sightings, counted, ops, view)
    )
    item = make_item(
        None,
        rule,
        layer=first.op.layer,
        op=first.op.op,
        counted=counted,
        seen=0 if missed else first.copies,
        ran=ZERO if alias else ran,
        times=0 if alias else 1,
        cause=missed.cause if missed else None,
        repeat=Cause.RECOUNTED,
        entry=entry,
        ops=() if alias else tuple(op.id for op in ops),
        reason=missed.reason if missed else "",
        gap=gap,
        unknown=gaps,
    )
    return replace(item, sightings=tuple(s.op for s in sightings))


def _contradiction(sightings: list[Sighting], counted: Work, ops: list[Op], view: View) -> str:
    """The contradiction if a module did other work under thop than in the trace; '' if there is none."""
    (ran, _), unknown = _sum(ops), unknown_of(ops)
    own = of_sightings([s.op for s in sightings])
    if own is None and counted and not ops:
        return other_ops(view.counter, sightings[0].op.layer, f"{sightings[0].op.op} was called, and no op of it ran")
    if own is None or not any(count for name, count in (ran - own).items() if name not in unknown):
        return ""
    op = sightings[0].op
    shapes = ", ".join(f"{s.op.calls} x on {s.op.inputs[0].shape if s.op.inputs else 'no tensor'}" for s in sightings)
    parts = ", ".join(f"{name} {count:+,}" for name, count in (ran - own).items() if count)
    return other_ops(view.counter, op.layer, f"{op.op} was called {shapes} (what ran in the trace less that: {parts})")


def _sum(ops: list[Op]) -> tuple[Work, str]:
    total, unknown = ZERO, ""
    for op in ops:
        work = known_work(op)
        if work is None:
            unknown = op.op
        else:
            total = total + work * op.calls
    return total, unknown
