"""Propagates two flags through a training step's graph, loops and branches included: depends on the model's inputs, depends on a
trained variable. The phases of ops are computed from them (phases.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .graphs import graph as tf_graph
from .step_graph import Key, Step, bodies, key, operands

FROM_INPUT, TRAINED = 1, 2
"""A value depends on the model's inputs; on a trained variable."""

SHAPES = frozenset(["Shape", "ShapeN", "Size", "Rank", "VariableShape", "TensorListLength", "TensorListElementShape"])
"""Ops that give the shape or size of a value, not the value."""


class Dependencies:
    """The flags of every tensor, those in function bodies included."""

    def __init__(self, step: Step) -> None:
        self.flags: dict[Key, int] = {}
        for tensor in step.inputs:
            self._add(tensor, FROM_INPUT)
        for tensor in step.trained:
            self._add(tensor, TRAINED)
        self._propagate(step.graph)

    def flags_of(self, tensor: Any) -> int:
        """Flags of a tensor; a tensor that is not in a graph belongs to a variable and has none."""
        return 0 if hasattr(tensor, "numpy") or not hasattr(tensor, "graph") else self.flags.get(key(tensor), 0)

    def _add(self, tensor: Any, flags: int) -> None:
        tensor_key = key(tensor)
        self.flags[tensor_key] = self.flags.get(tensor_key, 0) | flags

    def _propagate(self, graph: Any) -> None:
        for op in graph.get_operations():
            if op.type in SHAPES:
                continue
            inside = bodies(op) if op.type in tf_graph.CALLS else []
            if inside:
                for out, flags in zip(op.outputs, self._call_flags(op, inside), strict=False):
                    self._add(out, flags)
                continue
            flags = 0
            for tensor in op.inputs:
                flags |= self.flags_of(tensor)
            if flags:
                for out in op.outputs:
                    self._add(out, flags)

    def _call_flags(self, op: Any, inside: Sequence[Any]) -> list[int]:
        """Flags of the results of a call; a loop variable has those of every iteration."""
        argument_flags = [self.flags_of(tensor) for tensor in operands(op)]
        if op.type.endswith("While"):
            while True:
                back = self._body_flags(inside[1], argument_flags)
                grown = [a | b for a, b in zip(argument_flags, back, strict=False)]
                if grown == argument_flags:
                    return argument_flags
                argument_flags = grown
        flags = [0] * len(op.outputs)
        for body in inside:
            flags = [a | b for a, b in zip(flags, self._body_flags(body, argument_flags), strict=False)]
        return flags

    def _body_flags(self, graph: Any, argument_flags: Sequence[int]) -> list[int]:
        for tensor, flags in zip(graph.inputs, argument_flags, strict=False):
            self._add(tensor, flags)
        self._propagate(graph)
        return [self.flags_of(tensor) for tensor in graph.outputs]
