"""Tells watch.py of a call of a jitted function: whether its trace is a training step, that trace's key, and its devices."""

from __future__ import annotations

import sys
from typing import Any

import jax
from jax._src import core

from ...core.records import BACKWARD, OPTIMIZER
from ..shared import adapter
from . import closures, layers, model, phases, trace


def at_top() -> bool:
    """Whether JAX traces nothing now."""
    return bool(core.trace_state_clean())


def step_of(function: Any, positional: tuple[Any, ...], named: dict[str, Any]) -> str:
    """The last phase of this call's trace: OPTIMIZER of a whole step, BACKWARD of one without an update, '' of a call without a
    backward pass. Raises whatever the function raises."""
    call = model.call(function, positional, named)
    try:
        closed = phases.mark_optimizer(trace.program(call.function, call.arguments))
    finally:
        fresh(function, positional, named)
    if not phases.differentiates(closed.jaxpr):
        return ""
    return OPTIMIZER if phases.updates(closed.jaxpr) else BACKWARD


def shapes_of(given: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """What JAX traces a function anew for, as a key: the structure, the shapes, and values that are no numbers."""
    leaves, tree = jax.tree.flatten((given, named))
    found = tuple(map(_shape, leaves))
    try:
        hash((tree, found))
    except TypeError:  # a module of nnx may hold a list, say
        return tuple(map(str, found))
    return tree, found


def devices(given: tuple[Any, ...], named: dict[str, Any]) -> int:
    """On how many devices the arrays of a call are."""
    placed = (getattr(getattr(leaf, "sharding", None), "device_set", ()) for leaf in jax.tree.leaves((given, named)))
    return max(map(len, placed), default=1)


def _shape(leaf: Any) -> Any:
    if adapter.is_leaf(leaf):
        return tuple(leaf.shape), str(leaf.dtype)
    return type(leaf) if isinstance(leaf, (int, float, complex)) and not isinstance(leaf, bool) else leaf


def fresh(function: Any, positional: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Clear JAX's caches of a function with nnx objects: they hold objects of this trace, and the program must use its own."""
    if "flax.nnx" in sys.modules and (layers.inside((positional, named)) or closures.find_places(function)):
        jax.clear_caches()
