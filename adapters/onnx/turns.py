"""How often a loop runs whose condition constants decide: what decides it is evaluated turn by turn, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .external_data import value_of
from .shapes import evaluate

MOST = 1000
"""The most turns that are evaluated."""


def count_turns(
    body: Any, trips: int, first: Sequence[str], constant: Callable[[str], Any], opsets: Mapping[str, int]
) -> int | None:
    """The turns of a loop that begins, of at most ``trips``. None if they depend on what is no constant, or are more than MOST.

    ``first`` are the names of the state's first values; ``constant`` gives the tensor of a constant, None for anything else.
    """
    import numpy

    turn, goes_on, *state = (value.name for value in body.input)
    condition, *results = (value.name for value in body.output)
    begins, ends = dict(zip(state, first)), dict(zip(state, results))  # noqa: B905
    nodes, read = _find_deciding(body, condition, ends)
    values: dict[str, Any] = {}
    for name in read - {turn, goes_on}:
        tensor = constant(begins.get(name, name))
        if tensor is None:
            return None
        values[name] = value_of(tensor)
    for turns in range(min(trips, MOST)):
        values.update({turn: numpy.array(turns), goes_on: numpy.array(True)})
        for node in nodes:
            found = evaluate(node, values, opsets)
            if found is None:
                return None
            values[node.output[0]] = found
        if not values[condition]:
            return turns + 1
        values.update({name: values[ends[name]] for name in state if name in read})
    return trips if trips <= MOST else None


def _find_deciding(body: Any, condition: str, ends: Mapping[str, str]) -> tuple[list[Any], set[str]]:
    """The nodes that decide whether a loop goes on, in order, and the names that they read from outside of them."""
    makers = {name: index for index, node in enumerate(body.node) for name in node.output}
    pending, seen = [condition], set[str]()
    while pending:
        name = pending.pop()
        if name and name not in seen:
            seen.add(name)
            pending += body.node[makers[name]].input if name in makers else [ends[name]] if name in ends else []
    return [body.node[i] for i in sorted({makers[name] for name in seen if name in makers})], seen - makers.keys()
