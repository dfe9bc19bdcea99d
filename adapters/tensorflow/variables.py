"""The trained variables of a model in a graph, and the layers that have them."""

from __future__ import annotations

from typing import Any

from ..shared.keras_model import layer_paths


def handle_of(variable: Any) -> Any:
    """The handle of a variable of Keras or TensorFlow, by which a graph captures it."""
    value = getattr(variable, "value", variable)
    return getattr(variable, "handle", None) if callable(value) else value.handle


def handles_in(graph: Any, variables: list[Any]) -> tuple[Any, ...]:
    """The handles of the variables that a graph uses."""
    wanted = {id(handle_of(variable)) for variable in variables}
    return tuple(inside for outside, inside in graph.captures if id(outside) in wanted)


def owners_of(model: Any) -> dict[int, str]:
    """Layer of each trained variable, by its handle's identity: the innermost layer that has it."""
    owners: dict[int, str] = {}
    for layer, path in layer_paths(model):
        for variable in getattr(layer, "trainable_variables", ()):
            if path.count(".") >= owners.get(id(handle_of(variable)), "").count("."):
                owners[id(handle_of(variable))] = path
    return owners
