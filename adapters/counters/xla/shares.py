"""An instruction of the program that XLA counts before it cuts it for several devices, and the part that one of them has."""

from __future__ import annotations

from dataclasses import replace

from ....core.causes import Cause
from ....core.records import Op
from ....work import numel
from .. import SUM
from ..bridge import Item, make_item
from ..op_bridge import whole_of
from ..rulebook import apply
from .instructions import Met, why_not

AT_THE_CUT = "XLA adds it when it cuts the program for its devices"
"""Why the program has no collective before that."""


def of_one(found: Met, op: Op) -> Met:
    """What XLA would count for the part of an instruction that one device has."""
    part = _with_shapes(found.op, op)
    return Met(part, found.rule, apply(found.rule, part, why_not)[0], found.missed)


def of_others(found: Met, mine: Met, op: Op, seen: int) -> Item:
    """What XLA counts of the parts that other devices have."""
    whole = _with_shapes(found.op, whole_of(op)) if found.op.op == "hlo.dot" else found.op
    item = make_item(
        whole, found.rule, layer=op.layer, op=op.op, counted=found.counted - mine.counted, seen=0 if found.missed else seen,
        cause=Cause.GLOBAL_SHAPE, entry=SUM,
    )  # fmt: skip
    return replace(item, sightings=(whole._replace(calls=1), mine.op._replace(calls=-1)))


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
