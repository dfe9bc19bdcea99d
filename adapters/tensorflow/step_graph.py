"""A training step's graph with its parts, and what is read of any graph: keys of tensors, functions that an op calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .gradients import Call
from .graphs import graph as tf_graph

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
    try:
        return [tf_graph.function_graph(op.graph, name) for name in tf_graph.function_names(op)]
    except LookupError:
        return []


def operands(op: Any) -> list[Any]:
    """The tensors that an op passes to the functions that it calls."""
    chooses = op.type in ("If", "StatelessIf", "Case", "StatelessCase")
    return list(op.inputs)[1:] if chooses else list(op.inputs)
