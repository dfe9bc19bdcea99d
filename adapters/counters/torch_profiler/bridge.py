"""Bridge from a torch.profiler ledger to the PyTorch trace: each dispatched op beside the event of its name and shapes.

An event lacks its outputs and settings, so they are taken from the ops of a second call; the counter met such an op only if the
profiler has an event of its name and shapes in the same module. Events are nested (aten::linear runs aten::addmm), and an op is
at one level of them: it is looked for from the outermost events inwards. It takes everything that is counted in its event, and in
the events around it that are not such ops (aten::conv2d, which runs aten::convolution). Ops of a program's own step come with
their events (nested.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial

from ....core.records import Op, Shape, Sighting, Tensor, Trace
from ....work import ZERO, sum_works
from ..bridge import Bridge, Item, View, known_work, make_item, other_ops
from ..op_bridge import bridge_ops
from ..rulebook import RuleBook
from . import EVENTS
from .rules import BOOK, as_event, counts

WHOLE_EVENT = "whole event"
"""Attribute of an op that is a part of one counted event, beside others: [the event's id, its name, its calls]."""
EVENT = "event"
"""Attribute of an op: the name of its event, which may be in place."""
POOL = "aten::max_pool1d"
"""On the CPU one kernel without gradients (ATen native/MaxPooling.cpp); under a dispatch mode a pool of images of height 1."""


@dataclass(frozen=True, slots=True)
class Reader:
    """Who adds up the events: its rules by their names, which events it ``counts``, and whether those that lie in a counted one
    are left out. ``lacks`` names the op that it has no formula for."""

    book: RuleBook
    counts: Callable[[Op], bool]
    lacks: str
    outermost: bool = False

    def why_not(self, op: Op) -> str:
        return self.lacks.format(op.attrs.get(EVENT, op.op))


@dataclass(slots=True)
class _Event:
    """An event and those within it; ``op.calls`` are all calls."""

    op: Op
    entry: str
    inner: list[_Event] = field(default_factory=list)

    def counted_ops(self, reader: Reader) -> list[Op]:
        """Every event that is counted, this one first."""
        own = [self.op] if reader.counts(self.op) else []
        if own and reader.outermost:
            return own
        return own + [op for event in self.inner for op in event.counted_ops(reader)]


def bridge_events(view: View, trace: Trace, reader: Reader) -> Bridge:
    """Items for every dispatched op that has an event, with all that is counted in it, and for counted events without an op."""
    events = [s for s in view.sightings if _is_event(s.op)]
    ready = [s for s in view.sightings if EVENTS in s.op.attrs]
    left = _Left(s.op for s in view.sightings if not _is_event(s.op) and EVENTS not in s.op.attrs)
    matching = _Matching(left, reader)
    for event in _outermost(events):
        matching.match(event)
    met = replace(view, sightings=(*ready, *matching.sightings))
    items = bridge_ops(met, trace, reader.book, reader.why_not).items
    return Bridge((*_together(items), *(_without_op(op, entry, view, reader) for op, entry in matching.lost)))


bridge = partial(bridge_events, reader=Reader(BOOK, counts, "torch.profiler has no formula for {}"))


def _is_event(op: Op) -> bool:
    return "has_list" in op.attrs


def _without_op(op: Op, entry: str, view: View, reader: Reader) -> Item:
    """A counted event that is not a dispatched op, and not around or within one."""
    rule = reader.book.find(op.op, view.versions)
    shapes = " x ".join(str(t.shape) for t in op.inputs)
    gap = other_ops(view.counter, op.layer, f"{op.op} {shapes} ran less often without the profiler")
    counted = rule.compute(op) if rule is not None else ZERO
    return make_item(op, rule, counted=counted, seen=op.calls, entry=entry, gap=gap)


class _Left:
    """Dispatched ops by module and name, with the number of calls that no event has taken yet."""

    def __init__(self, ops: Iterable[Op]) -> None:
        self._calls: dict[tuple[str, str], list[list[Op]]] = {}
        for op in ops:
            self._calls.setdefault((op.layer, op.op), []).append([op])

    def take(self, event: Op) -> list[Op]:
        """Ops of the event's name and shapes, together as many calls as it has; none if there are fewer."""
        name, event = event.op, _as_traced(event)
        same = [slot for slot in self._calls.get((event.layer, event.op), ()) if _same(event, slot[0])]
        taken: list[tuple[list[Op], Op]] = []
        wanted = event.calls
        for slot in same:
            calls = min(wanted, slot[0].calls)
            if calls:
                taken.append((slot, slot[0]._replace(calls=calls)))
                wanted -= calls
        if wanted:
            return []
        for slot, op in taken:
            slot[0] = slot[0]._replace(calls=slot[0].calls - op.calls)
        return [op._replace(attrs={**op.attrs, EVENT: name}) for _, op in taken]


def _outermost(sightings: Iterable[Sighting]) -> list[_Event]:
    events: dict[str, _Event] = {}
    outermost: list[_Event] = []
    for sighting in sightings:
        event = events[sighting.op.id] = _Event(sighting.op, sighting.entry)
        (events[sighting.op.within[-1]].inner if sighting.op.within else outermost).append(event)
    return outermost


class _Matching:
    """Sightings of ops with what is counted in each, and the counted events that are in none.

    ``_around`` are counted events around the present one that are no dispatched op: the first op with work takes them.
    """

    def __init__(self, left: _Left, reader: Reader) -> None:
        self.sightings: list[Sighting] = []
        self.lost: list[tuple[Op, str]] = []
        self._left = left
        self._reader = reader
        self._around: list[Op] = []

    def match(self, event: _Event, inside: bool = False) -> None:
        """Find the ops that this event is, or that those within it are. ``inside`` says that a counted event around it leaves out
        what lies within."""
        ops, calls = self._left.take(event.op), event.op.calls
        if ops:
            counted = [] if inside else event.counted_ops(self._reader)
            if any(map(known_work, ops)):
                counted = [*(op for op in self._around if op.calls == calls), *counted]
                self._around = [op for op in self._around if op.calls != calls]
            self.sightings += [Sighting(_with(op, counted, calls), event.entry) for op in ops]
            return
        own = not inside and self._reader.counts(event.op)
        if own:
            self._around.append(event.op)
        before = len(self.sightings)
        for inner in event.inner:
            self.match(inner, inside or (own and self._reader.outermost))
        if own and event.op in self._around:
            self._around.remove(event.op)
            self.lost.append((event.op, event.entry))
        elif own and self._reader.outermost:
            of = {WHOLE_EVENT: [event.op.id, event.op.op, calls]}
            parts = (s._replace(op=s.op._replace(attrs={**s.op.attrs, **of})) for s in self.sightings[before:])
            self.sightings[before:] = parts


def _together(items: Iterable[Item]) -> list[Item]:
    """The items, but one of all ops that are parts of one counted event: what is counted for it is counted for all of them."""
    kept: list[Item] = []
    parts: dict[str, list[Item]] = {}
    for item in items:
        of = item.sightings[0].attrs.get(WHOLE_EVENT) if item.sightings else None
        if of is None or item.gap:
            kept.append(item)
        else:
            parts.setdefault(repr((of, item.only)), []).append(item)
    for alike in parts.values():
        kept += _whole(alike)
    return kept


def _whole(parts: list[Item]) -> list[Item]:
    """One item of an event whose parts these are, if one of them has all that is counted of it; else as they are."""
    first = next((item for item in parts if item.counted), parts[0])
    _, name, calls = first.sightings[0].attrs[WHOLE_EVENT]
    if first.seen != calls or any(item.times % calls for item in parts):
        return parts
    whole = replace(
        first,
        op=name,
        ran=sum_works(item.ran * (item.times // calls) for item in parts),
        times=calls,
        sightings=tuple(item.sightings[0]._replace(calls=item.times // calls) for item in parts),
        unknown=frozenset[str]().union(*(item.unknown for item in parts)),
    )
    return [whole]


def _with(op: Op, counted: list[Op], calls: int) -> Op:
    """The op with the events that are counted in each of its calls."""
    events = [as_event(inner._replace(calls=inner.calls // calls)) for inner in counted]
    return op._replace(attrs={**op.attrs, EVENTS: events})


def _as_traced(event: Op) -> Op:
    """The event by the name that a trace has for it."""
    if event.op != POOL:
        return event._replace(op=_aten(event.op))
    inputs = tuple(t._replace(shape=(*t.shape[:-1], 1, t.shape[-1])) for t in event.inputs if t.shape)
    return event._replace(op="aten.max_pool2d_with_indices", inputs=inputs)


def _aten(name: str) -> str:
    """``aten.add`` for ``aten::add_``."""
    name = name.replace("::", ".")
    return name[:-1] if name.endswith("_") and not name.endswith("__") else name


def _same(event: Op, op: Op) -> bool:
    """Whether an op is on tensors of the event's shapes; those of a list of tensors and of numbers are not recorded there."""
    shapes, of_op = _shapes(event.inputs), _shapes(op.inputs)
    if not event.attrs["has_list"]:
        return shapes == of_op
    rest = iter(of_op)
    return all(shape in rest for shape in shapes)


def _shapes(tensors: tuple[Tensor, ...]) -> list[Shape]:
    return [t.shape for t in tensors if t.shape]
