"""StepRecorder: records what a program's own step dispatches, with its phase and its layer.

=================  ==============================================================================================
forward            within a call of a model
loss               outside of models, after a model's call: on values that gradients flow through, and its gradients
input-gradient,    see adapters/pytorch/phases.py; also where a program takes gradients of gradients
weight-gradient
recomputation      the forward ops that activation checkpointing recomputes, with or without reentrance
inference          as forward, of a model that nothing is trained in (no_grad, or all frozen), in a step that trains another
optimizer          within ``step`` of any optimiser; a model that a closure calls there is its forward pass
other              everything else, by the function that the program calls: ``clip_grad_norm_``
=================  ==============================================================================================

Every call runs as in the program: fused attention, recurrent layers and checkpoints are not replaced by other code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import ref

import torch

from ....adapters.pytorch.lazy import find_unbegun, is_unbegun
from ....adapters.pytorch.module_tensors import is_lazy
from ....adapters.pytorch.phases import Pass, TrainingRecorder
from ....adapters.pytorch.tracing.dispatched_calls import DispatchedCall
from ....adapters.pytorch.tracing.nodes import TrainingPath, is_leaf, newest
from ....adapters.pytorch.tracing.recorder import COMPOSITE, OPERATOR, Recorder, is_work
from ....adapters.pytorch.tracing.records import storage_of, tensor_record, tensors_in
from ....adapters.pytorch.tracing.wrappers import is_awaited, is_distributed, is_wrapper
from ....core.records import (
    BACKWARD,
    FORWARD,
    INFERENCE,
    LOSS,
    LOSS_LAYER,
    OPTIMIZER,
    OTHER,
    RECOMPUTATION,
    Op,
    Problem,
)
from .dtensor_call import DTensorCall
from .frames import called_function, runs
from .path import StepPath
from .seal import VALUES_LEFT_PYTORCH, Crossings, StepSeal

LIFTED = "aten.lift_fresh"
"""The operator by which data of the program become a tensor."""
OPTIMIZER_LAYER = "(optimizer)"
"""Layer of what an optimiser does: it handles parameters of several layers at once."""
AFTER_LAYER = "(after the call)"
"""Layer of what a program does with a model's results if it takes no gradients."""
SCRIPT = "DifferentiableGraph"
"""Name of the node that TorchScript makes of several layers."""
TENSORS_OF_OWN_CLASS = (
    "the step has tensors of a class of their own (%s): it counts what is called on them, not what they run"
)
NESTED_TENSORS = "the step has nested tensors, and its formulas have no shape of these"
TENSORS_MADE = "the step makes a tensor of a class of its own (%s), at which PyTorch stops beneath the counter's mode"
TENSORS_WITHOUT_VALUES = (
    "the step calls operators on tensors without values (FakeTensor): nothing runs there, and it counts them"
)
RUNS_FUNCTIONS_OF_ITS_OWN = (
    "it has no formula for %s, an operator that runs functions of its own, and of torch.cond it runs both branches: it was left "
    "out there"
)


class StepRecorder(TrainingRecorder):
    """Records every dispatched op of a program's step."""

    path: StepPath
    is_in_program = True

    def __init__(self, models: Any) -> None:
        self.counters: list[Any] = []  # that are told each op: see adapters/counters/step_counter.py
        self.latest: Any = None  # the record of the op that ran last
        self._counting: dict[Any, list[Any]] = {}  # the counters that have a formula for an operator
        self.calls: list[tuple[torch.nn.Module, Any]] = []  # of models, with what they were called with
        self.renamed: dict[str, str] = {}  # layers that have another name once the step is done
        self.last = ""  # the layer of the op that was recorded last
        self.stepped: list[Any] = []  # the optimizer of each step
        self.updates = 0  # of weights by the program itself, after a backward pass
        self._updated = 0  # the backward passes before the last of these
        self.passes = 0  # backward passes
        self.for_shapes = 0  # calls of models on meta, which compute nothing
        self._has_values = False  # whether a model has
        self._began = newest()  # nodes before this one were made before the step
        self._scripts: dict[int, bool] = {}  # by node: whether it is the gradients of a script
        self._weights: dict[int, Any] = {}  # storages of weights, which no pass lets go
        self._of_call = FORWARD  # the phase of the call of a model that runs
        self._operator_at: tuple[str, str] | None = None  # layer and phase of the operator that runs functions now
        self._optimizing: list[Any] = []  # frames in which optimisers step
        self._unbegun: list[ref[Any]] = []
        self._whole: DTensorCall | None = None  # the call on whole tensors that a part of is computed now
        super().__init__(TrainingPath(torch.nn.Module()), torch.nn.Module())
        self.crossings = Crossings()
        self.seal: StepSeal = StepSeal(self)
        told = self._meet_modules, self._note_call, self._note_return
        self.path = self.attempt(StepPath, models, *told) or StepPath((), *told)
        self.path.fails = self.fail

    def fail(self, error: Exception) -> None:
        """See Recorder. What counters were told is not all that ran."""
        super().fail(error)
        self._withhold(self.problems[-1].reason)

    @property
    def is_within(self) -> bool:
        """Whether a module of a model, or the gradient of one, runs now."""
        return self.path.running_module or torch._C._current_autograd_node() is not None

    def is_weight(self, key: int) -> bool:
        """Whether a storage is of a model's weights or buffers."""
        return key in self._weights

    # Names and calls of models.

    def _meet_modules(self, names: Mapping[torch.nn.Module, str]) -> None:
        """These modules have a name; again before each call of a model, since a program may exchange weights."""
        for module, name in names.items():
            for tensor in [*module._parameters.values(), *module._buffers.values()]:
                if tensor is not None:
                    self._owners.setdefault(id(tensor), name)
                    self.add_weight(tensor)

    def add_weight(self, tensor: torch.Tensor) -> None:
        """See TrainingRecorder."""
        super().add_weight(tensor)
        if not is_lazy(tensor):
            self._has_values = self._has_values or not tensor.is_meta
            self._weights.update([storage_of(tensor)])

    def _note_call(self, module: torch.nn.Module, given: Any) -> None:
        if self.paused or torch._C._current_autograd_node() is not None:
            return  # it is left out, or a checkpoint calls it again
        tensors = given_tensors(given)
        if self._has_values and tensors and all(t.is_meta for t in tensors):
            self.for_shapes += 1
            return
        self.calls.append((module, shapes_of(given)))
        self.seal.hold_inputs(tensors)
        learns = torch.is_grad_enabled() and any(t.requires_grad for t in (*tensors, *module.parameters()))
        self._of_call = FORWARD if learns else INFERENCE
        self.add_data(tensors)

    def _note_return(self, outputs: Any) -> None:
        self.path.losing = torch.is_grad_enabled()
        self.keep_unbegun(outputs)

    def keep_unbegun(self, outputs: Any) -> None:
        """A model returns this: what of it has not begun by the end of the step is not known."""
        if not self.paused:
            self._unbegun += map(ref, find_unbegun(outputs))

    def leaves_unbegun(self) -> bool:
        """Whether a model returned a generator or a coroutine that is there and of which nothing has run."""
        return any(is_unbegun(each()) for each in self._unbegun)

    # Ops.

    __torch_dispatch__ = Recorder.dispatch
    """Without PyTorch's guard against compilation, which costs more than the rest: nothing is compiled within a step."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def kind_of(self, func: Any) -> int:
        """See Recorder. An operator that is nothing but others, which reaches a recorder in inference_mode alone, is taken apart
        as counters of ops do."""
        kind = super().kind_of(func)
        if kind == OPERATOR and any(counter.takes_apart(func) for counter in self.counters):
            return COMPOSITE
        self._counting[func] = [each for each in self.counters if kind == OPERATOR and each.counts(func)]
        return kind

    def has_kernel(self, args: Any) -> bool:
        """See Recorder: on nested tensors, whose sizes no counter of ops can read."""
        nested = any(tensor.is_nested for tensor in tensors_in(list(args)))
        if nested:
            self._withhold(NESTED_TENSORS)
        return nested

    def meet_fake(self, func: Any, args: Any, kwargs: Any) -> Any:
        """See Recorder."""
        if self._whole is None:
            self._withhold(TENSORS_WITHOUT_VALUES)
        return func(*args, **kwargs)

    def meet_wrapped(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """See Recorder. Counters see the call on the whole of a tensor that several processes share, and not the one on the part
        of this process."""
        if self._running:  # gradients arrive as tensors of that class, and what makes them makes others
            self._running[-1].wrapped = True
        if any(map(is_distributed, types)) and self._whole is None and is_work(func):
            self._whole = whole = self.attempt(DTensorCall, func, args, kwargs)
            if whole is None:
                return NotImplemented
            try:
                with self:
                    out = func(*args, **kwargs)
            finally:
                self._whole = None
            self.attempt(self._note_whole, whole, func, args, kwargs, out)
            return out
        for kind in types:
            if is_wrapper(kind) and not is_distributed(kind) and not is_awaited(kind):
                self._withhold(TENSORS_OF_OWN_CLASS % kind.__name__)
        return NotImplemented

    def _note_whole(self, whole: DTensorCall, func: Any, args: Any, kwargs: Any, out: Any) -> None:
        whole.finish(out)
        if not self.paused:
            for counter in self.counters:
                if counter.counts(func):
                    counter.saw(func, args, kwargs, out)

    def note_subclass(self, name: str) -> None:
        """See Recorder."""
        self._withhold(TENSORS_MADE % name)

    def note_written(self, name: str) -> None:
        """See TrainingRecorder."""
        super().note_written(name)
        self._withhold(RUNS_FUNCTIONS_OF_ITS_OWN % name)

    def _withhold(self, why: str) -> None:
        for counter in self.counters:
            counter.withhold(why)

    def open_operator(self, func: Any, args: Any, kwargs: Any) -> Any:
        """See Recorder. What such an operator runs belongs to the module that runs."""
        self._withhold(RUNS_FUNCTIONS_OF_ITS_OWN % func.name())
        during = self._of_call if torch._C._current_autograd_node() is None else BACKWARD
        held = self._operator_at
        self._operator_at = held or (self.attempt(self.where) or "", RECOMPUTATION if self.is_recomputing() else during)
        try:
            return Recorder.open_operator(self, func, args, kwargs)
        finally:
            self._operator_at = held

    def place(self, call: DispatchedCall) -> None:
        """See Recorder. What a model with values does on meta computes its shapes alone."""
        if self._has_values and call.outputs and call.outputs[0].is_meta:
            self.skip_call()
            return
        node, now = torch._C._current_autograd_node(), newest()
        made = now > self._newest  # an op's node is made right before it is dispatched
        outside = node is None or (self.is_stepping and is_leaf(node))
        if outside:
            layer, phase = self._outside(call.inputs)
        else:
            layer, phase = self.where(), RECOMPUTATION if self.is_recomputing() else BACKWARD
        self.last = self.path.current if layer is None else layer
        self.latest = op = self.record(call, self.last)._replace(phase=phase)
        if phase in (FORWARD, INFERENCE, LOSS, RECOMPUTATION):
            self.follow(call)
        if outside:
            if layer is not None and phase != OTHER:
                self.path.at(layer, now - 1 if made else now)
            if phase == OTHER:  # data that the program makes, say
                self._note_update(call)
                for tensor in call.outputs:
                    if storage_of(tensor)[0] not in self._weights:  # a step of its own changes weights in place
                        self._set_clean(tensor, False)
            self.add(op)
        elif phase == RECOMPUTATION:
            self.add(op)
        else:
            self.follow_gradient(op.layer, call)
            self.add_gradient(node, op, call)
        if self._whole is None:
            for counter in self._counting.get(call.func, ()):
                counter.saw(call.func, call.args, call.kwargs, call.out)

    def skip_call(self) -> None:
        """See Recorder."""
        for counter in self.counters:
            counter.skip_op()

    def record(self, call: DispatchedCall, layer: str) -> Op:
        """See Recorder."""
        op = self._records.record(call, layer)
        if self._whole is not None and call.func is self._whole.func:
            op = self._whole.annotate(op)
        if op.op == LIFTED:
            self.crossings.note_lifted(call.out)
        return op

    def list_computed_elsewhere(self) -> list[Problem]:
        """See Recorder."""
        layers = dict.fromkeys(self.crossings.back)
        return self.seal.problems() + [Problem(layer, "(numpy)", layer, VALUES_LEFT_PYTORCH) for layer in layers]

    def add(self, op: Op) -> None:
        """See Recorder."""
        if self._operator_at is not None:
            op = op._replace(layer=self._operator_at[0], phase=self._operator_at[1])
        super().add(op)

    def _outside(self, tensors: list[torch.Tensor]) -> tuple[str | None, str]:
        """Layer and phase of what runs in no backward pass; None for the layer of a module that runs."""
        if self.path.running_module:
            if self.path.current == LOSS_LAYER:
                return LOSS_LAYER, LOSS
            return None, self._of_call
        followed = torch.is_grad_enabled() and any(t.requires_grad for t in tensors)
        if self.is_stepping and not followed:
            return OPTIMIZER_LAYER, OPTIMIZER
        if tensors and self.path.losing and (torch.is_grad_enabled() or any(t.requires_grad for t in tensors)):
            return LOSS_LAYER, LOSS  # without gradients within the forward of a Function of the program's
        if followed and self.calls and any(t.grad_fn is not None for t in tensors):
            return LOSS_LAYER, LOSS
        if followed:
            return "", FORWARD
        return called_function(), OTHER

    # Backward passes.

    def end_pass(self, ended: Pass) -> None:
        """See TrainingRecorder."""
        self.path.unwind(ended.depth)
        super().end_pass(ended)
        if not self._running:
            # what prepares a step, or shows that a trace is whole, is none of its passes
            self.passes += not self.paused
            self.path.losing = False
            if not ended.followed:
                self._clean = dict(self._weights)  # what was computed from weights is let go

    def is_untold(self, node: Any, number: int) -> bool:
        """See TrainingRecorder: its gradients are wrapped, it was made before the step, its pass was begun otherwise than by
        torch.autograd, or it is all of a script."""
        if number < self._began or number not in self._slots or not self._running or self._running[-1].wrapped:
            return True
        script = self._scripts.get(number)
        if script is None:
            script = self._scripts[number] = SCRIPT in node.name()
        return script

    def name_op(self, op: Op) -> Op:
        """See Recorder. Without a backward pass, every call of a model is its forward pass, and what would be the loss is what
        came after the call."""
        if op.phase == INFERENCE and not self.passes:
            return op._replace(phase=FORWARD)
        if op.phase != LOSS or self.passes:
            return op
        self.renamed[op.layer] = AFTER_LAYER
        return op._replace(layer=AFTER_LAYER, phase=OTHER)

    def release(self) -> None:
        """Let go of the tensors that were held so that their addresses stayed theirs: the program may run for hours."""
        self._clean, self._weights, self._data, self._unmade = {}, {}, {}, []

    # Optimisers.

    def _note_update(self, call: DispatchedCall) -> None:
        """The program calls this by itself: its first change of a weight after a backward pass is a step of its own."""
        if self.passes > self._updated and call.func._schema.is_mutable:
            changed = tensors_in([*call.args[:1], call.kwargs.get("out")])
            if any(storage_of(tensor)[0] in self._weights for tensor in changed):
                self._add_update()

    def _add_update(self) -> None:
        self.updates, self._updated = self.updates + 1, self.passes

    def count_updates(self) -> int:
        """How often the program has changed the weights by itself, or has replaced them (``p.data = p - g``), which no operator
        shows."""
        weights = (p for module in {module for module, _ in self.calls} for p in module.parameters() if not is_lazy(p))
        keys = {storage_of(weight)[0] for weight in weights} - {None} if self.passes > self._updated else set()
        if not keys <= self._weights.keys():
            self._add_update()
        return self.updates

    @property
    def is_stepping(self) -> bool:
        """Whether an optimiser steps: one that an exception ended does no more."""
        while self._optimizing and not runs(self._optimizing[-1]):
            self._optimizing.pop()
        return bool(self._optimizing)

    def optimizes(self, frame: Any) -> None:
        """An optimiser steps, in that frame."""
        self._optimizing.append(frame)

    def end_optimizer_step(self) -> bool:
        """The step of the optimiser is done; whether it was within no other."""
        if self.is_stepping:
            self._optimizing.pop()
        return not self.is_stepping


def given_tensors(value: Any) -> list[torch.Tensor]:
    """The tensors that a call is given, in lists and dicts, too."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, Mapping):
        value = list(value.values())
    return [t for item in value for t in given_tensors(item)] if isinstance(value, (tuple, list)) else []


def shapes_of(given: Any) -> list[tuple[tuple[int, ...], torch.dtype]]:
    """Shape and type of each."""
    return [(tuple(size or 0 for size in tensor_record(t).shape or ()), t.dtype) for t in given_tensors(given)]
