"""LocalWalk: the trace of one device of a sharded JAX program, whose equations get the shapes of that device's HLO instructions.

A product is counted only where XLA has one kind of it in the device's program, and where all devices together do at least the
whole of it. Of any other equation the shapes are those of the instructions that XLA made of it, if they agree; otherwise its
single operations are unknown, by name.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ....core.records import CUT, GROUP, WHOLE, Op, Tensor
from .. import hlo, records
from ..trace import ONCE, OVER_DEVICES, Runs, Walk
from .program import COLLECTIVES, LOOPS, DeviceProgram, Piece, group_of
from .tags import tag_of

PRODUCTS = {"dot_general": "dot", "conv_general_dilated": "convolution"}
"""Primitives with products, and their instruction."""
GROUPED = "ragged_dot_general"
"""Products of groups of rows, which are one dense product for XLA (adapters/counters/xla/lowerings.py)."""
OF_A_FUNCTION = ("reduce", "reduce_window")
"""Reductions by a user's function, which runs as often as the whole array says."""
NO_PRODUCT_OF_ITS_OWN = (
    "one device's program has no product of its own for it: XLA merged it with an equal one, or left it out"
)
CUT_INTO_SEVERAL = "XLA cut it into several products, or into products of several shapes"
IN_A_LOOP = "XLA cut it into a loop of its own"
LESS_THAN_THE_WHOLE = "all devices together do less than the whole of it in the products that are known"
NOT_FOLLOWED = "how XLA cuts it is not known here"
PART_NOT_SHOWN = "the instructions of one device's program do not show its part"
PASSING = (
    "all_gather",
    "all_to_all",
    "ppermute",
    "all_gather_invariant",
    "all_gather_reduced",
    "psum_scatter",
    "pgather",
)
"""Primitives besides OVER_DEVICES of which XLA makes a collective, which stands for them."""
_KINDS = {"add": "sum", "multiply": "product", "maximum": "max", "minimum": "min"}
_MOVES = (
    "parameter", "constant", "broadcast", "reshape", "transpose", "slice", "dynamic-slice", "dynamic-update-slice", "copy",
    "bitcast", "iota", "pad", "concatenate", "tuple", "get-tuple-element", "reverse", "partition-id", "replica-id", "call",
    "opt-barrier", "optimization-barrier",
)  # fmt: skip


class LocalWalk(Walk):
    """Goes through a program with numbers on its equations (tags.py) as one ``rank`` of the devices of its ``part``."""

    def __init__(self, root: str, part: DeviceProgram, rank: int) -> None:
        super().__init__(root)
        self.part, self.rank = part, rank

    def fresh(self) -> LocalWalk:
        """See Walk.fresh."""
        return LocalWalk(self.root, self.part, self.rank)

    def _equation(self, equation: Any, runs: Runs, names: tuple[str, ...]) -> None:
        self._add_collectives(equation, runs, names)
        if equation.primitive.name in OF_A_FUNCTION:
            self._problem(equation, NOT_FOLLOWED, names)
            return
        super()._equation(equation, runs, names)

    def devices(self, mapped: int) -> int:
        """See Walk.devices: on one."""
        return 1

    def _record(self, equation: Any, runs: Runs, names: tuple[str, ...]) -> None:
        name = equation.primitive.name
        if name in OVER_DEVICES or name in PASSING:
            return
        op = self._op(equation, runs, names)
        found = self._made_of(equation)
        if name in PRODUCTS:
            products = [each for each in found if each.opcode == PRODUCTS[name]]
            why, made = self._product(op, products, runs.copies)
            if made is None:
                self._problem(equation, why, names)
                return
            op = made
        elif name == GROUPED:
            why = _group_refusal(op, [each for each in found if each.opcode == PRODUCTS["dot_general"]], runs.copies)
            if why:
                self._problem(equation, why, names)
                return
        else:
            op = self._single(op, found)
        self.add(op, runs.copies)

    def _made_of(self, equation: Any) -> Sequence[Piece]:
        tag = tag_of("/".join(records.scopes(equation)))
        return () if tag is None else self.part.at.get(tag, ())

    def _product(self, op: Op, found: Sequence[Piece], copies: int) -> tuple[str, Op | None]:
        """The product with this device's shapes, or why it is not known; XLA has ``copies`` of it before it cuts them."""
        if not found:
            return NO_PRODUCT_OF_ITS_OWN, None
        if any(each.looped for each in found):
            return IN_A_LOOP, None
        if len(found) > copies or len({(each.inputs, each.outputs) for each in found}) > 1:
            return CUT_INTO_SEVERAL, None
        shapes = [tensor.shape for tensor in (*found[0].inputs, *found[0].outputs)]
        if not _is_alike(op, found[0]) or not _parts_of(shapes, [tensor.shape for tensor in (*op.inputs, *op.outputs)]):
            return PART_NOT_SHOWN, None
        own = _with(op, shapes[: len(op.inputs)], shapes[len(op.inputs) :])
        others = self.part.devices // math.prod(self.axes.values())
        return (LESS_THAN_THE_WHOLE, None) if _products(own) * others < _products(op) else ("", own)

    def _single(self, op: Op, found: Sequence[Piece]) -> Op:
        """An op without products, with this device's shapes where its instructions show them."""
        shapes = [tensor.shape for tensor in (*op.inputs, *op.outputs)]
        if not any(shapes) or not op.outputs:
            return op
        out = op.outputs[0].shape
        reduces = [each for each in found if each.opcode == "reduce"]
        if op.op.startswith(("lax.reduce_", "lax.arg")) and len(op.inputs) == 1:
            seen = {(each.inputs[0].shape, each.outputs[0].shape) for each in reduces}
            if len(seen) == 1:
                ((given, made),) = seen
                if _parts_of([given, made], [op.inputs[0].shape, out]):
                    return _with(op, [given], [made] * len(op.outputs))
        elif all(_spreads(shape, out) for shape in shapes):
            sizes = {
                each.outputs[0].shape for each in found if each.opcode not in (*_MOVES, *COLLECTIVES) and each.outputs
            }
            if len(sizes) == 1:
                (made,) = sizes
                if _parts_of([made], [out]):
                    own = [
                        [1 if n == 1 else m for n, m in zip(shape, made or (), strict=True)] if shape else ()
                        for shape in shapes
                    ]
                    return _with(op, own[: len(op.inputs)], own[len(op.inputs) :])
        return op._replace(attrs=dict(op.attrs, **{CUT: PART_NOT_SHOWN}))

    def _add_collectives(self, equation: Any, runs: Runs, names: tuple[str, ...]) -> None:
        """The collectives that XLA made of this equation, or for it."""
        name = equation.primitive.name
        for each in self._made_of(equation):
            if _is_passing(each):
                known = not each.looped and not (each.turned and name in LOOPS)
                op = self._collective(each, runs, records.layer_of(names, self.root), known)
                whole = self._op(equation, runs, names)
                if name in OVER_DEVICES and len(whole.inputs) == len(op.inputs) == 1:
                    shapes = [tensor.shape for tensor in (*op.inputs, *op.outputs)]
                    attrs = {**op.attrs, **_with(whole, shapes[:1], shapes[1:]).attrs}
                    op = op._replace(attrs={key: attrs[key] for key in (GROUP, WHOLE) if key in attrs})
                self.add(op, runs.copies)

    def add_unplaced(self) -> None:
        """Add the collectives that XLA made of no equation, such as those for an argument."""
        for each in self.part.at.get(None, ()):
            if _is_passing(each):
                self.add(self._collective(each, ONCE, "", not each.turned))

    def _collective(self, each: Piece, runs: Runs, layer: str, known: bool) -> Op:
        """Without its group if it is not ``known`` how often it runs."""
        kind = each.opcode.removesuffix("-start")
        group = group_of(each.attrs, self.rank, self.part.devices) if known else None
        attrs = {}
        if group is not None:
            reduce = _KINDS.get(each.step, each.step)
            attrs[GROUP] = {"ranks": group, "place": group.index(self.rank), "reduce": reduce}
        return Op("", f"hlo.{kind}", layer, each.inputs, each.outputs, attrs, runs.calls, runs.phase)


def _is_passing(each: Piece) -> bool:
    return each.opcode.removesuffix("-start") in COLLECTIVES


def _is_alike(op: Op, found: Piece) -> bool:
    """Whether an instruction multiplies along the dimensions that the equation names, in as many groups."""
    if found.opcode == "dot":
        (contracted, _), _ = op.attrs["dimension_numbers"]
        return hlo.numbers(found.attrs.get("lhs_contracting_dims", "")) == list(contracted)
    groups = ("feature_group_count", "batch_group_count")
    return all(int(found.attrs.get(name, 1)) == int(op.attrs[name]) for name in groups)


def _group_refusal(op: Op, found: Sequence[Piece], copies: int) -> str:
    """Why a product of groups is not known to be a device's as it stands, '' if XLA left it whole, as within ``shard_map``."""
    if not found:
        return NO_PRODUCT_OF_ITS_OWN
    ((contracted, _), _), (ragged,), _ = op.attrs["ragged_dot_dimension_numbers"]
    groups = _size((op.inputs[2].shape or ())[-1:])
    times = (groups, groups if ragged in contracted else 1, 1)
    tensors = zip(times, (*op.inputs[:2], *op.outputs), strict=True)
    whole = [each * _size(tensor.shape) for each, tensor in tensors]
    sizes = [[_size(tensor.shape) for tensor in (*each.inputs, *each.outputs)] for each in found]
    uncut = len(found) <= copies and not any(each.looped for each in found) and sizes == [whole] * len(found)
    return "" if uncut else NOT_FOLLOWED


def _with(op: Op, inputs: Sequence[Any], outputs: Sequence[Any]) -> Op:
    """The op with a device's shapes; those of the whole stay beside them where they differ."""
    whole = {"inputs": [list(t.shape or ()) for t in op.inputs], "outputs": [list(t.shape or ()) for t in op.outputs]}
    own = {"inputs": [list(shape) for shape in inputs], "outputs": [list(shape) for shape in outputs]}
    return op._replace(
        inputs=tuple(Tensor(tuple(shape), t.dtype) for t, shape in zip(op.inputs, inputs, strict=True)),
        outputs=tuple(Tensor(tuple(shape), t.dtype) for t, shape in zip(op.outputs, outputs, strict=True)),
        attrs=op.attrs if own == whole else dict(op.attrs, **{WHOLE: whole}),
    )


def _parts_of(parts: Sequence[Any], whole: Sequence[Any]) -> bool:
    """Whether these shapes can be parts of those: as many dimensions, none of them larger but for padding to equal parts."""
    return len(parts) == len(whole) and all(
        part is not None and each is not None and len(part) == len(each)
        and all(a is not None and b is not None and a <= b for a, b in zip(part, each, strict=True))
        for part, each in zip(parts, whole, strict=True)
    )  # fmt: skip


def _spreads(shape: Any, out: Any) -> bool:
    """Whether values of this shape meet those of another element by element: a single value, or one along some dimensions."""
    return not shape or (len(shape) == len(out or ()) and all(n in (1, m) for n, m in zip(shape, out, strict=True)))


def _size(shape: Any) -> int:
    """Elements of a tensor of this shape."""
    return math.prod(int(size or 0) for size in shape or ())


def _products(op: Op) -> int:
    """Multiply-adds of a product, those of a convolution with padding included."""
    out = _size(op.outputs[0].shape)
    if op.op == "lax.dot_general":
        (contracted, _), _ = op.attrs["dimension_numbers"]
        return out * math.prod(int((op.inputs[0].shape or ())[axis] or 0) for axis in contracted)
    kernel = [int(size or 0) for size in op.inputs[1].shape or ()]
    features = op.attrs["dimension_numbers"][1][0]
    return out * math.prod(kernel) // (kernel[features] or 1)
