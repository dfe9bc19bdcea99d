"""Bridge from the ledger of a counter that counts calls of functions and of modules to the PyTorch trace.

The ledger has the calls, each of which feeds an entry, and the ops that ran under the counter, each with the calls around it.
The innermost call accounts for an op; a call around another one counts the same work again.  An op outside all calls is work
that the counter does not see.

The ops that ran under the counter have to be those of the trace, module by module: the same ops on the same shapes, or, for the
rest, others that do the same work, component by component.  If they are not, nothing is booked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from ....core.causes import Cause
from ....core.records import ALIAS, Op, Sighting, Tensor, Trace
from ....work import ZERO, is_integer_op
from ..bridge import (
    Bridge,
    Item,
    View,
    by_layer,
    known_work,
    make_item,
    other_ops,
    show_components,
    sum_of,
    unknown_gap,
    unknown_of,
    unmet,
)
from ..rulebook import RuleBook, apply

Key = tuple[str, tuple[Tensor, ...], tuple[Tensor, ...]]
"""An op's name and shapes, which two runs of a model have in common."""


@dataclass(frozen=True, slots=True)
class FunctionCalls:
    """How a counter counts calls.

    ``name`` is the counter's name in sentences.  ``book`` has a rule for every function and class that it counts.
    ``why_not`` says why it does not see an op outside all calls.
    """

    name: str
    book: RuleBook
    why_not: Callable[[Op], tuple[Cause, str]]


def bridge_calls(view: View, trace: Trace, calls: FunctionCalls) -> Bridge:
    """One item per call and the ops in it; ops outside all calls are booked one by one."""
    made = [s for s in view.sightings if s.entry and s.role != ALIAS]
    by_id = {s.op.id: s for s in made}
    met, ran = by_layer(s.op for s in view.sightings if not s.entry), by_layer(trace.ops)
    parts = {layer: _parts(met.get(layer, []), ran.get(layer, [])) for layer in dict.fromkeys([*ran, *met])}
    bridging = _Bridging(view, calls, by_id, _homes(parts, by_id))
    items = [item for layer in parts for item in bridging.of_layer(layer, parts[layer])]
    items += bridging.without_ops({op.id for item in items for op in item.sightings})
    items += [bridging.more(s, Cause.RECOUNTED) for s in view.sightings if s.role == ALIAS]  # at a second path
    return Bridge(tuple(items))


def of_weights_alone(op: Op) -> tuple[Cause, str]:
    """Why a counter that runs the nodes of a torch.fx graph does not see an op outside all of them."""
    return (
        Cause.CALL_NOT_SEEN,
        f"{op.op} reads weights alone: torch.fx computes it while it makes the graph, and keeps the result",
    )


@dataclass(slots=True)
class _Part:
    """Ops of one module that belong together: some call has all of them, or they do the work of others in the trace.

    ``changed`` is set if they are not the same ops as in the trace.
    """

    owners: dict[str, None]
    met: list[Op]
    ran: list[Op]
    changed: bool = False


@dataclass(frozen=True, slots=True)
class _Bridging:
    """A view, how its counter counts, its calls by id, and the module to whose ops each call is booked."""

    view: View
    counter: FunctionCalls
    calls: Mapping[str, Sighting]
    homes: Mapping[str, str]

    def of_layer(self, layer: str, parts: list[_Part]) -> list[Item]:
        items: list[Item] = []
        for part in parts:
            if part.owners:
                items += self._of_calls(layer, part)
            elif part.changed and sum_of(part.met) != sum_of(part.ran):
                gap = self._gap(layer, part)
                items.append(make_item(None, None, layer=layer, ran=sum_of(part.ran), times=1, gap=gap))
            else:
                items += [item for op in part.ran if (item := self._unseen(op)) is not None]
        return items

    def _unseen(self, op: Op) -> Item | None:
        work = known_work(op)
        if work is not None and not work and not unknown_of([op]):
            return None
        cause, reason = self.counter.why_not(op)
        return unmet(op, work or ZERO, cause, reason, gap=unknown_gap([op]))

    def _of_calls(self, layer: str, part: _Part) -> list[Item]:
        """An item of the calls that share the part, or one for each entry that they feed; the first has the ops.

        A call that is booked in another module counts nothing here: its ops here are what its formula lacks.
        """
        owners = [self.calls[id] for id in part.owners if self.homes[id] == layer]
        if not owners:
            return [self._elsewhere(layer, part)]
        first = [s for s in owners if s.entry == owners[0].entry]
        item = self._count_calls([s.op for s in first], owners[0].entry)
        calls = owners[0].op.calls
        times = _executions(part, calls) if len(owners) == 1 else 0
        if times and sum_of(part.ran).masked % times:  # some of the calls are causal
            times = 0
        if times and not part.changed:
            item = replace(
                self._count_calls([owners[0].op._replace(calls=1)], owners[0].entry),
                seen=calls,
                repeat=Cause.CALL_NOT_SEEN,
            )
        item = self._with_ops(item, layer, part, times if not part.changed else 0)
        others = [s for s in owners if s.entry != owners[0].entry]
        return [item, *(self.more(s, Cause.FORMULA_DIFFERS) for s in others)]

    def _elsewhere(self, layer: str, part: _Part) -> Item:
        """An item of the ops that a call has in a module that it holds."""
        op = self.calls[next(iter(part.owners))].op
        known = self.counter.book.of(op, self.view.versions) is not None
        reason = (
            f"it ran in a call of {op.op}, of which {self.counter.name} has {'one count' if known else 'no formula'}"
        )
        cause = None if known else Cause.OP_NOT_COUNTED
        item = make_item(op, None, layer=layer, met=(), seen=1, cause=cause, reason=reason)
        return self._with_ops(item, layer, part, 0)

    def _with_ops(self, item: Item, layer: str, part: _Part, times: int) -> Item:
        """The item with the ops that ran in its part, executed ``times`` times, or once in all if that is not known."""
        ran = sum_of(part.ran)
        gap = self._gap(layer, part) if part.changed and sum_of(part.met) != ran else ""
        return replace(
            item,
            ran=ran // times if times else ran,
            times=times or 1,
            ops=tuple(op.id for op in part.ran),
            gap=gap or unknown_gap(part.ran),
            unknown=unknown_of(part.ran),
        )

    def _count_calls(self, ops: list[Op], entry: str) -> Item:
        """An item of these calls, which ran nothing yet."""
        counted, missed, rule = ZERO, None, None
        for op in ops:
            rule = self.counter.book.of(op, self.view.versions)
            part, missed = apply(rule, op, lambda op: f"{self.counter.name} has no formula for {op.op}")
            counted = counted + part * op.calls
        cause = missed.cause if missed and not counted else None
        if counted and not missed and is_integer_op(ops[0]):
            cause = Cause.INTEGER_OP
        reason = missed.reason if missed else ""
        item = make_item(ops[0], rule, met=ops, counted=counted, seen=1, cause=cause, entry=entry, reason=reason)
        return replace(item, formula=reason) if missed and cause else item

    def more(self, sighting: Sighting, repeat: Cause) -> Item:
        """An item of a call that is counted and for which nothing more ran."""
        item = self._count_calls([sighting.op._replace(calls=1)], sighting.entry)
        return replace(item, seen=sighting.op.calls, repeat=repeat)

    def without_ops(self, booked: set[str]) -> list[Item]:
        """The calls in which no op ran that is theirs: those around another call count its work again."""
        around = {id for s in self.view.sightings for id in s.op.within[: None if s.entry else -1]}
        return [
            self.more(s, Cause.RECOUNTED if id in around else Cause.FORMULA_DIFFERS)
            for id, s in self.calls.items()
            if id not in booked
        ]

    def _gap(self, layer: str, part: _Part) -> str:
        if gap := unknown_gap((*part.met, *part.ran)):
            return gap
        parts = show_components(sum_of(part.ran) - sum_of(part.met))
        return other_ops(self.view.counter, layer, f"{_only(part)} (what ran less what it met: {parts})")


def _homes(parts: Mapping[str, list[_Part]], calls: Mapping[str, Sighting]) -> dict[str, str]:
    """For each call that has ops its own module if it has some there, else the first module in which it has some."""
    homes: dict[str, str] = {}
    for layer, of_layer in parts.items():
        for id in (id for part in of_layer for id in part.owners):
            if id not in homes or calls[id].op.layer == layer:
                homes[id] = layer
    return homes


def _parts(met: list[Op], ran: list[Op]) -> list[_Part]:
    """The ops of a module, taken apart into the smallest parts that share no call."""
    by_key: dict[Key, _Part] = {}
    for op in met:
        part = by_key.setdefault(_key(op), _Part({}, [], []))
        part.met.append(op)
        part.owners.update(dict.fromkeys(op.within[-1:]))
    for op in ran:
        by_key.setdefault(_key(op), _Part({}, [], [])).ran.append(op)
    parts: list[_Part] = []
    for part in by_key.values():
        part.changed = sum(op.calls for op in part.met) != sum(op.calls for op in part.ran)
        if part.changed and not any(known_work(op) != ZERO for op in (*part.met, *part.ran)):
            continue  # views and other moves
        joined = [p for p in parts if (p.changed and part.changed) or p.owners.keys() & part.owners.keys()]
        for other in joined:
            part.owners |= other.owners
            part.met, part.ran, part.changed = other.met + part.met, other.ran + part.ran, other.changed or part.changed
            parts.remove(other)
        parts.append(part)
    return parts


def _executions(part: _Part, calls: int) -> int:
    """How often the ops of one call ran in all, in the call and outside; 0 if they did not always run together."""
    times = set[int]()
    ran, inside = _by_key(part.ran), _by_key(op for op in part.met if op.within)
    for key, count in ran.items():
        whole, rest = divmod(count * calls, inside.get(key, 0) or count * calls + 1)
        times.add(0 if rest else whole)
    return times.pop() if len(times) == 1 else 0


def _by_key(ops: Iterable[Op]) -> dict[Key, int]:
    counts: dict[Key, int] = {}
    for op in ops:
        counts[_key(op)] = counts.get(_key(op), 0) + op.calls
    return counts


def _key(op: Op) -> Key:
    return op.op, op.inputs, op.outputs


def _only(part: _Part) -> str:
    """An op that only one of both runs has."""
    met, ran = _by_key(part.met), _by_key(part.ran)
    key, more = max(
        ((k, ran.get(k, 0) > met.get(k, 0)) for k in (*ran, *met) if ran.get(k) != met.get(k)), key=lambda k: k[1]
    )
    shapes = " x ".join(str(tensor.shape) for tensor in key[1])
    return f"{key[0]} {shapes} {'is in the trace' if more else 'is not in the trace, or less often'}"
