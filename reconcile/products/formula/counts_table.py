"""``Table``: every count (total, layer or op) of a model at each point that was run, None where it has none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...engine.answer import Answer
from .amounts import CAUSE, Amounts, amounts, find_closed
from .variables import At


class Key(NamedTuple):
    """A count: ``of`` a trace, a counter or a cause, in ``layer`` (None: all layers), by ``op`` (None: all of its ops)."""

    of: str
    layer: str | None = None
    op: str | None = None


class Table:
    """The counts of the runs of a model by ``Key`` and point; ``values`` gives those of a key."""

    def __init__(self, runs: Mapping[At, Answer]) -> None:
        self.points = tuple(runs)
        self._amounts = {at: amounts(result) for at, result in runs.items()}
        self._closed = {at: find_closed(result) for at, result in runs.items()}
        self.names = tuple(dict.fromkeys(name for named in self._amounts.values() for name in named))

    def values(self, key: Key, points: Sequence[At] = ()) -> dict[At, int | None]:
        """The count at these points, by default at all."""
        return {at: self._value(key, at) for at in points or self.points}

    def counts(self) -> list[Key]:
        """Every total and every layer."""
        layers = [Key(name, layer) for name in self.names for layer in self._parts(name)]
        return [*map(Key, self.names), *layers]

    def ops(self, key: Key) -> list[Key]:
        """The ops of a layer."""
        named = (self._amounts[at].get(key.of, Amounts()).ops for at in self.points)
        return [
            Key(*key[:2], op) for op in dict.fromkeys(op for ops in named for layer, op in ops if layer == key.layer)
        ]

    def reason(self, name: str) -> str:
        """Why this has no total at a point, '' if it has one at every point."""
        for at in self.points:
            amounts_ = self._amounts[at].get(name)
            if amounts_ is not None and amounts_.total is None:
                return amounts_.reason
        return ""

    def _parts(self, name: str) -> list[str]:
        named = (self._amounts[at].get(name, Amounts()).layers for at in self.points)
        return list(dict.fromkeys(layer for layers in named for layer in layers))

    def _value(self, key: Key, at: At) -> int | None:
        """The count at a point. Where a total is known, a layer that it does not contain counts 0."""
        made = self._amounts[at].get(key.of)
        if made is None:
            return 0 if key.of.startswith(CAUSE) and key.of.split(":", 2)[2] in self._closed[at] else None
        if key.layer is None:
            return made.total
        without = None if made.total is None else 0
        if key.op is None:
            return made.layers.get(key.layer, without)
        return made.ops.get((key.layer, key.op), without)
