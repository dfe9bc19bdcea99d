"""From a thop ledger to the PyTorch trace: a hooked module answers for all work that ran inside it."""

from __future__ import annotations

from dataclasses import replace

from ...causes import Cause
from ...records import ALIAS, Op, Sighting, Trace
from ...work import ZERO, Work
from ..bridge import Bridge, Item, View, known_work, make_item
from ..rulebook import Rule, apply
from .rules import BOOK

CONTAINERS = ("torch.nn.modules.container.Sequential", "torch.nn.modules.container.ModuleList")


def bridge(view: View, trace: Trace) -> Bridge:
    """One item per hooked module and path; what ran in modules without a hook is booked op by op."""
    classes = {s.op.layer: s.op for s in view.sightings}
    hooked = {
        path for path, op in classes.items() if BOOK.find(op.op, view.versions) is not None and op.op not in CONTAINERS
    }
    inside: dict[str, list[Op]] = {}
    items: list[Item] = []
    for op in trace.ops:
        owner = _owner(op.layer, hooked)
        if owner is None:
            items.extend(_without_hook(op, classes, view))
        else:
            inside.setdefault(owner, []).append(op)
    by_entry: dict[str, list[Sighting]] = {}
    for sighting in view.sightings:
        by_entry.setdefault(sighting.entry, []).append(sighting)
    for entry, sightings in by_entry.items():
        owner = sightings[0].op.layer
        if owner in hooked:
            items.append(_of_module(entry, sightings, inside.get(owner, []), view))
    return Bridge(tuple(items))


def _owner(path: str, hooked: set[str]) -> str | None:
    """The outermost hooked module around ``path``: thop does not look below one."""
    parts = path.split(".") if path else []
    for end in range(len(parts) + 1):
        prefix = ".".join(parts[:end])
        if prefix in hooked:
            return prefix
    return None


def _without_hook(op: Op, classes: dict[str, Op], view: View) -> list[Item]:
    work = known_work(op)
    if not work:
        return []
    cause, reason = _why(classes.get(op.layer), view)
    return [
        make_item(
            None, None, layer=op.layer, op=op.op, ran=work, times=op.calls, cause=cause, ops=(op.id,), reason=reason
        )
    ]


def _why(module: Op | None, view: View) -> tuple[Cause, str]:
    if module is None:
        return (
            Cause.CALL_NOT_SEEN,
            "no hook of thop was run there: it does not walk to this module, or the call went past its hooks",
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
        gap=f"the work of {unknown} is unknown" if unknown and not alias else "",
    )
    return replace(item, sightings=tuple(s.op for s in sightings))


def _sum(ops: list[Op]) -> tuple[Work, str]:
    total, unknown = ZERO, ""
    for op in ops:
        work = known_work(op)
        if work is None:
            unknown = op.op
        else:
            total = total + work * op.calls
    return total, unknown
