"""Matches JAX primitives of the trace with HLO instructions of their kind and size; gives causes for missing and extra ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ....core.causes import Cause
from ....core.records import WHOLE, Op
from ....work import COMPONENTS, numel
from .. import SUM
from ..bridge import Item, View, make_item, unknown_of, unmet
from ..op_bridge import whole_of
from ..rulebook import apply
from .instructions import EarlierCounts, Key, MetInstructions, equations, why_not
from .lowerings import ALL_REDUCE, PRODUCTS, Part, place
from .rules import TRANSCENDENTAL, TRANSCENDENTALS_COUNTED_APART

COMPILER_LEFT_LESS = "the program before compilation has more of it than the compiled one"
AS_READ = "JAX's program has it, and XLA drops it as it reads that program: it changes nothing, or its values are known"
IN_A_LOOP = "XLA counts the body of a loop once"
REST = tuple(name for name in COMPONENTS if name != "mac")
COMPILED = "xla@compiled"


def other_instructions(layer: str, difference: str) -> str:
    """The reason why nothing can be booked: JAX keeps no state between two calls, so that is not the model's."""
    where = f"at {layer}" if layer else "at the root"
    return (
        "the program that XLA counts is not the one that was traced, or JAX hands it over in a way that reconcile does not know: "
        f"{where}, {difference}"
    )


def match_primitives(
    key: Key, found: MetInstructions | None, wanted: list[tuple[Op, Part]], view: View, before: EarlierCounts
) -> Iterable[Item]:
    """The items of primitives that share instructions of one kind and size.

    As many as there are of both are the model's own. Of those that are missing, the compiler removed some, and XLA others as it
    read the program; of those beyond, the compiler made some. What is left is unexplained.
    """
    wanted = sorted(wanted, key=lambda each: not each[0].calls)
    has, needed = found.times if found else 0, equations(wanted)
    if found is None and view.counter != COMPILED and {op.op for op, _ in wanted} == {ALL_REDUCE}:
        yield from (unmet(op, part.ran, Cause.OP_NOT_COUNTED, AT_THE_CUT) for op, part in wanted)
        return
    names = ", ".join(dict.fromkeys(op.op for op, _ in wanted))
    gap = other_instructions(key[0], f"{names} are {needed:,} of {key[1][0]}, and XLA has {has:,}")
    removed, dropped = before.count_removed(key, has), before.dropped(key)
    if view.counter == COMPILED and {op.op for op, _ in wanted} == {ALL_REDUCE}:
        removed = max(needed - has, 0)  # the compiler adds them as it cuts the program, and joins several into one
    rewrote = (
        (Cause.OP_NOT_COUNTED, TRANSCENDENTALS_COUNTED_APART)
        if key[1][0] in TRANSCENDENTAL
        else (Cause.COMPILER_REWROTE, COMPILER_LEFT_LESS)
    )
    for (op, part), seen in zip(wanted, _shares(found, wanted), strict=True):
        missing = equations([(op, part)]) - seen
        if not op.calls:
            if seen and found is not None:
                yield replace(make_unmatched_item(found, seen, Cause.UNTAKEN_BRANCH), ops=(op.id,))
            continue
        by_compiler = min(missing, removed)
        as_read = min(missing - by_compiler, dropped)
        removed, dropped = removed - by_compiler, dropped - as_read
        unknown, repeated = missing - by_compiler - as_read, op.calls * part.times - missing
        if seen and found is not None:
            yield from _own(found, op, part, seen, repeated, view)
        elif unknown:
            unknown += repeated
        else:
            yield from _missing_items(op, part, repeated, Cause.LOOP_COUNTED_ONCE, IN_A_LOOP)
        yield from _missing_items(op, part, by_compiler, *rewrote)
        yield from _missing_items(op, part, as_read, Cause.OP_NOT_COUNTED, AS_READ)
        yield from _missing_items(op, part, unknown, None, "", gap)
    if found is not None and found.counted and has > needed:
        made = min(has - needed, before.count_made(key, has))
        if made:
            yield make_unmatched_item(found, made, Cause.COMPILER_REWROTE)
        if has - needed > made:
            yield make_unmatched_item(found, has - needed - made, None, gap)


def _shares(found: MetInstructions | None, wanted: list[tuple[Op, Part]]) -> list[int]:
    """How many of the instructions are those of each primitive: by the name that JAX gave them as far as they have it, then in
    order."""
    needs = [equations([each]) for each in wanted]
    left = found.times if found else 0
    names = found.primitives.copy() if found else Counter[str]()
    shares = list[int]()
    for (op, _), need in zip(wanted, needs, strict=True):
        name = op.op.partition(".")[2]
        own = min(need, names[name], left)
        names[name] -= own
        left -= own
        shares.append(own)
    for at, need in enumerate(needs):
        more = min(need - shares[at], left)
        left -= more
        shares[at] += more
    return shares


def _own(found: MetInstructions, op: Op, part: Part, seen: int, times: int, view: View) -> Iterable[Item]:
    """Instructions of a primitive that ran ``times`` times."""
    if WHOLE in op.attrs and view.counter != COMPILED:
        mine = of_one(found, op)
        if place(mine.op, mine.counted) != part.place:
            gap = other_instructions(op.layer, f"one device's part of {op.op} is not a part of {found.op.op}")
            yield from (
                replace(unmet(op, part.ran, None, "", gap=gap), times=times),
                make_unmatched_item(found, seen, None, gap),
            )
            return
        yield of_others(found, mine, op, seen)
    else:
        mine = found
    padded = mine.counted.mac != part.ran.mac and seen == times and part.cause is None
    only = ("mac",) if padded else part.only
    whole = times == op.calls * part.times  # if these are not all of the primitive's calls, one call is the evidence
    yield make_item(
        mine.op,
        mine.rule,
        layer=op.layer,
        op=op.op,
        counted=mine.counted,
        seen=0 if found.missed else seen,
        ran=part.ran.only(only) if only else part.ran,
        times=times,
        cause=Cause.PADDING_NOT_COUNTED if padded else found.missed.cause if found.missed else part.cause,
        entry=SUM,
        ops=(op.id,) if whole else (),
        reason=found.missed.reason if found.missed else "",
        only=only,
        unknown=unknown_of([op]),
    )
    if padded:
        rest = unmet(op, part.ran.only(REST), None, "", only=REST)
        yield rest if whole else replace(rest, times=times, ops=(), sightings=(op._replace(calls=1),))


def _missing_items(op: Op, part: Part, times: int, cause: Cause | None, reason: str, gap: str = "") -> Iterable[Item]:
    """Operations of which the program has fewer than the model; the evidence is one call, as these are not all of its calls."""
    if part.ran and times > 0:
        missed = unmet(op, part.ran, cause, reason, only=part.only, gap=gap)
        yield replace(missed, times=times, ops=(), sightings=(op._replace(calls=1),))


def make_rest_items(found: MetInstructions, holders: list[Op | None], made: int) -> Iterable[Item]:
    """Instructions that no stated primitive needs: those that the compiler ``made``, parts of the primitives by whose names JAX
    calls them, or unexplained."""
    if made:
        yield make_unmatched_item(found, made, Cause.COMPILER_REWROTE)
    rest = found.times - made
    if rest and (None in holders or found.op.op.partition(".")[2] in PRODUCTS):
        yield make_unmatched_item(
            found, rest, None, other_instructions(found.op.layer, f"{found.op.op} of {found.op.id} is not in the trace")
        )
    elif rest:
        yield make_shared_item(found, rest, holders)


def make_shared_item(found: MetInstructions, times: int, holders: Sequence[Op | None]) -> Item:
    """The item of instructions that are parts of these primitives; nothing is booked for what is unknown of their work."""
    own = tuple(name for name in COMPONENTS if found.counted.only((name,)))
    unknown = unknown_of([holder for holder in holders if holder])
    item = replace(
        make_unmatched_item(found, times, None), ops=tuple(holder.id for holder in holders if holder), only=own
    )
    return replace(item, unknown=unknown)


def make_unmatched_item(found: MetInstructions, times: int, cause: Cause | None, gap: str = "") -> Item:
    """Instructions that count, and of which nothing ran."""
    return make_item(
        found.op, found.rule, counted=found.counted, seen=times, times=times if cause is None else 0, cause=cause, entry=SUM,
        gap=gap,
    )  # fmt: skip


AT_THE_CUT = "XLA adds it when it cuts the program for its devices"
"""Why the program has no collective before that."""


def of_one(found: MetInstructions, op: Op) -> MetInstructions:
    """What XLA would count for the part of an instruction that one device has."""
    part = _with_shapes(found.op, op)
    return MetInstructions(part, found.rule, apply(found.rule, part, why_not)[0], found.missed)


def of_others(found: MetInstructions, mine: MetInstructions, op: Op, seen: int) -> Item:
    """What XLA counts of the parts that other devices have."""
    whole = _with_shapes(found.op, whole_of(op)) if found.op.op == "hlo.dot" else found.op
    parts = whole._replace(calls=1), mine.op._replace(calls=-1)
    return make_item(
        op, found.rule, met=parts, counted=found.counted - mine.counted, seen=0 if found.missed else seen,
        cause=Cause.GLOBAL_SHAPE, entry=SUM,
    )  # fmt: skip


def _with_shapes(instruction: Op, op: Op) -> Op:
    """The same instruction with the shapes that this op of the trace has."""
    if instruction.op == "hlo.dot":
        (contracted, _), _ = op.attrs["dimension_numbers"]
        attrs = {**instruction.attrs, "contracting": list(contracted)}
        return instruction._replace(inputs=op.inputs[:2], outputs=op.outputs, attrs=attrs)
    if instruction.op == "hlo.convolution":
        return instruction._replace(inputs=op.inputs[:2], outputs=op.outputs)
    whole = whole_of(op)
    pairs = zip((*whole.inputs, *whole.outputs), (*op.inputs, *op.outputs), strict=True)
    shapes = {numel(each.shape): own.shape for each, own in pairs}  # instructions of one size stand for each other
    inputs, outputs = (
        tuple(t._replace(shape=shapes.get(numel(t.shape), t.shape)) for t in side)
        for side in (instruction.inputs, instruction.outputs)
    )
    return instruction._replace(inputs=inputs, outputs=outputs)
