"""Instructions that JAX writes into a program and that XLA drops as it reads it: ``x + 0``, or what it can compute at once."""

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
BODIES = ("stablehlo.while",)
"""Operations whose programs run as they stand; those of any other, a reduction's step say, belong to it."""
COMPLEX = {"complex<f32>": "c64", "complex<f64>": "c128", "i1": "pred"}


def dropped(module: Any, read: list[Sighting], root: str) -> list[Sighting]:
    """The instructions of JAX's module (StableHLO) that XLA's program has not, which ``read`` are: by layer, primitive, kind and
    shape."""
    kept = Counter(map(_kind, (sighting.op for sighting in read)))
    found = []
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
        """Those of a function that is called within these scopes."""
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
            elif op.name.startswith("stablehlo.") and not list(op.regions):
                kind, attrs = (
                    op.name.partition(".")[2].replace("_", "-"),
                    {"primitive": path.rpartition("/")[2], DROPPED: True},
                )
                inputs, outputs = (
                    tuple(_tensor(str(value.type)) for value in side) for side in (op.operands, op.results)
                )
                yield Op("", "hlo." + kind, layer_of(around, self.root), inputs, outputs, attrs, 1, "forward", ())


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
    return Tensor(
        tuple(int(size) if size.isdigit() else None for size in found[1].split("x") if size), hlo.dtype(name.lower())
    )
