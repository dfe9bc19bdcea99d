"""PassRecorder: records all backward passes of a program's own step, several in one step and gradients of gradients included.

How an op is assigned to a node and a phase is in adapters/pytorch/phases.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from ....core.records import BACKWARD, INPUT_GRADIENT, LOSS, LOSS_LAYER, WEIGHT_GRADIENT, Op
from ..phases import TrainingRecorder
from ..tracing.followed_calls import is_transformed
from ..tracing.nodes import TrainingPath, is_leaf, is_recomputing, newest
from .path import StepPath
from .signature import Signed

SCRIPT = "DifferentiableGraph"
"""Name of the node that TorchScript makes of several layers."""


@dataclass
class Pass:
    """A backward pass that runs: whether its gradients are ``followed`` themselves, whether a node's results are ``wrapped`` and
    so not its own, as torch.func has it, and how many modules ran when it began."""

    followed: bool
    wrapped: bool
    depth: int


class PassRecorder(TrainingRecorder):
    """Follows every backward pass of a step. What derives from it says where an op that is no gradient belongs."""

    path: StepPath

    def __init__(self) -> None:
        super().__init__(TrainingPath(torch.nn.Module()), torch.nn.Module())
        self.passes = 0  # backward passes
        self._running: list[Pass] = []
        self._began = newest()  # nodes before this one were made before the step
        self._scripts: dict[int, bool] = {}  # by node: whether it is the gradients of a script
        self._weights: dict[int, Any] = {}  # storages of weights, which no pass lets go

    def count(self, op: Op, layer: str, phase: str) -> None:
        """A call of the op in this layer and phase."""
        raise NotImplementedError

    @contextmanager
    def run_backward(self, create_graph: bool) -> Iterator[None]:
        """Within this, a backward pass runs."""
        self._running.append(Pass(create_graph, is_transformed(), len(self.path.running_paths)))
        try:
            with self.inside():
                yield
        finally:
            self.path.unwind(self._running.pop().depth)
            if not self._nested:
                # what prepares a step, or shows that a trace is whole, is none of its passes
                self.passes += not self.paused
                self.path.losing = False
                self._clean = dict(self._weights)  # what was computed from weights is let go

    def _again(self) -> bool:
        """Whether what runs now is recomputed; a pass whose gradients are followed turns gradients on, too."""
        return is_recomputing() and not (self._running and self._running[-1].followed)

    def _phase_at_leaf(self, node: Any) -> str:
        return INPUT_GRADIENT if id(node.variable) in self._detached else WEIGHT_GRADIENT

    def _phase_of(self, node: int, goal: int) -> str:
        return LOSS if self.path.made_in(node) == LOSS_LAYER else super()._phase_of(node, goal)

    def _gradient(self, node: Any, op: Op, signed: Signed, out: Any, made: int) -> None:
        """An op of a backward pass; ``made`` is the number after a node that was made for it."""
        if made:
            self._newest = made
            if self._running and self._running[-1].followed:
                self.path.at(op.layer, made - 1)
        if is_leaf(node):
            self.count(op, op.layer, self._phase_at_leaf(node))
        elif self._untold(node):
            self.count(op, op.layer, BACKWARD)
        else:
            self._backward(node._sequence_nr(), op, signed.inputs, out)

    def _untold(self, node: Any) -> bool:
        """Whether it cannot be told what this node's results are for: its gradients are wrapped, it was made before the step, its
        pass was begun otherwise than by torch.autograd, or it is all of a script."""
        number = node._sequence_nr()
        if number < self._began or number not in self._slots or not self._running or self._running[-1].wrapped:
            return True
        script = self._scripts.get(number)
        if script is None:
            script = self._scripts[number] = SCRIPT in node.name()
        return script
