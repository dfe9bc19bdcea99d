"""The phases and layers of the ops of a TensorFlow training step, computed from the records of its gradient functions.

The definitions are those of pytorch/phases.py:

* An op that a gradient function adds to the graph belongs to the layer of the forward op.
* It is a ``weight-gradient`` if its result flows only into gradients of variables, or of values computed from variables
  alone; otherwise it is an ``input-gradient``, also if both kinds of gradient use its result, or no gradient does.
* The sum of two gradients belongs to the layer that receives the sum.
* Forward ops that a gradient function recomputes for its gradient are ``recomputation``.

The body of a loop, a branch or a call is analyzed with the goals of the results of its call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...core.records import FORWARD, INPUT_GRADIENT, LOSS, LOSS_LAYER, OPTIMIZER, RECOMPUTATION, WEIGHT_GRADIENT
from .dependencies import FROM_INPUT, TRAINED, Dependencies
from .gradients import Call
from .graphs import graph as tf_graph
from .step_graph import METRICS, Key, Step, bodies, identity, key

FOR_WEIGHT, FOR_INPUT, FOR_NOTHING_TRAINED = 1, 2, 4
"""The target of a gradient; an op may serve several. FOR_NOTHING_TRAINED: an activation that leads to no variable."""

METRICS_LAYER = "(metrics)"
"""Layer of the ops of metrics, which are reported with the loss."""

LayerAndPhase = tuple[str | None, str]
"""Layer (None: that of the call around it) and phase."""


class Goals:
    """The goals that each op of the backward pass serves, graph by graph."""

    def __init__(self, step: Step) -> None:
        self.dependencies = Dependencies(step)
        self.by_op: dict[tuple[int, str], int] = {}
        self.recomputed: set[tuple[int, str]] = set()
        self.owners: dict[tuple[int, str], list[Call]] = {}  # innermost last
        self.call_by_received_gradient: dict[Key, Call] = {}
        self._result_goals: dict[Key, int] = {}
        self._calls: dict[int, list[Call]] = {}
        for call in step.calls:
            self._calls.setdefault(identity(call.graph), []).append(call)
            for tensor in call.received:
                if hasattr(tensor, "graph") and not hasattr(tensor, "numpy"):
                    self.call_by_received_gradient.setdefault(key(tensor), call)
            for flags, gradients in zip(self._inputs(call), call.results, strict=False):
                for tensor in gradients:
                    if not hasattr(tensor, "numpy"):
                        self._result_goals[key(tensor)] = self._result_goals.get(key(tensor), 0) | _goal(flags)
        self._assign_goals(step.graph, step.spans, {}, FOR_WEIGHT)

    def _inputs(self, call: Call) -> list[int]:
        """Flags of the forward op's inputs; for a loop, their flags inside the loop."""
        op = call.outputs[0].op if call.outputs else None
        if op is not None and op.type in ("While", "StatelessWhile"):
            inside = bodies(op)
            if inside:
                return [self.dependencies.flags_of(tensor) for tensor in inside[1].inputs]
        return [self.dependencies.flags_of(tensor) for tensor in call.inputs]

    def _assign_goals(self, graph: Any, spans: Sequence[tuple[int, int]], given: dict[Key, int], default: int) -> None:
        here = identity(graph)
        every = graph.get_operations()
        ops = [op for start, end in spans for op in every[start:end]]
        owner: dict[str, Call] = {}
        span_of = {op.name: number for number, (start, end) in enumerate(spans) for op in every[start:end]}
        for call in reversed(self._calls.get(here, [])):  # a call inside another one comes before it
            for op in every[call.start : call.end]:
                owner[op.name] = call
                op_calls = self.owners.setdefault((here, op.name), [])
                if call not in op_calls:
                    op_calls.append(call)
        self._find_recomputed(here, owner, span_of, spans)
        users: dict[Key, list[Any]] = {}
        for op in ops:
            for tensor in op.inputs:
                users.setdefault(key(tensor), []).append(op)
        for op in reversed(ops):
            own = owner.get(op.name)
            needs = []
            for tensor in op.outputs:
                at = key(tensor)
                goal = self._result_goals.get(at, 0) | given.get(at, 0)
                for user in users.get(at, ()):
                    if own is None and user.name in owner:
                        goal |= self._goal_of_call(self.call_by_received_gradient.get(at, owner[user.name]))
                    elif owner.get(user.name) is own or not goal:
                        goal |= self.by_op.get((here, user.name), 0)
                needs.append(goal)
            op_goals = 0
            for goal in needs:
                op_goals |= goal
            if not op_goals:
                op_goals = self._default(own, default)
            self.by_op[here, op.name] = self.by_op.get((here, op.name), 0) | op_goals
            if op.type in tf_graph.CALLS and (here, op.name) not in self.recomputed:
                for body in bodies(op)[-1:] if op.type.endswith("While") else bodies(op):
                    inner: dict[Key, int] = {}
                    for tensor, goal in zip(body.outputs, needs, strict=False):
                        inner[key(tensor)] = inner.get(key(tensor), 0) | goal
                    self._assign_goals(body, [(0, len(body.get_operations()))], inner, op_goals)

    def _goal_of_call(self, call: Call) -> int:
        """The goal of a gradient that arrives at a call: its target is the result of the forward op."""
        return _goal(max((self.dependencies.flags_of(t) for t in call.outputs), default=0))

    def _default(self, call: Call | None, default: int) -> int:
        if call is None:
            return default
        return FOR_INPUT if any(_goal(flags) == FOR_INPUT for flags in self._inputs(call)) else FOR_WEIGHT

    def _find_recomputed(
        self, here: int, owner: dict[str, Call], span_of: dict[str, int], spans: Sequence[tuple[int, int]]
    ) -> None:
        """Ops of the backward pass whose own gradient is taken, and the ops of the same gradient function that they need.

        An op in an earlier span (a second-order gradient) is not recomputed.
        """
        for call in self._calls.get(here, []):
            span = max((number for number, (start, _) in enumerate(spans) if start <= call.start), default=0)
            stack = [t.op for t in call.outputs[:1] if not hasattr(t, "numpy") and identity(t.graph) == here]
            stack = [op for op in stack if span_of.get(op.name) == span and op.name in owner]
            while stack:
                op = stack.pop()
                if (here, op.name) in self.recomputed:
                    continue
                self.recomputed.add((here, op.name))
                own = owner[op.name]
                stack.extend(t.op for t in op.inputs if t.op.name in span_of and owner.get(t.op.name) is own)


def _goal(flags: int) -> int:
    if not flags & FROM_INPUT:
        return FOR_WEIGHT
    return FOR_INPUT if flags & TRAINED else FOR_NOTHING_TRAINED


class LayersAndPhases:
    """Layer and phase of every op of a training step, by its graph and name."""

    def __init__(self, step: Step, scopes: tf_graph.Scopes) -> None:
        self.step, self.scopes = step, scopes
        self.goals = Goals(step)
        self.step_places: dict[str, LayerAndPhase] = dict(self._list_step_places())

    def _list_step_places(self) -> Iterator[tuple[str, LayerAndPhase]]:
        step, here = self.step, identity(self.step.graph)
        layers: dict[str, str] = {}
        every = step.graph.get_operations()
        loss_ops = {op.name for op, part in zip(every, step.parts, strict=True) if part == LOSS}
        layers_of_first_gradients = layers if len(step.spans) > 1 else {}  # of gradients whose own gradient is taken
        updated = {index: layer for start, end, layer in step.updates for index in range(start, end)}
        for index, (op, part) in enumerate(zip(every, step.parts, strict=True)):
            if part == FORWARD:
                yield op.name, (self.scopes.layer(op.name), FORWARD)
            elif part in (LOSS, METRICS):
                yield op.name, (LOSS_LAYER if part == LOSS else METRICS_LAYER, LOSS)
            elif part == OPTIMIZER:
                yield op.name, (updated.get(index, ""), OPTIMIZER)
            else:
                calls = self.goals.owners.get((here, op.name), [])
                if not calls:
                    received = self.goals.call_by_received_gradient
                    calls = [received[key(t)] for t in op.outputs if key(t) in received][:1]
                if calls and calls[-1].forward in loss_ops:
                    yield op.name, (LOSS_LAYER, LOSS)
                    continue
                if calls:
                    layer = self._layer(here, op.name, calls) or layers_of_first_gradients.get(calls[-1].forward, "")
                else:
                    layer = next((layers[t.op.name] for t in op.inputs if t.op.name in layers), "")
                layers[op.name] = layer
                yield op.name, (layer, self._phase(here, op.name))

    def _layer(self, here: int, name: str, calls: Sequence[Call]) -> str:
        """The layer of the forward op; for a recomputed op, its own layer."""
        own = [name] if (here, name) in self.goals.recomputed else []
        names = [*own, *(call.forward for call in reversed(calls))]
        return next((layer for layer in map(self.scopes.layer, names) if layer), "")

    def _phase(self, here: int, name: str) -> str:
        if (here, name) in self.goals.recomputed:
            return RECOMPUTATION
        goal = self.goals.by_op.get((here, name), 0)
        if goal & FOR_INPUT or goal == FOR_NOTHING_TRAINED:
            return INPUT_GRADIENT
        return WEIGHT_GRADIENT

    def place_in_body(self, graph: Any, name: str, phase: str) -> LayerAndPhase:
        """Layer and phase of an op in the body of a call with this phase."""
        here = identity(graph)
        calls = self.goals.owners.get((here, name), [])
        layer = self._layer(here, name, calls) if calls else self.scopes.layer(name)
        if phase not in (INPUT_GRADIENT, WEIGHT_GRADIENT) or (here, name) not in self.goals.by_op:
            return layer or None, phase
        return layer or None, self._phase(here, name)
