"""Dependencies in a training step's graph: whether each tensor depends on the model's inputs or on trained variables.

The phases of ops are computed from them (phases.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .gradients import Call
from .graphs import graph as tf_graph

GIVEN, TRAINED = 1, 2
"""A value depends on the model's inputs; on a trained variable."""

SHAPES = frozenset(["Shape", "ShapeN", "Size", "Rank", "VariableShape", "TensorListLength", "TensorListElementShape"])
"""Ops that give the shape or size of a value, not the value."""

METRICS = "metrics"
"""The part of a step that computes metrics."""

Key = tuple[int, str, int]


@dataclass(frozen=True)
class Step:
    """A training step's graph and its parts: ops are numbered in the order in which they were made.

    ``parts`` says of each op whose it is: FORWARD the model's call, LOSS, METRICS, BACKWARD the gradients, or OPTIMIZER.
    ``spans`` are (start, end) of the gradients that were taken at once, ``updates`` (start, end, layer) of one variable's
    step each. ``inputs`` are the tensors that depend on no variable, and ``trained`` the handles of the variables.
    """

    graph: Any
    inputs: tuple[Any, ...]
    trained: tuple[Any, ...]
    parts: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    updates: tuple[tuple[int, int, str], ...]
    calls: tuple[Call, ...]


def identity(graph: Any) -> int:
    """The same for a function's graph and for that graph with other shapes (shapes.py)."""
    return id(getattr(graph, "shaped_from", graph))


def key(tensor: Any) -> Key:
    """A tensor by its graph, op and output."""
    return identity(tensor.graph), tensor.op.name, tensor.value_index


def bodies(op: Any) -> list[Any]:
    """Graphs of the functions that an op calls; an empty list if one of them is missing."""
    graphs = []
    attributes = tf_graph.attributes(op)
    for attribute in tf_graph.CALLS.get(op.type, ()):
        names = attributes.get(attribute, [])
        for name in names if isinstance(names, list) else [names]:
            try:
                graphs.append(tf_graph.function_graph(op.graph, name))
            except LookupError:
                return []
    return graphs


def operands(op: Any) -> list[Any]:
    """The tensors that an op passes to the functions that it calls."""
    chooses = op.type in ("If", "StatelessIf", "Case", "StatelessCase")
    return list(op.inputs)[1:] if chooses else list(op.inputs)


class Flow:
    """The dependencies of every tensor, function bodies included."""

    def __init__(self, step: Step) -> None:
        self.flags: dict[Key, int] = {}
        for tensor in step.inputs:
            self._add(tensor, GIVEN)
        for tensor in step.trained:
            self._add(tensor, TRAINED)
        self._spread_graph(step.graph)

    def of(self, tensor: Any) -> int:
        """Flags of a tensor; a tensor that is not in a graph belongs to a variable and has none."""
        return 0 if hasattr(tensor, "numpy") or not hasattr(tensor, "graph") else self.flags.get(key(tensor), 0)

    def _add(self, tensor: Any, flags: int) -> None:
        tensor_key = key(tensor)
        self.flags[tensor_key] = self.flags.get(tensor_key, 0) | flags

    def _spread_graph(self, graph: Any) -> None:
        for op in graph.get_operations():
            if op.type in SHAPES:
                continue
            inside = bodies(op) if op.type in tf_graph.CALLS else []
            if inside:
                for out, flags in zip(op.outputs, self._through(op, inside), strict=False):
                    self._add(out, flags)
                continue
            flags = 0
            for tensor in op.inputs:
                flags |= self.of(tensor)
            if flags:
                for out in op.outputs:
                    self._add(out, flags)

    def _through(self, op: Any, inside: Sequence[Any]) -> list[int]:
        """Flags of the results of a call; a loop variable has those of every iteration."""
        handed = [self.of(tensor) for tensor in operands(op)]
        if op.type.endswith("While"):
            while True:
                back = self._body(inside[1], handed)
                grown = [a | b for a, b in zip(handed, back, strict=False)]
                if grown == handed:
                    return handed
                handed = grown
        flags = [0] * len(op.outputs)
        for body in inside:
            flags = [a | b for a, b in zip(flags, self._body(body, handed), strict=False)]
        return flags

    def _body(self, graph: Any, handed: Sequence[int]) -> list[int]:
        for tensor, flags in zip(graph.inputs, handed, strict=False):
            self._add(tensor, flags)
        self._spread_graph(graph)
        return [self.of(tensor) for tensor in graph.outputs]
