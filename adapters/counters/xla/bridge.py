"""From XLA's cost analysis to the JAX trace, layer by layer.

A product that XLA met and one that ran are the same if they are in one layer and XLA's formula gives both the same count; there
must be as many of them in the program as the trace has equations. Every other primitive is one instruction, or several, of known
kinds and sizes (lowerings.py), and is found in the same way. What is left over has a cause only if JAX gives it the name of a
primitive of that layer whose instructions are not stated. Otherwise the model ran other ops, and nothing is booked.
JAX drops what changes nothing (x + 0) when it hands a program over: single operations may be fewer than the model's.
The operations of a primitive that is a library's routine (qr, svd) depend on that library and are unknown: the other single
operations of its layer may belong to it. The body of a loop that runs 0 times is in the program, and is a branch not taken.
The compiled program is another one: single operations that only it has, or that only the model has, are due to the
compiler. A product that has lost its layer's name, or whose input lost its padding, is found by its size. A missing
product is due to the compiler as well if the program before compilation, which the ledger also has, contains the model's product.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from ....core.causes import Cause
from ....core.records import WHOLE, Op, Sighting, Trace
from ....core.work import SINGLE
from ....work import COMPONENTS, Work, is_integer_op
from .. import SUM
from ..bridge import Bridge, Item, View, known_work, make_item, unknown_of, unmet
from ..op_bridge import whole_of
from ..rulebook import apply
from . import LOWERED, TARGET
from .lowerings import ALL_REDUCE, PRODUCTS, Part, Place, parts, place
from .rounding import rounding
from .rules import BOOK, unpadded
from .shares import AT_THE_CUT, Met, of_one, of_others, why_not

EQUATIONS = "equations"
COMPILED = "xla@compiled"
REWROTE = "the program that XLA counts has not as many of it"
PLACED = (
    "Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape",
    "xla.sdy.FuncResultSharding", "xla.sdy.GlobalToLocalShape", "xla.sdy.LocalToGlobalShape",
)  # fmt: skip
"""Custom calls that only say on which devices an array is: nothing runs, and XLA counts -1 for any custom call."""
IN_A_LOOP = "XLA counts the body of a loop once"
REST = tuple(name for name in COMPONENTS if name != "mac")


def another(layer: str, difference: str) -> str:
    """The reason why nothing can be booked: JAX keeps no state between two calls, so that is not the model's."""
    where = f"at {layer}" if layer else "at the root"
    return (
        "the program that XLA counts is not the one that was traced, or JAX hands it over in a way that reconcile does not know: "
        f"{where}, {difference}"
    )


Key = tuple[str, Place]
"""The layer and the place of instructions that are alike."""


class Wanted(NamedTuple):
    """The needs of the trace from a program: the primitives at each key, and those of a layer whose instructions are not stated.

    ``routines`` are those of each layer whose single operations are unknown."""

    at: dict[Key, list[tuple[Op, Part]]]
    unstated: dict[tuple[str, str], Op]
    routines: dict[str, Op]


def bridge(view: View, trace: Trace) -> Bridge:
    """Items of every instruction that XLA met, of what ran and XLA left out, and of the sum in float32."""
    wanted, left_out = _wanted(trace, uncut=view.counter != COMPILED)
    before = [sighting for sighting in view.sightings if sighting.op.attrs.get(LOWERED)]
    counted = [sighting for sighting in view.sightings if not sighting.op.attrs.get(LOWERED)]
    placed = [one for one in counted if _places(one.op)]
    met, whole = _met([one for one in counted if not _places(one.op)], view, wanted)
    handed = {key: found.times for key, found in _met(before, view, wanted)[0].items()}
    items = [*left_out, *(_one(found, 1, Cause.INTEGER_OP) for found in whole)]
    marks = _met(placed, view, Wanted({}, {}, {}))[0].values()
    items += [_one(found, found.times, Cause.FORMULA_DIFFERS) for found in marks]
    if before:
        _renamed(met, wanted)
    for key, ops in wanted.at.items():
        found, routine = met.pop(key, None), wanted.routines.get(key[0])
        if routine is not None and found is not None and not found.counted.mac and found.times > _equations(ops):
            items.append(_held(found, found.times - _equations(ops), [routine]))
            found.times = _equations(ops)
        items += _matched(found, ops, view, handed.get(key) == _equations(ops))
    for (layer, where), found in met.items():
        if found.counted:
            named = [wanted.unstated.get((layer, name)) for name in sorted(found.primitives)]
            routine = wanted.routines.get(layer)
            holders: list[Op | None] = [routine] if None in named and routine and not found.counted.mac else named
            items.append(_left_over(found, holders, view, bool(before) and (layer, where) not in handed))
    return Bridge((*items, *rounding(counted, view, why_not)))


def _places(op: Op) -> bool:
    return op.attrs.get(TARGET) in PLACED and not is_integer_op(op)


def _wanted(trace: Trace, *, uncut: bool) -> tuple[Wanted, list[Item]]:
    """The instructions that the trace needs, and items for the work of primitives whose instructions are not stated. A program
    that is ``uncut`` has the whole of what the trace has one device's part of."""
    wanted, left_out = Wanted({}, {}, {}), list[Item]()
    for op in trace.ops:
        if is_integer_op(op):
            continue
        stated = parts(op)
        if stated is None:
            wanted.unstated.setdefault((op.layer, op.op.partition(".")[2]), op)
            if unknown_of([op]) >= set(SINGLE):
                wanted.routines.setdefault(op.layer, op)
            left_out += _left_out(op)
            continue
        shown = parts(whole_of(op)) if uncut and WHOLE in op.attrs else stated
        for part, met in zip(stated, shown or (), strict=True):
            wanted.at.setdefault((op.layer, met.place), []).append((op, part))
    return wanted, left_out


def _met(sightings: Iterable[Sighting], view: View, wanted: Wanted) -> tuple[dict[Key, Met], list[Met]]:
    """The instructions of a program by layer and place, and those on integers alone.

    The parts of a primitive whose instructions are not stated have places of their own.
    """
    met: dict[Key, Met] = {}
    whole: list[Met] = []
    for sighting in sightings:
        op = sighting.op
        rule = BOOK.find(op.op, view.versions)
        counted, missed = apply(rule, op, why_not)
        one = Met(op, rule, counted, missed)
        if is_integer_op(op) and not counted.mac:  # a product of integers is the work of a quantised layer
            whole += [one] if counted else []
            continue
        primitive = str(op.attrs.get("primitive", ""))
        where = place(op, counted)
        if (op.layer, primitive) in wanted.unstated:
            where = (*where, "of", primitive)
        held = met.setdefault((op.layer, where), one)
        held.times += 1
        held.primitives.add(primitive)
    return met, whole


def _equations(ops: Iterable[tuple[Op, Part]]) -> int:
    """How many instructions a program has for these primitives."""
    return sum(int(op.attrs.get(EQUATIONS, 1)) * part.times for op, part in ops)


def _renamed(met: dict[Key, Met], wanted: Wanted) -> None:
    """Move products of a compiled program to the keys that need them: those that lost their padding within a layer, and those
    that lost their layer's name, by their size. Only as many as are needed are moved."""
    lost = [key for key, ops in wanted.at.items() if key not in met and ops[0][1].ran.mac]
    spare = [key for key, found in met.items() if found.counted.mac and key not in wanted.at]
    for key in lost:
        ops = wanted.at[key]
        size = ops[0][1].ran.mac
        for other in spare:
            found = met[other]
            same_layer = other[0] == key[0] and unpadded(found.op) == size
            nameless = found.counted.mac == size and key[0].startswith(other[0])
            if found.times == _equations(ops) and (same_layer or nameless):
                met[key] = met.pop(other)
                spare.remove(other)
                break


def _one(found: Met, times: int, cause: Cause | None, gap: str = "") -> Item:
    """Instructions that count, and of which nothing ran."""
    return make_item(
        found.op, found.rule, layer=found.op.layer, op=found.op.op, counted=found.counted, seen=times,
        times=times if cause is None else 0, cause=cause, entry=SUM, gap=gap,
    )  # fmt: skip


def _left_out(op: Op) -> Iterable[Item]:
    """The work of a primitive whose instructions are not stated."""
    work = known_work(op)
    if work:
        reason = f"XLA's program has {op.op.partition('.')[2]} in parts"
        yield unmet(op, work, Cause.OP_NOT_COUNTED, reason)


def _compiled(view: View, *works: Work) -> bool:
    """Whether these are single operations of a program that was compiled."""
    return view.counter == COMPILED and not any(work.mac for work in works)


def _left_over(found: Met, holders: list[Op | None], view: View, made: bool) -> Item:
    """Instructions that no stated primitive needs: parts of the primitives by whose names JAX calls them, or unexplained.

    ``made``: the program had none of them before it was compiled.
    """
    if (made and found.counted.mac) or (None in holders and _compiled(view, found.counted)):
        return _one(found, found.times, Cause.COMPILER_REWROTE)
    if None in holders or found.op.op.partition(".")[2] in PRODUCTS:
        gap = another(found.op.layer, f"{found.op.op} of {found.op.id} is not in the trace")
        return _one(found, found.times, None, gap)
    return _held(found, found.times, holders)


def _held(found: Met, times: int, holders: Sequence[Op | None]) -> Item:
    """Instructions that are parts of these primitives."""
    own = tuple(name for name in COMPONENTS if found.counted.only((name,)))
    unknown = unknown_of([holder for holder in holders if holder])
    item = replace(_one(found, times, None), ops=tuple(holder.id for holder in holders if holder), only=own)
    return replace(item, unknown=unknown)


def _matched(found: Met | None, wanted: list[tuple[Op, Part]], view: View, handed: bool) -> Iterable[Item]:
    """The items of primitives that share instructions of one kind and size, as many as their equations.

    ``handed``: the program had exactly these before it was compiled.
    """
    taken = [(op, part) for op, part in wanted if op.calls]
    if view.counter == COMPILED and (found.times if found else 0) == _equations(taken):
        wanted = taken  # the compiler drops a loop that does not run
    equations = [int(op.attrs.get(EQUATIONS, 1)) * part.times for op, part in wanted]
    if found is None and view.counter != COMPILED and {op.op for op, _ in wanted} == {ALL_REDUCE}:
        yield from (unmet(op, part.ran, Cause.OP_NOT_COUNTED, AT_THE_CUT) for op, part in wanted)
        return
    if found is None or found.times != sum(equations):
        has = found.times if found else 0
        products = [part.ran for _, part in wanted] + ([found.counted] if found else [])
        single = not any(work.mac for work in products)
        if handed or (single and (has < sum(equations) or view.counter == COMPILED)):
            yield from _rewritten(found, wanted)
            return
        names = ", ".join(dict.fromkeys(op.op for op, _ in wanted))
        for op, part in wanted:
            if part.ran or (found is not None and found.counted):
                gap = another(op.layer, f"{names} are {sum(equations):,} of {part.place[0]}, and XLA has {has:,}")
                yield unmet(op, part.ran, None, "", gap=gap)
        if found is not None and found.counted:
            yield replace(_one(found, found.times, None), gap="as many of them as XLA has did not run")
        return
    for (op, part), seen in zip(wanted, equations, strict=True):
        if not op.calls:
            yield replace(_one(found, seen, Cause.UNTAKEN_BRANCH), ops=(op.id,))
            continue
        if WHOLE in op.attrs and view.counter != COMPILED:
            mine = of_one(found, op)
            if place(mine.op, mine.counted) != part.place:
                gap = another(op.layer, f"one device's part of {op.op} is not a part of {found.op.op}")
                yield from (unmet(op, part.ran, None, "", gap=gap), _one(found, seen, None, gap))
                continue
            yield of_others(found, mine, op, seen)
        else:
            mine = found
        padded = mine.counted.mac != part.ran.mac and seen == op.calls * part.times and part.cause is None
        only = ("mac",) if padded else part.only
        yield make_item(
            mine.op,
            mine.rule,
            layer=op.layer,
            op=op.op,
            counted=mine.counted,
            seen=0 if found.missed else seen,
            ran=part.ran.only(only) if only else part.ran,
            times=op.calls * part.times,
            cause=Cause.PADDING_NOT_COUNTED if padded else found.missed.cause if found.missed else part.cause,
            entry=SUM,
            ops=(op.id,),
            reason=found.missed.reason if found.missed else "",
            only=only,
            unknown=unknown_of([op]),
        )
        if padded:
            yield unmet(op, part.ran.only(REST), None, "", only=REST)


def _rewritten(found: Met | None, wanted: list[tuple[Op, Part]]) -> Iterable[Item]:
    """Operations of which the program has fewer than the model; in a loop it would have one."""
    for op, part in wanted:
        if not op.calls:
            continue
        once = int(op.attrs.get(EQUATIONS, 1))
        for cause, times, reason in (
            (Cause.COMPILER_REWROTE, once, REWROTE),
            (Cause.LOOP_COUNTED_ONCE, op.calls - once, IN_A_LOOP),
        ):
            if part.ran and times > 0:  # the evidence is one call of the primitive, as these are not all of its calls
                missed = unmet(op, part.ran * part.times, cause, reason, only=part.only)
                yield replace(missed, times=times, ops=(), sightings=(op._replace(calls=1),))
    if found is not None and found.counted:
        yield _one(found, found.times, Cause.COMPILER_REWROTE)
