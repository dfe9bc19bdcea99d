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
)
from ..lazy import find_unbegun, is_unbegun
from ..trace import LIFTED, Recorder, is_work
from ..tracing.higher_order import is_higher_order
from ..tracing.nodes import is_leaf, newest, storage_of
from ..tracing.wrappers import DTensorCall, is_awaited, is_distributed, is_fake, is_wrapper
from .frames import called_function, runs
from .passes import PassRecorder
from .path import StepPath
from .signature import Signatures, Signed, Tally, given_tensors, shapes_of

OPTIMIZER_LAYER = "(optimizer)"
"""Layer of what an optimiser does: it handles parameters of several layers at once."""
AFTER_LAYER = "(after the call)"
"""Layer of what a program does with a model's results if it takes no gradients."""
OPERATOR, COMPOSITE, HIGHER = 1, 2, 3
"""Kinds of what is dispatched; 0 is no work."""
TENSORS_OF_OWN_CLASS = (
    "the step has tensors of a class of their own (%s): it counts what is called on them, not what they run"
)
TENSORS_WITHOUT_VALUES = (
    "the step calls operators on tensors without values (FakeTensor): nothing runs there, and it counts them"
)
RUNS_FUNCTIONS_OF_ITS_OWN = (
    "it has no formula for %s, an operator that runs functions of its own, and of torch.cond it runs both branches: it was left "
    "out there"
)


class StepRecorder(PassRecorder):
    """Records every dispatched op of a program's step."""

    def __init__(self, models: Any) -> None:
        self.counters: list[Any] = []  # that are told each op: see adapters/counters/flop_counter/nested.py
        self.around: Any = None  # runs each op for the recorder: see adapters/counters/torch_profiler/nested.py
        self.latest: Any = None  # the record of the op that ran last
        self._kinds: dict[Any, tuple[int, list[Any]]] = {}
        self.calls: list[tuple[torch.nn.Module, Any]] = []  # of models, with what they were called with
        self.signatures = Signatures()
        self.tally = Tally()
        self.renamed: dict[str, str] = {}  # layers that have another name once the step is done
        self.last = ""  # the layer of the op that was recorded last
        self.steps = 0  # of optimisers
        self._of_call = FORWARD  # the phase of the call of a model that runs
        self._optimizing: list[Any] = []  # frames in which optimisers step
        self._inputs: list[Any] = []
        self._unbegun: list[ref[Any]] = []
        self._whole: DTensorCall | None = None  # the call on whole tensors that a part of is computed now
        super().__init__()
        self.path: StepPath = StepPath(models, self._meet_modules, self._note_call, self._note_return)

    # Names and calls of models.

    def _meet_modules(self, names: Mapping[torch.nn.Module, str]) -> None:
        """These modules have a name; again before each call of a model, since a program may exchange weights."""
        for module, name in names.items():
            for tensor in [*module._parameters.values(), *module._buffers.values()]:
                if tensor is not None:
                    self._owners.setdefault(id(tensor), name)
                    self._set_clean(tensor, True)
                    self._weights.update([storage_of(tensor)])

    def _note_call(self, module: torch.nn.Module, given: Any) -> None:
        if self.paused or torch._C._current_autograd_node() is not None:
            return  # it is left out, or a checkpoint calls it again
        self.calls.append((module, shapes_of(given)))
        tensors = given_tensors(given)
        learns = torch.is_grad_enabled() and any(t.requires_grad for t in (*tensors, *module.parameters()))
        self._of_call = FORWARD if learns else INFERENCE
        leaves = [t for t in tensors if t.requires_grad and t.is_leaf and id(t) not in self._owners]
        self._inputs += leaves  # alive, so that their ids stay theirs
        self._detached.update(map(id, leaves))

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

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if types and any(map(is_wrapper, types)):
            if self._running:  # gradients arrive as tensors of that class, and what makes them makes others
                self._running[-1].wrapped = True
            return self._record_wrapped(func, types, args, kwargs)
        if types and any(map(is_fake, types)):
            if self._whole is None:
                for counter in self.counters:
                    counter.withhold(TENSORS_WITHOUT_VALUES)
            return func(*args, **kwargs)
        known = self._kinds.get(func)
        if known is None:
            known = self._kinds[func] = self._kind(func)
        kind, counters = known
        if kind == HIGHER:
            self.opens(func.name())
            return self._open_operator(func, args, kwargs)
        if kind == COMPOSITE:
            with self:
                return func.decompose(*args, **kwargs)
        around = self.around if kind else None
        out = self.ran(func, args, kwargs, around)
        if kind and not self.paused:
            self._place(func, args, kwargs, out)
            if self._whole is None:
                for counter in counters:
                    counter.saw(func, args, kwargs, out)
        elif kind:
            for counter in self.counters:
                counter.skip_op()
        return out

    def _record_wrapped(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Let a tensor of a class of its own take the call apart: what it calls is met here (see Recorder). Counters see the
        call on the whole of a tensor that several processes share, and not the one on the part of this process."""
        if any(map(is_distributed, types)) and self._whole is None and is_work(func):
            self._whole = whole = DTensorCall(func, args, kwargs)
            try:
                with self:
                    out = func(*args, **kwargs)
            finally:
                self._whole = None
            whole.finish(out)
            if not self.paused:
                for counter in self.counters:
                    if counter.counts(func):
                        counter.saw(func, args, kwargs, out)
            return out
        for kind in types:
            if is_wrapper(kind) and not is_distributed(kind) and not is_awaited(kind):
                for counter in self.counters:
                    counter.withhold(TENSORS_OF_OWN_CLASS % kind.__name__)
        return NotImplemented

    def opens(self, name: str) -> None:
        """An operator that runs functions of the program is called."""
        for counter in self.counters:
            counter.withhold(RUNS_FUNCTIONS_OF_ITS_OWN % name)

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

    def _open_operator(self, func: Any, args: Any, kwargs: Any) -> Any:
        """See Recorder.open_operator; what is recorded whole belongs to the module that runs."""
        at, before, node = self.where(), self.count, torch._C._current_autograd_node()
        during = RECOMPUTATION if self._again() else self._of_call if node is None else BACKWARD

        def count(op: Op, layer: str, phase: str) -> None:
            before(op, at, during)

        self.count = count  # type: ignore[method-assign]
        try:
            return Recorder.open_operator(self, func, args, kwargs)
        finally:
            self.count = before  # type: ignore[method-assign]

    def _place(self, func: Any, args: Any, kwargs: Any, out: Any) -> None:
        node, now = torch._C._current_autograd_node(), newest()
        made = now > self._newest  # an op's node is made right before it is dispatched
        signed = Signed(func, args, kwargs, out)
        outside = node is None or (self.is_stepping and is_leaf(node))
        if outside:
            layer, phase = self._outside(signed.inputs)
        else:
            layer, phase = self.where(), RECOMPUTATION if self._again() else BACKWARD
        self.last = self.path.current if layer is None else layer
        op = self.signatures.record(signed, func, args, kwargs, out, self.last)
        if self._whole is not None and func is self._whole.func:
            op = self._whole.annotate(op)
        if op.op == LIFTED:
            self.crossings.note_lifted(out)
        self.latest = op
        if outside:
            if layer is not None and phase != OTHER:
                self.path.at(layer, now - 1 if made else now)
            if phase in (FORWARD, INFERENCE, LOSS):
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

    def add(self, op: Op) -> None:
        """See Recorder.add."""
        self.count(op, op.layer, op.phase)

    def settle_op(self, op: Op, phase: str) -> None:
        """See TrainingRecorder.settle_op."""
        self.count(op, op.layer, phase)

    def count(self, op: Op, layer: str, phase: str) -> None:
        """A call of the op in this layer and phase."""
        self.tally.add(op, layer, phase, self.on_thread)

    def finish(self) -> None:
        """The step is done: merge its ops."""
        self.ops = self.tally.merge_ops(self._name_phase)

    def _name_phase(self, op: Op) -> Op:
        """What would be the loss of a backward pass, if there had been one, is what came after the call; and without one every
        call of a model is its forward pass."""
        if op.phase == INFERENCE and not self.passes:
            return op._replace(phase=FORWARD)
        if op.phase != LOSS or self.passes:
            return op
        self.renamed[op.layer] = AFTER_LAYER
        return op._replace(layer=AFTER_LAYER, phase=OTHER)

    def release(self) -> None:
        """Let go of the tensors that were held so that their addresses stayed theirs: the program may run for hours."""
        self._clean, self._weights, self._inputs = {}, {}, []

    # Optimisers.

    @property
    def is_stepping(self) -> bool:
        """Whether an optimiser steps: one that an exception ended does no more."""
        while self._optimizing and not runs(self._optimizing[-1]):
            self._optimizing.pop()
        return bool(self._optimizing)

    def optimizes(self, frame: Any) -> None:
        """An optimiser steps, in that frame."""
        self._optimizing.append(frame)

    def end_optimizer_step(self) -> None:
        """The step of the optimiser is done."""
        if self.is_stepping:
            self._optimizing.pop()
