"""Finds the instructions of JAX's program (StableHLO) that XLA removes as it parses it: ``x + 0``, or what it folds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from ....core.records import LIVE, Op, Sighting, Tensor
from ...jax import hlo
from ...jax.records import layer_of
from .. import SUM
from . import DROPPED
from .scopes import scopes_of

_NAME = re.compile(r'^loc\("((?:[^"\\]|\\.)*)"')
_RANKED = re.compile(r"^tensor<((?:[\d?]+x)*)([a-z]\w*|complex<f\d+>)[>,]")
MOVES = frozenset((
    "parameter", "constant", "tuple", "get-tuple-element", "iota", "broadcast", "reshape", "transpose", "slice",
    "dynamic-slice", "dynamic-update-slice", "reverse", "concatenate", "copy", "copy-start", "copy-done", "pad", "bitcast",
    "gather", "after-all", "add-dependency", "optimization-barrier", "async-update", "async-done", "all-gather",
    "all-gather-start", "all-gather-done", "all-to-all", "collective-permute", "collective-permute-start",
    "collective-permute-done", "partition-id", "replica-id", "domain",
))  # fmt: skip
"""Instructions that move values, which the analysis leaves at 0."""
NOT_SINGLE = ("broadcast-in-dim", "dot-general", "convolution", "return", "custom-call", "composite")
"""Operations of StableHLO that are no single operations; as many of a product as JAX writes are in XLA's program."""
ONE = {"square": "multiply", "tan": "tan", "erf": "erf"}
"""Operations of the dialect above StableHLO (CHLO) that are one instruction; any other is several."""
BODIES = ("stablehlo.while", "stablehlo.case", "stablehlo.if")
"""Operations whose programs run as they stand; those of any other, a reduction's step say, belong to it."""
COMPLEX = {"complex<f32>": "c64", "complex<f64>": "c128", "i1": "pred"}


def dropped_sightings(module: Any, read: list[Sighting], root: str) -> list[Sighting]:
    """The instructions of JAX's module (StableHLO) that XLA's program lacks, by layer, primitive, kind and shape.

    ``read`` are the instructions of XLA's program.
    """
    kept = Counter(map(_kind, (sighting.op for sighting in read)))
    found = list[Sighting]()
    for op in _Written(module, root).through("main", ()):
        kind = _kind(op)
        if kept[kind]:
            kept[kind] -= 1
        else:
            found.append(Sighting(op._replace(id=f"{DROPPED}/{len(found)}"), SUM, LIVE))
    return found


def _kind(op: Op) -> tuple[Any, ...]:
    return (op.layer, op.attrs["primitive"], op.op, op.outputs)


class _Written:
    """The elementwise operations of a module in StableHLO, call by call."""

    def __init__(self, module: Any, root: str) -> None:
        self.root = root
        self.functions = {op.attributes["sym_name"].value: op for op in _inside(module.operation)}

    def through(self, function: str, names: tuple[str, ...]) -> Iterator[Op]:
        """The operations of a function that is called within these scopes."""
        yield from self._of(self.functions[function], names)

    def _of(self, operation: Any, names: tuple[str, ...]) -> Iterator[Op]:
        for op in _inside(operation):
            label = _NAME.match(str(op.location))
            path = label[1] if label else ""
            around = scopes_of(path, names)
            if op.name in ("func.call", "call"):
                yield from self.through(op.attributes["callee"].value, around)
            elif op.name in BODIES:
                yield from self._of(op, around)
            elif (kind := _opcode(op)) is not None:
                attrs = {"primitive": path.rpartition("/")[2], DROPPED: True}
                inputs, outputs = ([_tensor(str(value.type)) for value in side] for side in (op.operands, op.results))
                layer = layer_of(around, self.root)
                yield Op("", f"hlo.{kind}", layer, tuple(inputs), tuple(outputs), attrs, 1, "forward", ())


def _opcode(op: Any) -> str | None:
    """The instruction that a single operation is, None for any other."""
    dialect, _, name = op.name.partition(".")
    kind = name.replace("_", "-")
    if dialect == "chlo":
        return ONE.get(kind)
    return kind if dialect == "stablehlo" and not list(op.regions) and kind not in (*MOVES, *NOT_SINGLE) else None


def _inside(operation: Any) -> Iterator[Any]:
    """The operations in the programs of one."""
    for region in operation.regions:
        for block in region:
            for op in block:
                yield op.operation


def _tensor(text: str) -> Tensor:
    """``tensor<5x4xf32>`` as a record; of another type, a token say, without a shape."""
    found = _RANKED.match(text)
    if not found:
        return Tensor((), "token")
    name = COMPLEX.get(found[2], found[2])
    name = f"s{name[1:]}" if name[0] == "i" else f"u{name[2:]}" if name.startswith("ui") else name
    sizes = tuple(int(size) if size.isdigit() else None for size in found[1].split("x") if size)
    return Tensor(sizes, hlo.dtype(name.lower()))
