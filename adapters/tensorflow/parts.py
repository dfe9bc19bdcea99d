"""Assigns each op of a Keras model's own training step to a part (forward, loss, metrics, gradients, optimizer) as it is built.

A step that a user wrote has its parts in any order, and some of them twice. So each part is noted where it is called:
the layers of Keras, the gradients of a tape, the optimizers and the metrics of the model. What is called inside another part
belongs to that part. The rest of the step is the loss; what it computes of gradients alone is the optimizer's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from ...core.records import BACKWARD, FORWARD, LOSS, OPTIMIZER
from .gradients import Call, size
from .step_graph import METRICS

TAKES = ("gradient", "jacobian", "batch_jacobian")
"""The methods of a tape that take gradients."""


class Parts:
    """The parts of the graph that ``begin`` was told: (start, end, part), ops numbered in the order in which they were made."""

    def __init__(self, owner: Callable[[Any], str]) -> None:
        self.owner = owner  # layer of a variable
        self.graph: Any = None
        self.spans: list[tuple[int, int, str]] = []
        self.updates: list[tuple[int, int, str]] = []
        self.stepped: list[Any] = []  # optimizers that were applied, also within a branch of the graph
        self._within = False

    def begin(self, graph: Any) -> None:
        """Take notes of this graph, and forget those of another one."""
        self.graph, self.spans, self.updates, self.stepped = graph, [], [], []

    def run_part(self, part: str, call: Callable[[], Any]) -> Any:
        """The result of a call whose ops belong to the part, unless it is inside another part or in another graph."""
        if self._within or not self._here():
            return call()
        start = size(self.graph)
        self._within = True
        try:
            return call()
        finally:
            self._within = False
            self.spans.append((start, size(self.graph), part))

    def run_update(self, variable: Any, call: Callable[[], Any]) -> Any:
        """The result of one variable's update."""
        if not self._here():
            return call()
        start = size(self.graph)
        done = call()
        self.updates.append((start, size(self.graph), self.owner(variable)))
        return done

    def _here(self) -> bool:
        import tensorflow as tf

        return self.graph is not None and tf.compat.v1.get_default_graph() is self.graph

    def gradients(self) -> tuple[tuple[int, int], ...]:
        """The spans of gradients that were taken at once."""
        return tuple((start, end) for start, end, part in self.spans if part == BACKWARD)

    def of_ops(self, calls: Iterable[Call]) -> tuple[str, ...]:
        """The part of every op of the graph."""
        every = self.graph.get_operations()
        parts = [""] * len(every)
        for start, end, part in self.spans:
            parts[start:end] = [part] * (end - start)
        differentiated = {call.forward for call in calls if call.graph is self.graph}
        of_gradients: set[str] = set()
        for index, op in enumerate(every):
            if parts[index] == BACKWARD:
                of_gradients.add(op.name)
            elif not parts[index]:
                follows = any(tensor.op.name in of_gradients for tensor in op.inputs)
                parts[index] = OPTIMIZER if follows and op.name not in differentiated else LOSS
                if parts[index] == OPTIMIZER:
                    of_gradients.add(op.name)
        return tuple(parts)


@contextmanager
def noted_parts(model: Any, parts: Parts) -> Iterator[None]:
    """Within this block the parts of the step that runs are noted. Neither the model nor Keras stays changed."""
    import tensorflow as tf

    layer = next(base for base in type(model).__mro__ if base.__name__ == "Layer")
    noted = [(layer, "__call__", FORWARD), *((tf.GradientTape, name, BACKWARD) for name in TAKES)]
    for metric in _metrics(model):
        noted += [(metric, "update_state", METRICS), (metric, "result", METRICS)]
    optimizers = optimizers_of(model)
    noted += [(optimizer, name, OPTIMIZER) for optimizer in optimizers for name in ("apply", "apply_gradients")]
    with ExitStack() as stack:
        for owner, name, part in noted:
            stack.enter_context(_replace_method(owner, name, functools.partial(_as_part, parts, part, owner)))
        for optimizer in optimizers:
            stack.enter_context(_replace_method(optimizer, "update_step", functools.partial(_as_update, parts)))
        yield


def _as_part(parts: Parts, part: str, owner: Any, method: Any) -> Any:
    @functools.wraps(method)
    def call_noted(*args: Any, **named: Any) -> Any:
        if part == OPTIMIZER:
            parts.stepped.append(owner)
        return parts.run_part(part, lambda: method(*args, **named))

    return call_noted


def _as_update(parts: Parts, method: Any) -> Any:
    @functools.wraps(method)
    def update_noted(gradient: Any, variable: Any, *rest: Any, **named: Any) -> Any:
        return parts.run_update(variable, lambda: method(gradient, variable, *rest, **named))

    return update_noted


@contextmanager
def _replace_method(owner: Any, name: str, wrapped: Callable[[Any], Any]) -> Iterator[None]:
    """Within this block ``wrapped`` stands for a method of a class or an object; nothing happens if it has none.

    Keras and TensorFlow watch what is set on their objects, so this goes around them.
    """
    if not hasattr(owner, name):
        yield
        return
    put, remove = (setattr, delattr) if isinstance(owner, type) else (object.__setattr__, object.__delattr__)
    own = vars(owner).get(name)
    put(owner, name, wrapped(getattr(owner, name)))
    try:
        yield
    finally:
        if own is None:
            remove(owner, name)
        else:
            put(owner, name, own)


def optimizers_of(model: Any) -> list[Any]:
    """The optimizers that the model has as attributes, and those inside them, which a scaled loss needs."""
    found: list[Any] = []
    stack = list(vars(model).values())
    while stack:
        value = stack.pop()
        if hasattr(value, "apply_gradients") and hasattr(value, "get_config") and all(value is not f for f in found):
            found.append(value)
            stack.extend(vars(value).values())
    return found


def _metrics(model: Any) -> list[Any]:
    """The metrics that the step updates; Keras' own of the loss is missing where a model lists only its own."""
    return [*model.metrics, *filter(None, [getattr(model, "_loss_tracker", None)])]
