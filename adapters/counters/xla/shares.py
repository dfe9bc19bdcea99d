"""An instruction of the program that XLA counts before it cuts it for several devices, and the part that one of them has."""

from __future__ import annotations

from ....core.records import Op
from ..op_bridge import whole_of

AT_THE_CUT = "XLA adds it when it cuts the program for its devices"
"""Why the program has no collective before that."""


def part_of(instruction: Op, op: Op) -> Op:
    """The same instruction with the shapes that this op of the trace has."""
    if instruction.op == "hlo.dot":
        (contracted, _), _ = op.attrs["dimension_numbers"]
        attrs = {**instruction.attrs, "contracting": list(contracted)}
        return instruction._replace(inputs=op.inputs[:2], outputs=op.outputs, attrs=attrs)
    if instruction.op == "hlo.convolution":
        return instruction._replace(inputs=op.inputs[:2], outputs=op.outputs)
    whole = whole_of(op)
    pairs = zip((*whole.inputs, *whole.outputs), (*op.inputs, *op.outputs), strict=True)
    shapes = {each.shape: own.shape for each, own in pairs}
    inputs, outputs = (
        tuple(t._replace(shape=shapes.get(t.shape, t.shape)) for t in side)
        for side in (instruction.inputs, instruction.outputs)
    )
    return instruction._replace(inputs=inputs, outputs=outputs)
