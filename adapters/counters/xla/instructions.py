"""Groups the HLO instructions that XLA counts by layer, kind and size, and moves those that lost a layer's name or padding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ....core.records import Op, Sighting
from ....work import ZERO, Work, is_integer_op
from ..bridge import View
from ..rulebook import NotCounted, Rule, apply
from .lowerings import Part, Place, place
from .rules import BOOK, steps, unpadded_macs

EQUATIONS = "equations"
STEPWISE = ("reduce", "reduce_window")
"""Primitives that reduce by a program of the user's."""

Key = tuple[str, Place]
"""The layer and the place of instructions that are alike."""


class RequiredPrimitives(NamedTuple):
    """What the trace requires of a program: the primitives at each key, and those of a layer whose instructions are not stated.

    ``routines`` are those of each layer whose single operations are unknown. ``uncut`` are the keys of the same instructions
    before the program is cut for several devices."""

    at: dict[Key, list[tuple[Op, Part]]]
    unstated: dict[tuple[str, str], Op]
    routines: dict[str, Op]
    uncut: dict[Key, set[Key]]


class EarlierCounts(NamedTuple):
    """How many instructions of a key there are before XLA counts: ``compiled``, in the program that is compiled, None for a
    counter of just that program; ``dropped``, in JAX's text and no longer in XLA's program."""

    compiled: Callable[[Key], int] | None
    dropped: Callable[[Key], int]

    def count_removed(self, key: Key, now: int) -> int:
        """How many the compiler removed, of which it left these."""
        return max(self.compiled(key) - now, 0) if self.compiled else 0

    def count_made(self, key: Key, now: int) -> int:
        """How many of these the compiler made."""
        return max(now - self.compiled(key), 0) if self.compiled else 0


def why_not(op: Op) -> str:
    """The reason why an instruction without a rule is not counted."""
    return f"XLA's cost analysis counts 0 for {op.op.partition('.')[2]}"


class MetInstructions:
    """Instructions of one layer, kind and size: what the rules count for one, and how often XLA met one."""

    def __init__(self, op: Op, rule: Rule | None, counted: Work, missed: NotCounted | None) -> None:
        self.op, self.rule, self.counted, self.missed = op, rule, counted, missed
        self.times = 0
        self.primitives = Counter[str]()

    def split(self, times: int) -> MetInstructions:
        """That number of these, which are taken from here, those with the commonest name first."""
        taken = MetInstructions(self.op, self.rule, self.counted, self.missed)
        taken.times = times
        for name, has in self.primitives.most_common():
            taken.primitives[name] = min(has, times - taken.primitives.total())
        self.times -= times
        self.primitives -= taken.primitives
        return taken

    def join(self, other: MetInstructions) -> MetInstructions:
        """Adds others of the same kind and size to these, and returns these."""
        self.times += other.times
        self.primitives += other.primitives
        return self


def group_instructions(
    sightings: Iterable[Sighting], view: View, wanted: RequiredPrimitives
) -> tuple[dict[Key, MetInstructions], list[MetInstructions]]:
    """The instructions of a program by layer and place, and those on integers alone.

    The parts of a primitive whose instructions are not stated have places of their own.
    """
    met: dict[Key, MetInstructions] = {}
    whole: list[MetInstructions] = []
    for op in _one_by_one((sighting.op for sighting in sightings), wanted):
        rule = BOOK.find(op.op, view.versions)
        counted, missed = apply(rule, op, why_not)
        one = MetInstructions(op, rule, counted, missed)
        one.times = op.calls
        if is_integer_op(op) and not counted.mac:  # a product of integers is the work of a quantised layer
            whole += [one] if counted else []
            continue
        primitive = str(op.attrs.get("primitive", ""))
        where = place(op, counted)
        if (op.layer, primitive) in wanted.unstated:
            where = (*where, "of", primitive)
        one.primitives[primitive] = op.calls
        key = (op.layer, where)
        if key in met and met[key].counted != counted:  # scattered updates of two sizes, say
            key = (op.layer, (*where, counted))
        met[key] = met[key].join(one) if key in met else one
    return met, whole


def _one_by_one(ops: Iterable[Op], wanted: RequiredPrimitives) -> Iterator[Op]:
    """Instructions, and the steps in the place of a reduction by a user's own function, of which a trace has the steps alone."""
    for op in ops:
        reduces = op.op.partition(".")[2] in ("reduce", "reduce-window") and op.attrs.get("primitive") in STEPWISE
        yield from steps(op) if reduces and (op.layer, place(op, ZERO)) not in wanted.at else (op,)


def equations(ops: Iterable[tuple[Op, Part]]) -> int:
    """How many instructions a program has for these primitives."""
    return sum(int(op.attrs.get(EQUATIONS, 1)) * part.times for op, part in ops)


def rename(met: dict[Key, MetInstructions], wanted: RequiredPrimitives, before: EarlierCounts) -> None:
    """Move instructions of a compiled program to the keys that need them: those that lost their layer's name, by their kind and
    size, and products that lost their padding within a layer. Only as many as are needed are moved."""
    for key, ops in wanted.at.items():
        held, size = met.get(key), ops[0][1].ran.mac
        has = held.times if held else 0
        needed = min(equations(ops) - has, before.count_removed(key, has))
        if needed <= 0:
            continue
        for other, found in list(met.items()):
            own = equations(wanted.at.get(other, ()))
            unpads = size and other[0] == key[0] and not own and unpadded_macs(found.op) == size
            if unpads and held is None and found.times <= needed:
                met[key] = met.pop(other)
                break
            if other[1] == key[1] and other[0] != key[0] and key[0].startswith(other[0]):
                spare = min(needed, found.times - own, before.count_made(other, found.times))
                if spare > 0:
                    moved = found.split(spare)
                    met[key] = held = moved.join(held) if held else moved
                    needed -= spare
                if not found.times:
                    del met[other]
