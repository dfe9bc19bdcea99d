"""Bridge from the ledger of a counter that hooks modules (thop and its fork, torchinfo, torchscan, torchstat) to the trace.

A hooked module accounts for its own work that ran.  That work must equal reconcile's formula for the module, with the calls and
tensor shapes that the counter saw (module_work.py).  Otherwise the model ran other ops under the counter than in the trace, and
nothing can be booked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ...core.causes import Cause
from ...core.records import ALIAS, ASIDE, DIRECT, IN_HOOK, PRE_HOOK, TANGENT, UNLISTED, WRAPPED, Op, Sighting, Trace
from ...work import ZERO, Work
from .bridge import (
    Bridge,
    Item,
    View,
    known_work,
    make_item,
    modules_around,
    other_ops,
    show_components,
    sum_of,
    unknown_gap,
    unknown_of,
    unmet,
)
from .module_work import of_sightings
from .rulebook import NotCounted, Rule, RuleBook, apply

TANGENT_WITHIN_CALL = (
    "a tangent of forward-mode differentiation: it is computed inside of the call of the module that hooks see"
)
ASIDE_OF = {
    PRE_HOOK: "a forward pre-hook of %s",
    UNLISTED: "a %s that is no module of the model's, such as one in a plain list",
    DIRECT: "%s.forward, which was not called as a module, so that no hook runs",
}
"""What an op ran in that ran aside of the forward of the module that was called; ``%s`` stands for whose it is."""
CONTAINERS = ("torch.nn.modules.container.Sequential", "torch.nn.modules.container.ModuleList")


@dataclass(frozen=True, slots=True)
class Hooks:
    """How a counter hooks modules.

    ``name`` is the counter's name in sentences.  ``book`` has a rule for every class that it hooks, by the class's full name,
    or a pattern that matches the records of the modules that it hooks.
    ``hides`` says whether it skips all modules below a hooked one, except ``containers``.
    ``without_copies`` is the reason why it leaves out a module that it has met and whose ``copies`` are 0.
    ``why_not`` gives the cause and the reason why it counts nothing of a module without a rule, for a counter that does not go by
    a list of classes.
    ``last`` says that each call of a module takes the place of the count of the one before; all of one module's are alike.
    """

    name: str
    book: RuleBook
    hides: bool = True
    containers: tuple[str, ...] = CONTAINERS
    without_copies: str = "it does not add the count of this module"
    why_not: Callable[[Op], tuple[Cause, str]] | None = None
    last: bool = False


def bridge_modules(view: View, trace: Trace, hooks: Hooks) -> Bridge:
    """One item per hooked module and path; ops that ran elsewhere are booked one by one."""
    return Bridge(tuple(_Modules(view, hooks).items(trace)))


@dataclass(frozen=True, slots=True)
class _Modules:
    """A view and its counter."""

    view: View
    hooks: Hooks

    def items(self, trace: Trace) -> list[Item]:
        classes = {s.op.layer: s.op for s in self.view.sightings}
        hooked = {
            path
            for path, op in classes.items()
            if op.op not in self.hooks.containers and self.hooks.book.of(op, self.view.versions) is not None
        }
        inside: dict[str, list[Op]] = {}
        items: list[Item] = []
        for op in trace.ops:
            owner = self._owner(op.layer, hooked)
            if op.attrs.get(TANGENT) and op.layer in classes:
                items.append(unmet(op, known_work(op) or ZERO, Cause.CALL_NOT_SEEN, TANGENT_WITHIN_CALL))
            elif owner is None or op.layer != owner:
                items += self._without_hook(op, classes, owner)
            else:
                inside.setdefault(owner, []).append(op)
        by_entry: dict[str, list[Sighting]] = {}
        for sighting in self.view.sightings:
            by_entry.setdefault(sighting.entry, []).append(sighting)
        for entry, sightings in by_entry.items():
            owner = sightings[0].op.layer
            if owner in hooked:
                own, others = _apart(sightings, inside.get(owner, []))
                item = self._of_module(entry, sightings, own)
                items.append(_of_last(item, sightings[0].op) if self.hooks.last else item)
                items += [item for op in others for item in _in_hook(op, sightings[0], self.hooks.name)]
        return items

    def _owner(self, path: str, hooked: set[str]) -> str | None:
        """The outermost hooked module around ``path`` if the counter does not look below one; else the module, if hooked."""
        if not self.hooks.hides:
            return path if path in hooked else None
        return next((around for around in reversed(modules_around(path)) if around in hooked), None)

    def _without_hook(self, op: Op, classes: dict[str, Op], owner: str | None) -> list[Item]:
        work = known_work(op)
        if not work:
            return []
        if owner is not None:
            cause, reason = Cause.CALL_NOT_SEEN, f"{self.hooks.name} does not look inside of {classes[owner].op}"
        elif op.layer not in classes and "keras" not in self.view.versions:
            difference = f"{op.op} is in the trace, and this module was not called"
            gap = other_ops(self.view.counter, op.layer, difference)
            return [make_item(op, None, met=(), ran=work, times=op.calls, ops=(op.id,), gap=gap)]
        else:
            cause, reason = self._why(op, classes.get(op.layer))
        return [unmet(op, work, cause, reason)]

    def _why(self, op: Op, module: Op | None) -> tuple[Cause, str]:
        name = self.hooks.name
        if ASIDE in op.attrs:
            kind, whose = op.attrs[ASIDE]
            return (
                Cause.CALL_NOT_SEEN,
                f"it ran in {ASIDE_OF[kind] % (whose or 'the model')}: {name} hooks modules only",
            )
        if module is None:
            return (
                Cause.CALL_NOT_SEEN,
                f"no hook of {name} was run there: it does not walk to the layers that one of Keras holds",
            )
        if self.hooks.why_not is not None:
            return self.hooks.why_not(module)
        find = self.hooks.book.find
        base = next((b for b in module.attrs["bases"] if find(b, self.view.versions) is not None), None)
        if base is not None and base not in self.hooks.containers:
            return Cause.CALL_NOT_SEEN, f"{module.op} is a subclass of {base}: {name} matches exact classes"
        if module.attrs.get("own_forward"):
            return Cause.CALL_NOT_SEEN, f"a functional call in {_own_forward(module)}: {name} hooks modules only"
        if module.op.startswith("torch.nn."):
            return Cause.OP_NOT_COUNTED, f"{name} has no hook for {module.op}"
        return Cause.CALL_NOT_SEEN, f"a functional call in {module.op}.forward: {name} hooks modules only"

    def _of_module(self, entry: str, sightings: list[Sighting], ops: list[Op]) -> Item:
        first = sightings[0]
        rule: Rule | None = None
        counted, missed = ZERO, None
        for sighting in sightings:
            rule = self.hooks.book.of(sighting.op, self.view.versions)
            part, missed = apply(rule, sighting.op, lambda op: f"{self.hooks.name} has no hook for {op.op}")
            counted = counted + part * sighting.op.calls
        alias = first.role == ALIAS
        idle = bool(counted) and not alias and not ops  # it counts a call in which nothing runs
        if not first.copies and missed is None:
            missed = NotCounted(Cause.OP_NOT_COUNTED, self.hooks.without_copies)
        gap = "" if alias else unknown_gap(ops) or _contradiction(sightings, counted, ops, self.view.counter)
        return make_item(
            first.op,
            rule,
            met=(s.op for s in sightings),
            counted=counted,
            seen=0 if missed else first.copies,
            ran=ZERO if alias else sum_of(ops),
            times=0 if alias or idle else 1,
            cause=missed.cause if missed else None,
            repeat=Cause.FORMULA_DIFFERS if idle else Cause.RECOUNTED,
            entry=entry,
            ops=() if alias else tuple(op.id for op in ops),
            reason=missed.reason if missed else "",
            gap=gap,
            unknown=unknown_of(ops),
        )


def _of_last(item: Item, op: Op) -> Item:
    """The item of a module whose calls are alike, and of which the counter has the last."""
    if item.gap or item.cause or op.calls == 1:
        return item
    ran = item.ran // op.calls
    gap = "" if ran * op.calls == item.ran else f"what ran in {op.op} does not divide by its {op.calls} calls"
    return replace(
        item,
        counted=item.counted // op.calls,
        ran=ran,
        times=item.times * op.calls,
        repeat=item.repeat if not item.times else Cause.LOOP_COUNTED_ONCE,
        sightings=(op._replace(calls=1),),
        gap=gap,
    )


def _in_hook(op: Op, of: Sighting, name: str) -> list[Item]:
    """The op of a hook that the model itself put on a module, of the class of its weight, or of a forward of its own."""
    if of.role == ALIAS:
        return []
    attrs = {} if op.attrs.get(IN_HOOK) else of.op.attrs
    whose = f"a hook of {of.op.op}"
    if attrs.get(WRAPPED):
        whose = f"{attrs[WRAPPED]}, the class of its weight"
    elif attrs.get("own_forward"):
        whose = _own_forward(of.op)
    reason = f"a functional call in {whose}: {name} hooks modules only"
    return [unmet(op, known_work(op) or ZERO, Cause.CALL_NOT_SEEN, reason)]


def _own_forward(module: Op) -> str:
    return f"the forward that this {module.op} got in place of its class's"


def _apart(sightings: list[Sighting], ops: list[Op]) -> tuple[list[Op], list[Op]]:
    """A module's own ops, and those of the hooks that the model itself put on it, of the class of its weight, or of a forward in
    place of its class's.

    If the trace does not say which those are, they are the ops that the module does not need; all ops belong to the module if it
    has none of the three, or if they cannot be told apart.
    """
    in_hook = [op for op in ops if op.attrs.get(IN_HOOK)]
    ops = [op for op in ops if not op.attrs.get(IN_HOOK)]
    wanted, attrs = of_sightings([s.op for s in sightings]), sightings[0].op.attrs
    others = (
        attrs.get(WRAPPED) or attrs.get("own_forward") or (attrs.get("hooks") and not in_hook)
    )  # before PyTorch 2.0
    if not others or wanted is None or unknown_gap(ops):
        return ops, in_hook
    parts = [op for op in ops if _less(wanted, op) is not None]
    own = _find_ops_of_work(wanted, parts) if len(parts) <= MANY else None
    if own is None:
        return ops, in_hook
    return own, in_hook + [op for op in ops if op not in own]


MANY = 16
"""The most candidate ops of a module among which the bridge looks for the module's own."""


def _less(wanted: Work, op: Op) -> Work | None:
    """This work less that of the op; None if the op does more of anything."""
    left = wanted - (known_work(op) or ZERO) * op.calls
    return left if all(count >= 0 for _, count in left.items()) else None


def _find_ops_of_work(wanted: Work, ops: list[Op]) -> list[Op] | None:
    """Those of the ops, all calls of each, whose work adds up to this; None if none do."""
    if not wanted:
        return []
    for at, op in enumerate(ops):
        left = _less(wanted, op)
        rest = _find_ops_of_work(left, ops[at + 1 :]) if left is not None and known_work(op) else None
        if rest is not None:
            return [op, *rest]
    return None


def _contradiction(sightings: list[Sighting], counted: Work, ops: list[Op], counter: str) -> str:
    """The contradiction if a module did other work under the counter than in the trace; '' if there is none."""
    if sightings[0].op.attrs.get("own_forward"):  # not the work of its class
        return ""
    ran, unknown = sum_of(ops), unknown_of(ops)
    own = of_sightings([s.op for s in sightings])
    if own is None and counted and not ops:
        return other_ops(counter, sightings[0].op.layer, f"{sightings[0].op.op} was called, and no op of it ran")
    if own is None or not any(count for name, count in (ran - own).items() if name not in unknown):
        return ""
    op = sightings[0].op
    shapes = ", ".join(f"{s.op.calls} x on {s.op.inputs[0].shape if s.op.inputs else 'no tensor'}" for s in sightings)
    parts = show_components(ran - own)
    return other_ops(counter, op.layer, f"{op.op} was called {shapes} (what ran in the trace less that: {parts})")
