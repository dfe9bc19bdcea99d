"""Records what a program's own step dispatches, with its phase and its layer.

=================  ==============================================================================================
forward            within a call of a model
loss               outside of models, after a model's call: on values that gradients flow through, and its gradients
input-gradient,    see adapters/pytorch/phases.py; also where a program takes gradients of gradients
weight-gradient
recomputation      what a checkpoint of either kind computes again
optimizer          within ``step`` of any optimiser; a model that a closure calls there is its forward pass
other              everything else, by the function that the program calls: ``clip_grad_norm_``
=================  ==============================================================================================

Nothing stands in for a call: fused attention, recurrent layers and checkpoints run as the program has them run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from ....core.records import (
    BACKWARD,
    FORWARD,
    IN_HOOK,
    INPUT_GRADIENT,
    LOSS,
    LOSS_LAYER,
    ON_THREAD,
    OPTIMIZER,
    OTHER,
    RECOMPUTATION,
    WEIGHT_GRADIENT,
    Op,
)
from ..phases import TrainingRecorder
from ..trace import LIFTED, Recorder, is_work
from ..tracing.followed_calls import is_transformed
from ..tracing.higher_order import is_higher_order
from ..tracing.module_path import AfterForward
from ..tracing.nodes import TrainingPath, is_leaf, newest, recomputing, storage_of
from ..tracing.wrappers import is_fake, is_wrapper
from .frames import called_function, runs
from .path import StepPath
from .signature import Signatures, Signed, given_tensors, shapes_of

OPTIMIZER_LAYER = "(optimizer)"
"""Layer of what an optimiser does: it handles parameters of several layers at once."""
AFTER_LAYER = "(after the call)"
"""Layer of what a program does with a model's results if it takes no gradients."""
OPERATOR, COMPOSITE, HIGHER = 1, 2, 3
"""Kinds of what is dispatched; 0 is no work."""
SCRIPT = "DifferentiableGraph"
"""Name of the node that TorchScript makes of several layers."""
WRAPPED = "the step has tensors of a class of their own (%s): it counts what is called on them, not what they run"
OPENED = (
    "it has no formula for %s, an operator that runs functions of its own, and of torch.cond it runs both branches: it was left "
    "out there"
)


class StepRecorder(TrainingRecorder):
    """Records every dispatched op of a program's step."""

    def __init__(self, models: Any) -> None:
        self.counters: list[Any] = []  # that are told each op: see adapters/counters/flop_counter/nested.py
        self._kinds: dict[Any, tuple[int, list[Any]]] = {}
        self.calls: list[tuple[torch.nn.Module, Any]] = []  # of models, with what they were called with
        self.signatures = Signatures()
        self.held: dict[Any, list[Any]] = {}  # by what tells ops apart: the op, its attrs, the number of calls
        self.renamed: dict[str, str] = {}  # layers that have another name once the step is done
        self.last = ""  # the layer of the op that was recorded last
        self.passes = 0  # backward passes
        self.steps = 0  # of optimisers
        self._optimizing: list[Any] = []  # frames in which optimisers step
        self._began = newest()  # nodes before this one were made before the step
        self._graphs: list[bool] = []  # of the backward passes that run: whether gradients of theirs may follow
        self._wrapped: list[bool] = []  # of the same: whether a node's results are not its own, as torch.func has it
        self._depths: list[int] = []  # of the same: how many modules ran when they began
        self._scripts: dict[int, bool] = {}  # by node: whether it is the gradients of a script
        self._inputs: list[Any] = []
        self._weights: dict[int, Any] = {}
        super().__init__(TrainingPath(torch.nn.Module()), torch.nn.Module())
        self.path: StepPath = StepPath(models, self._met, self._called, self._left)

    # Names and calls of models.

    def _met(self, names: Mapping[torch.nn.Module, str]) -> None:
        """These modules have a name; again before each call of a model, since a program may exchange weights."""
        for module, name in names.items():
            for tensor in [*module._parameters.values(), *module._buffers.values()]:
                if tensor is not None:
                    self._owners.setdefault(id(tensor), name)
                    self._set_clean(tensor, True)
                    self._weights.update([storage_of(tensor)])

    def _called(self, module: torch.nn.Module, given: Any) -> None:
        if self.paused or torch._C._current_autograd_node() is not None:
            return  # it is left out, or a checkpoint calls it again
        self.calls.append((module, shapes_of(given)))
        leaves = [t for t in given_tensors(given) if t.requires_grad and t.is_leaf and id(t) not in self._owners]
        self._inputs += leaves  # alive, so that their ids stay theirs
        self._detached.update(map(id, leaves))

    def _left(self) -> None:
        self.path.losing = torch.is_grad_enabled()

    # Ops.

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if types and any(map(is_wrapper, types)):
            for counter in self.counters:
                counter.lost(WRAPPED % next(filter(is_wrapper, types)).__name__)
            if self._wrapped:  # gradients arrive as tensors of that class, and what makes them makes others
                self._wrapped[-1] = True
            return NotImplemented  # see Recorder
        if types and any(map(is_fake, types)):
            return func(*args, **kwargs)
        known = self._kinds.get(func)
        if known is None:
            known = self._kinds[func] = self._kind(func)
        kind, counters = known
        if kind == HIGHER:
            self.opens(func.name())
            return self._opened(func, args, kwargs)
        if kind == COMPOSITE:
            with self:
                return func.decompose(*args, **kwargs)
        out = func(*args, **kwargs)
        if kind and not self.paused:
            self._place(func, args, kwargs, out)
            for counter in counters:
                counter.saw(func, args, kwargs, out)
        return out

    def opens(self, name: str) -> None:
        """An operator that runs functions of the program is called."""
        for counter in self.counters:
            counter.lost(OPENED % name)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing is compiled within a step, and PyTorch's own guard costs more than the rest

    def _kind(self, func: Any) -> tuple[int, list[Any]]:
        """What an operator is, and the counters that have a formula for it. One that is nothing but others, which reaches a
        recorder in inference_mode alone, is taken apart as counters of ops do."""
        if is_higher_order(func):
            return HIGHER, []
        if not is_work(func):
            return 0, []
        if any(counter.takes_apart(func) for counter in self.counters):
            return COMPOSITE, []
        return OPERATOR, [counter for counter in self.counters if counter.counts(func)]

    def _opened(self, func: Any, args: Any, kwargs: Any) -> Any:
        """See Recorder.opened; what is recorded whole belongs to the module that runs."""
        at, during, before = self.where(), RECOMPUTATION if self._again() else FORWARD, self.count
        node = torch._C._current_autograd_node()
        if node is not None and during == FORWARD:
            during = BACKWARD

        def count(op: Op, layer: str, phase: str) -> None:
            before(op, at, during)

        self.count = count  # type: ignore[method-assign]
        try:
            return Recorder.opened(self, func, args, kwargs)
        finally:
            self.count = before  # type: ignore[method-assign]

    def _place(self, func: Any, args: Any, kwargs: Any, out: Any) -> None:
        node, now = torch._C._current_autograd_node(), newest()
        made = now > self._newest  # an op's node is made right before it is dispatched
        signed = Signed(func, args, kwargs, out)
        outside = node is None or (self.stepping and is_leaf(node))
        if outside:
            layer, phase = self._outside(signed.inputs)
        else:
            layer, phase = self.where(), RECOMPUTATION if self._again() else BACKWARD
        self.last = self.path.current if layer is None else layer
        op = self.signatures.record(signed, func, args, kwargs, out, self.last)
        if op.op == LIFTED:
            self.crossings.lifted(out)
        if outside:
            if layer is not None and phase != OTHER:
                self.path.at(layer, now - 1 if made else now)
            if phase in (FORWARD, LOSS):
                self.follow(signed.inputs, signed.outputs)
            elif phase == OTHER:  # data that the program makes, say
                for tensor in signed.outputs:
                    if storage_of(tensor)[0] not in self._weights:  # a step of its own changes weights in place
                        self._set_clean(tensor, False)
            self.count(op, self.last, phase)
        elif phase == RECOMPUTATION:
            self.follow(signed.inputs, signed.outputs)
            self.count(op, self.last, phase)
        else:
            self._gradient(node, op, signed, out, now if made else 0)

    def _gradient(self, node: Any, op: Op, signed: Signed, out: Any, made: int) -> None:
        """An op of a backward pass; ``made`` is the number after a node that was made for it."""
        if made:
            self._newest = made
            if self._graphs and self._graphs[-1]:
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
        if number < self._began or number not in self._slots or not self._wrapped or self._wrapped[-1]:
            return True
        script = self._scripts.get(number)
        if script is None:
            script = self._scripts[number] = SCRIPT in node.name()
        return script

    def _outside(self, tensors: list[torch.Tensor]) -> tuple[str | None, str]:
        """Layer and phase of what runs in no backward pass; None for the layer of a module that runs."""
        if self.path.running_module:
            if self.path.current == LOSS_LAYER:
                return LOSS_LAYER, LOSS
            return None, FORWARD
        followed = torch.is_grad_enabled() and any(t.requires_grad for t in tensors)
        if self.stepping and not followed:
            return OPTIMIZER_LAYER, OPTIMIZER
        if tensors and self.path.losing and (torch.is_grad_enabled() or any(t.requires_grad for t in tensors)):
            return LOSS_LAYER, LOSS  # without gradients within the forward of a Function of the program's
        if followed and self.calls and any(t.grad_fn is not None for t in tensors):
            return LOSS_LAYER, LOSS
        if followed:
            return "", FORWARD
        return called_function(), OTHER

    def where(self) -> str:
        """See TrainingRecorder.where."""
        node = torch._C._current_autograd_node()
        if node is None:
            return self.path.current
        if is_leaf(node):
            return self._owners.get(id(node.variable), "")
        if self._again():
            return self.path.inner
        return self.path.made_in(node._sequence_nr())

    def _again(self) -> bool:
        """Whether what runs now is recomputed; a pass whose gradients are followed turns gradients on, too."""
        return recomputing() and not (self._graphs and self._graphs[-1])

    def _phase_at_leaf(self, node: Any) -> str:
        return INPUT_GRADIENT if id(node.variable) in self._detached else WEIGHT_GRADIENT

    def _phase_of(self, node: int, goal: int) -> str:
        return LOSS if self.path.made_in(node) == LOSS_LAYER else super()._phase_of(node, goal)

    def add(self, op: Op) -> None:
        """See Recorder.add."""
        self.count(op, op.layer, op.phase)

    def settled(self, op: Op, phase: str) -> None:
        """See TrainingRecorder.settled."""
        self.count(op, op.layer, phase)

    def count(self, op: Op, layer: str, phase: str) -> None:
        """A call of the op in this layer and phase; ops are merged by their parts here, and once more when the step is done."""
        if self.on_thread or isinstance(layer, AfterForward):
            tags = {ON_THREAD: True} if self.on_thread else {IN_HOOK: True}
            op, layer = op._replace(attrs=dict(op.attrs, **tags)), str(layer)
        # equal attrs are one object (Signatures), or are told apart here and merged at the end
        key = (id(op.attrs), layer, phase, len(op.outputs))
        found = self.held.get(key)
        if found is None:
            self.held[key] = [op._replace(layer=layer, phase=phase), 1]
        else:
            found[1] += 1

    def finish(self) -> None:
        """Merge equal ops, in the order of their first execution; name what is the loss of no backward pass."""
        told: dict[int, str] = {}  # attrs that several ops share, as text
        for op, calls in self.held.values():
            text = told.get(id(op.attrs))
            if text is None:
                text = told[id(op.attrs)] = repr(sorted(op.attrs.items()))
            if op.phase == LOSS and not self.passes:
                self.renamed[op.layer] = AFTER_LAYER
                op = op._replace(layer=AFTER_LAYER, phase=OTHER)
            op = op._replace(id=self.next_id(), calls=calls)
            key = (op.op, op.layer, op.phase, op.inputs, op.outputs, text, op.within)
            met = self.ops.get(key)
            self.ops[key] = op if met is None else met._replace(calls=met.calls + calls)
        self.held = {}

    def release(self) -> None:
        """Let go of the tensors that were held so that their addresses stayed theirs: the program may run for hours."""
        self._clean, self._weights, self._inputs = {}, {}, []

    # Backward passes and optimisers.

    @contextmanager
    def passing(self, create_graph: bool) -> Iterator[None]:
        """Within this, a backward pass runs."""
        self._graphs.append(create_graph)
        self._wrapped.append(is_transformed())
        self._depths.append(len(self.path.running))
        try:
            with self.inside():
                yield
        finally:
            self._graphs.pop()
            self._wrapped.pop()
            self.path.unwind(self._depths.pop())
            if not self._nested:
                self.passes += 1
                self.path.losing = False
                self._clean = dict(self._weights)  # what was computed from weights is let go

    def done(self, node: int, gradients: tuple[Any, ...]) -> None:
        """See TrainingRecorder.done; a checkpoint stops what it computes again by an exception, which leaves modules behind."""
        if self._depths:
            self.path.unwind(self._depths[-1])
        super().done(node, gradients)

    @property
    def stepping(self) -> bool:
        """Whether an optimiser steps: one that an exception ended does no more."""
        while self._optimizing and not runs(self._optimizing[-1]):
            self._optimizing.pop()
        return bool(self._optimizing)

    def optimizes(self, frame: Any) -> None:
        """An optimiser steps, in that frame."""
        self._optimizing.append(frame)

    def optimized(self) -> None:
        """The step of the optimiser is done."""
        if self.stepping:
            self._optimizing.pop()
