"""Explains the difference between XLA's cost analysis and the JAX trace, layer by layer, with a cause for each part (a bridge).

A product that XLA met and one that ran are the same if they are in one layer and XLA's formula gives both the same count; there
must be as many of them in the program as the trace has equations. Every other primitive is one instruction, or several, of known
kinds and sizes (lowerings.py), and is found in the same way. What is left over has a cause only if JAX gives it the name of a
primitive of that layer whose instructions are not stated. Otherwise the model ran other ops, and nothing is booked.
As XLA parses the program that JAX hands over, it removes what changes nothing (x + 0) and folds constants: an operation is booked
so only if JAX's own module has one more of them than the program that XLA made of it.
The operations of a primitive that is a library's routine (qr, svd) depend on that library and are unknown: the other single
operations of its layer may belong to it. The body of a loop that runs 0 times is in the program, and is a branch not taken.
The compiled program is another one, and the ledger has the program before it as well. What both have as often is compared with
the trace as it is before compilation; only the difference between the two programs is due to the compiler, kind by kind and size
by size. An instruction that has lost its layer's name, or a product whose input lost its padding, is found by its size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ....core.causes import Cause
from ....core.records import WHOLE, Op, Sighting, Trace
from ....core.work import SINGLE_COMPONENTS
from ....work import is_integer_op
from .. import SUM
from ..bridge import Bridge, Item, View, known_work, make_item, unknown_of, unmet
from ..op_bridge import whole_of
from ..rulebook import apply
from . import DROPPED, LOWERED, TARGET
from .instructions import EarlierCounts, Key, RequiredPrimitives, equations, group_instructions, rename, why_not
from .lowerings import parts
from .primitive_matching import COMPILED, make_rest_items, make_shared_item, make_unmatched_item, match_primitives
from .rules import BOOK, FLOAT32

PLACED = (
    "Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape",
    "xla.sdy.FuncResultSharding", "xla.sdy.GlobalToLocalShape", "xla.sdy.LocalToGlobalShape",
)  # fmt: skip
"""Custom calls that only say on which devices an array is: nothing runs, and XLA counts -1 for any custom call."""
CALL = "hlo.custom-call"


def bridge(view: View, trace: Trace) -> Bridge:
    """Items of every instruction that XLA met, of what ran and XLA left out, and of the sum in float32."""
    compiled = view.counter == COMPILED
    wanted, left_out = _wanted_instructions(trace, uncut=not compiled)
    handed = [one for one in view.sightings if one.op.attrs.get(LOWERED)]
    dropped = [one for one in view.sightings if one.op.attrs.get(DROPPED)]
    counted = [one for one in view.sightings if not one.op.attrs.get(LOWERED) and not one.op.attrs.get(DROPPED)]
    placed = [one for one in counted if _gives_nothing(one.op)]
    met, whole = group_instructions([one for one in counted if not _gives_nothing(one.op)], view, wanted)

    def count(sightings: list[Sighting]) -> Callable[[Key], int]:
        has = group_instructions(sightings, view, wanted)[0]
        return lambda key: sum(has[each].times for each in wanted.uncut.get(key, {key}) if each in has)

    before = EarlierCounts(count(handed) if compiled and handed else None, count(dropped))
    items = [*left_out, *(make_unmatched_item(found, found.times, Cause.INTEGER_OP) for found in whole)]
    marks = group_instructions(placed, view, RequiredPrimitives({}, {}, {}, {}))[0].values()
    items += [make_unmatched_item(found, found.times, Cause.FORMULA_DIFFERS) for found in marks]
    if compiled:
        rename(met, wanted, before)
    for key, ops in wanted.at.items():
        found, routine = met.pop(key, None), wanted.routines.get(key[0])
        if routine is not None and found is not None and not found.counted.mac and found.times > equations(ops):
            items.append(make_shared_item(found, found.times - equations(ops), [routine]))
            found.times = equations(ops)
        items += match_primitives(key, found, ops, view, before)
    for key, found in met.items():
        if found.counted:
            named = [wanted.unstated.get((key[0], name)) for name in sorted(found.primitives)]
            routine = wanted.routines.get(key[0])
            holders: list[Op | None] = [routine] if None in named and routine and not found.counted.mac else named
            items += make_rest_items(found, holders, before.count_made(key, found.times))
    return Bridge((*items, *rounding_items(counted, view, why_not)))


def _gives_nothing(op: Op) -> bool:
    """Whether a custom call has no value but its own input: it places an array, or is a callback that only reports."""
    silent = op.op == CALL and all(tensor.dtype == "token" for tensor in op.outputs)
    return (silent or op.attrs.get(TARGET) in PLACED) and not is_integer_op(op)


def _wanted_instructions(trace: Trace, *, uncut: bool) -> tuple[RequiredPrimitives, list[Item]]:
    """The instructions that the trace needs, and items for the work of primitives whose instructions are not stated. A program
    that is ``uncut`` has the whole of what the trace has one device's part of."""
    wanted, left_out = RequiredPrimitives({}, {}, {}, {}), list[Item]()
    for op in trace.ops:
        if is_integer_op(op):
            continue
        stated = parts(op)
        if stated is None:
            wanted.unstated.setdefault((op.layer, op.op.partition(".")[2]), op)
            if unknown_of([op]) >= set(SINGLE_COMPONENTS):
                wanted.routines.setdefault(op.layer, op)
            left_out += _left_out(op)
            continue
        whole = parts(whole_of(op)) if WHOLE in op.attrs else stated
        for part, of_all in zip(stated, whole or (), strict=True):
            key = (op.layer, of_all.place if uncut else part.place)
            wanted.at.setdefault(key, []).append((op, part))
            wanted.uncut.setdefault(key, set()).add((op.layer, of_all.place))
    return wanted, left_out


def _left_out(op: Op) -> Iterable[Item]:
    """The work of a primitive whose instructions are not stated."""
    work = known_work(op)
    if work:
        reason = f"XLA's program has {op.op.partition('.')[2]} in parts"
        yield unmet(op, work, Cause.OP_NOT_COUNTED, reason)


def rounding_items(sightings: Iterable[Sighting], view: View, why_not: Callable[[Op], str]) -> Iterable[Item]:
    """What adding in float32 changes: every computation is summed by itself, and then added where it is called."""
    whole: list[Any] = []
    for sighting in sightings:
        counted, _ = apply(BOOK.find(sighting.op.op, view.versions), sighting.op, why_not)
        if counted:
            _into(whole, sighting.op.within).append(2 * counted.mac + sum(counted.only(SINGLES)))
    op = Op(FLOAT32, FLOAT32, "", (), (), {"addends": _plain(whole)})
    rule = BOOK.find(FLOAT32, view.versions)
    counted, _ = apply(rule, op, why_not)
    if counted:
        yield make_item(op, rule, counted=counted, seen=1, cause=Cause.FLOAT32_ROUNDING, entry=SUM)


SINGLES = ("add", "mul", "div", "cmp", "special")


def _into(addends: list[Any], within: tuple[str, ...]) -> list[Any]:
    """The list of the computation that these calls lead to."""
    for call in within:
        found = next((item for item in addends if isinstance(item, tuple) and item[0] == call), None)
        if found is None:
            found = (call, [])
            addends.append(found)
        addends = found[1]
    return addends


def _plain(addends: list[Any]) -> list[Any]:
    return [_plain(item[1]) if isinstance(item, tuple) else item for item in addends]
