"""Ledger of torch.profiler in a program's own step (``reconcile.count``), from the very execution that the trace records.

The recorder passes each op on, so that the profiler has an event for the op and, within a marker event of reconcile, another one
for the same op.  The second is the recorder's and counts nothing; all that is within it is the op's.  The marker has the number
of the op, so no event has to be assigned to an op by shapes, as in a single call (bridge.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch
from torch.autograd.profiler import profile

from ....core.records import FLOP, Entry, Ledger, Op, Sighting, Tensor
from ..call_pools import call_key, draw_calls, join_phases
from ..step_counter import StepCounter
from . import COUNTERS, EVENTS, FORMULAS
from .capture import Node

MARK = "reconcile:"
"""Start of the name of an event that stands for a dispatched op; its number follows."""
LEFT = MARK + "left"
"""The event of an op that is not part of the step."""
PROGRAM_HAS_A_PROFILER = (
    "the program has a torch.profiler of its own, and only one runs at a time: leave it out of this step"
)
TWO_CONTEXTS_RECORD = "two contexts of reconcile record the step, and the profiler would count each op for each of them"
OTHERS_HAVE_PARTS = "other processes have parts of its tensors, and the profiler sees the part of this one"
MODE = "PythonDispatchMode"
"""The event between an op and what a recorder of dispatched ops runs for it."""
SUMS_BY_ADD = (
    "while a step is recorded, PyTorch sums some gradients and biases by aten::add, which the profiler counts; alone it may run "
    "aten::add_ there, of which the profiler counts nothing"
)
"""Note of every ledger (PyTorch asks isTensorSubclassLike: InputBuffer::accumulate, linear)."""
PREPARE = "_prepare_trace"
"""The method of a profiler that claims the place of the one that runs."""


class Nested(StepCounter):
    """The profiler of a step. ``ops`` are the records of the dispatched ops by number."""

    def __init__(self, recorder: Any) -> None:
        self.recorder = recorder
        self.ops: dict[int, Op] = {}
        self._profiler: Any = None
        self._on = False  # whether it runs
        self._number = 0
        self._pending = 0
        self._mark = torch._C._profiler._RecordFunctionFast

    def saw(self, _func: Any, _args: Any, _kwargs: Any, out: Any) -> None:
        """An op ran and was recorded. What other processes have a part of is told whole: it is not what was passed on."""
        if self._pending != id(out):
            self.withhold(OTHERS_HAVE_PARTS)
        self.ops[self._number] = self.recorder.latest

    def within(self) -> None:
        """Another context is entered in the step."""
        self.withhold(TWO_CONTEXTS_RECORD)
        self.leave()

    def enter(self, others: bool) -> None:
        """The step begins: the profiler starts, unless another context or the program itself has one."""
        if others:
            self.withhold(TWO_CONTEXTS_RECORD)
        elif torch.autograd._profiler_enabled():
            self.withhold(PROGRAM_HAS_A_PROFILER)
        else:
            cpu = [torch.profiler.ProfilerActivity.CPU]
            self._profiler = torch.profiler.profile(activities=cpu, with_flops=True, record_shapes=True)
            self._profiler.__enter__()
            self._given = getattr(profile, PREPARE)
            setattr(profile, PREPARE, self._wrap_prepare(self._given))
            self.recorder.around = self._around
            self._on = True

    def _wrap_prepare(self, prepare: Any) -> Any:
        def prepare_profiler(profiler: Any) -> Any:
            self.withhold(PROGRAM_HAS_A_PROFILER)
            self.leave()
            return prepare(profiler)

        return prepare_profiler

    def leave(self) -> None:
        """The step is done, or the profiler gives way."""
        if self._on:
            self._on = False
            if self.recorder.around == self._around:  # another counter may stand around it
                self.recorder.around = None
            setattr(profile, PREPARE, self._given)
            self._profiler.__exit__(None, None, None)

    def _around(self, func: Any, args: Any, kwargs: Any) -> Any:
        name = LEFT
        if not self.recorder.paused:
            self._number += 1
            name = MARK + str(self._number)
        with self._mark(name):
            out = func(*args, **kwargs)
        self._pending = id(out)
        return out

    def ledger(self, recorder: Any, device: str, versions: dict[str, str]) -> Ledger:
        """The ledger of the step. Raises BeyondCounter where the profiler was not the only one, or did not see all of it."""
        if self.failed is not None:
            raise self.failed
        found = Counted()
        for event in self._profiler.events():
            if event.cpu_parent is None:
                found.add(event)
        entries, sightings = self._beside(found, join_phases(list(recorder.ops.values())), recorder.renamed)
        total = sum(entry.value for entry in entries)
        name, notes = COUNTERS[0].name, (SUMS_BY_ADD,)
        return Ledger(
            name, "torch", FLOP, device, versions, total, tuple(entries), tuple(sightings), notes=tuple(notes)
        )

    def _beside(self, found: Counted, ops: list[Op], renamed: dict[str, str]) -> tuple[list[Entry], list[Sighting]]:
        """An entry for each module and name, and a sighting of each op that ran, with the events that are counted in it."""
        pools: dict[Any, Counter[_Events]] = {}
        for number, op in self.ops.items():
            layer = renamed.get(str(op.layer), str(op.layer))
            pools.setdefault(call_key(op, layer), Counter())[_Events(found.events.pop(number, []))] += 1
        taken: list[tuple[Sighting, int]] = []
        moved: list[Op] = []
        for op in ops:
            left = _take(op, pools.get(call_key(op, op.layer), Counter()), taken)
            moved += [op._replace(calls=left)] if left else []
        anywhere: dict[Any, Counter[_Events]] = {}
        for (_, *key), pool in pools.items():
            anywhere.setdefault(tuple(key), Counter()).update(pool)
        for op in moved:  # sums of gradients belong to the layer that they arrive in, which shows later
            left = _take(op, anywhere.get(call_key(op, "")[1:], Counter()), taken)
            if left:  # the parts of a call take its events once
                taken.append((Sighting(op._replace(calls=left, attrs={**op.attrs, EVENTS: []}), _entry(op)), 0))
        unowned = [*found.lost, *(event for events in found.events.values() for event in events)]
        unowned += [
            event for pool in anywhere.values() for events, calls in pool.items() for event in events.all * calls
        ]
        for event in unowned:
            taken.append((_without_op(event, f"e{len(taken)}"), int(event.flops or 0)))
        values: dict[tuple[str, str], list[int]] = {}
        for (op, *_), flops in taken:
            value = values.setdefault((op.layer, op.op), [0, 0])
            value[0] += op.calls * flops
            value[1] += op.calls
        entries = [Entry("{}|{}".format(*key), *key, value, calls) for key, (value, calls) in values.items() if value]
        return entries, [sighting for sighting, _ in taken]


class Counted:
    """The events that the profiler counts, by the op that they belong to; ``lost`` belong to none."""

    def __init__(self) -> None:
        self.events: dict[int, list[Any]] = {}
        self.lost: list[Any] = []

    def add(self, event: Any) -> None:
        """An event and those within it."""
        marks = list(_marks(event))
        if event.name.startswith(MARK):
            if event.name != LEFT:
                self.events.setdefault(int(event.name[len(MARK) :]), []).extend(_inside(event))
            return
        if event.name in FORMULAS:
            if not marks:
                self.lost.append(event)
            elif (owner := _owner(event, marks)) is not None:
                self.events.setdefault(owner, []).append(event)
        for inner in event.cpu_children:
            self.add(inner)


def _marks(event: Any) -> Iterator[Any]:
    """The outermost marks in an event."""
    for inner in event.cpu_children:
        if inner.name.startswith(MARK):
            yield inner
        else:
            yield from _marks(inner)


def _owner(event: Any, marks: list[Any]) -> int | None:
    """The op that takes a counted event around it: of conv2d the convolution, else the first. None for what is left out."""
    convolutions = [mark for mark in marks if "conv" in _op_of(mark)]
    name = (convolutions or marks)[0].name if event.name == "aten::conv2d" else marks[0].name
    return None if name == LEFT else int(name[len(MARK) :])


def _inside(mark: Any) -> Iterator[Any]:
    """The counted events in an op, without the op itself, which the recorder ran again."""
    again = next((inner for inner in mark.cpu_children if inner.name == _op_of(mark)), None)
    for inner in mark.cpu_children:
        yield from _below(inner, inner is not again)


def _op_of(mark: Any) -> str:
    """The op whose event this mark is in."""
    around = mark.cpu_parent
    while around is not None and around.name == MODE:
        around = around.cpu_parent
    return "" if around is None else str(around.name)


def _below(event: Any, itself: bool) -> Iterator[Any]:
    if itself and event.name in FORMULAS:
        yield event
    for inner in event.cpu_children:  # an op in the kernel of another library's op is run again, too
        yield from _below(inner, event.name != MODE or inner.name != event.cpu_parent.name)


class _Events:
    """The events of one call of an op, told from those of another by name, shapes, arguments and FLOPs."""

    def __init__(self, events: list[Any]) -> None:
        self.all = events
        self.flops = sum(int(event.flops or 0) for event in events)
        kinds: dict[str, list[Any]] = {}
        for event in events:
            node = Node(event)
            kind = [node.name, [shape for shape, _ in node.inputs], node.arguments, 1]
            known = kinds.setdefault(repr(kind), kind)
            if known is not kind:
                known[3] += 1
        self.kinds = list(kinds.values())
        self.text = repr((self.kinds, self.flops))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Events) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)


def _take(op: Op, pool: Counter[_Events], taken: list[tuple[Sighting, int]]) -> int:
    """Take the events of as many calls as the op has, with their FLOPs. Returns the calls for which there are none."""
    found, left = draw_calls(pool, op.calls)
    for events, calls in found:
        record = op._replace(calls=calls, attrs={**op.attrs, EVENTS: events.kinds})
        taken.append((Sighting(record, _entry(op)), events.flops))
    return left


def _entry(op: Op) -> str:
    return f"{op.layer}|{op.op}"


def _without_op(event: Any, name: str) -> Sighting:
    """A counted event that belongs to no op of the trace."""
    node = Node(event)
    inputs = tuple(Tensor(tuple(shape), dtype) for shape, dtype in node.inputs)
    attrs = {"arguments": node.arguments, "has_list": node.has_list}
    return Sighting(Op(name, node.name, "", inputs, (), attrs, 1), f"|{node.name}")


nested = Nested
"""What ``reconcile.count`` makes for this counter."""
