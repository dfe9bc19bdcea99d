"""``reconcile watch`` for PyTorch: hooks in an unchanged script find the requested steps, or the call of a model, and count them.

A step begins with the first call of a model after the step before, and ends with the step of an optimizer.  In a program without
an optimizer of torch.optim it ends before the first call of a model after the program has changed the weights.  Calls of a model
that is trained, made without gradients before the step's first with gradients, are an evaluation: they are left out, and the
trace says so.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from uuid import uuid4

import torch
from torch import distributed
from torch.nn.modules import module as module_hooks
from torch.optim import optimizer as optimizer_hooks

from ....adapters.pytorch.tracing.tensor_memory import leaves_of
from ....adapters.shared.keras_model import keras_of
from .context import StepContext, eager, list_optimizers
from .recorder import given_tensors

LEFT_OUT = "%d call%s of a model without gradients before the step, an evaluation or a generation, not counted"
BEGINS_IN_A_MODE = (
    "the program entered a mode of its own around its model (TorchDispatchMode, such as FlopCounterMode), and a step that begins "
    "in one cannot be watched: leave it out, or use reconcile.count around your code"
)


NO_GPU = "--mark names the kernels of a GPU for Nsight Compute, and this PyTorch has none"

MARK = "reconcile/run"


@contextmanager
def mark_kernels() -> Iterator[None]:
    """Meanwhile Nsight Compute counts, and each kernel stands in ranges that name the operators around it with their sizes."""
    torch.cuda.synchronize()
    torch.cuda.profiler.start()
    try:
        with torch.autograd.profiler.emit_nvtx(record_shapes=True):
            yield
        torch.cuda.synchronize()
    finally:
        torch.cuda.profiler.stop()


def group_word() -> str:
    """A word that all processes of this group share, and those of no other run: the first of them leaves it in the store by
    which they met. '' without a group, or once its store is gone."""
    if not (distributed.is_available() and distributed.is_initialized()):
        return ""
    try:
        store = distributed.distributed_c10d._get_default_store()
        return str(store.compare_set(MARK, "", uuid4().hex).decode())
    except (AttributeError, RuntimeError):
        return ""


def asks_shapes(module: torch.nn.Module, inputs: Any) -> bool:
    """Whether a call of this module gives shapes alone: its tensors have no values, or they are symbols of Keras."""
    tensors = given_tensors(inputs)
    on_meta = bool(tensors) and all(t.is_meta for t in tensors) and not all(p.is_meta for p in module.parameters())
    return on_meta or any(keras_of(value, "KerasTensor") for value in leaves_of(inputs))


def watch(
    _torch: Any,
    nested: Sequence[Callable[..., Any]],
    steps: tuple[int, int],
    call: int,
    done: Callable[[Any], None],
    marks: bool = False,
) -> Watch:
    """See Framework.watched: ``done`` gets the context of the step."""
    return Watch(nested, *steps, call, done, marks)


class Watch:
    """``begins`` and ``ends`` are the first and the last step that are counted, from 1; or ``call`` is the call that is.

    ``done`` gets the context when it has left, in the middle of the program, or None where it cannot go on. With ``marks`` the
    step's kernels are named for Nsight Compute.
    """

    def __init__(
        self,
        nested: Sequence[Callable[..., Any]],
        begins: int,
        ends: int,
        call: int,
        done: Callable[[StepContext | None], None],
        marks: bool = False,
    ) -> None:
        self.nested, self.begins, self.ends, self.call, self.done = nested, begins, ends, call, done
        self.marks = ExitStack() if marks else None
        self.calls = self.steps = self.left_out = 0
        self.depth = 0  # modules that run
        self.optimizing = 0  # optimizers that step
        self.context: StepContext | None = None
        self.finished = False
        self.trains = False  # whether the step has called a model with gradients
        self.has_optimizer = False  # whether the program has an optimizer of torch.optim
        self.updates = 0  # of the context's recorder, that ended a step
        self.below = ""  # why a step that began is not recorded
        self.run = ""
        self._eager = eager()
        self._eager.__enter__()  # for good: what is compiled before the step costs minutes and is not counted
        module_hooks.register_module_forward_pre_hook(self._before)
        module_hooks.register_module_forward_hook(self._after, always_call=True)
        optimizer_hooks.register_optimizer_step_pre_hook(self._steps)
        optimizer_hooks.register_optimizer_step_post_hook(self._count_step)

    def _before(self, module: torch.nn.Module, inputs: Any) -> None:
        self.depth += 1
        if self.finished or self.depth > 1 or next(module.parameters(), None) is None:
            return
        if torch._C._current_autograd_node() is None:
            self.calls += 1
        if asks_shapes(module, inputs):
            return
        trained = any(p.requires_grad for p in module.parameters())
        if self.call:
            if self.calls == self.call:
                self._begin(module, inputs)
            return
        if torch._C._current_autograd_node() is None and self.end_own_step():
            return
        if self.is_before and self.context is None and self._find_optimizer():
            return
        if trained and not torch.is_grad_enabled() and not self.trains:
            self.left_out += 1
            if self.context is not None:
                self.context.recorder.paused = True
            return
        self.trains = self.trains or (trained and torch.is_grad_enabled())
        if self.context is None:
            self._begin(module, inputs)

    @property
    def is_before(self) -> bool:
        """Whether the step that runs is not to be counted: of a program without an optimizer it is recorded, to find its end."""
        return not self.call and self.steps + 1 < self.begins

    def _find_optimizer(self) -> bool:
        self.has_optimizer = self.has_optimizer or bool(list_optimizers())
        return self.has_optimizer

    def end_own_step(self) -> bool:
        """A model is called, or the program ends: if the program has changed the weights, that was a step. Returns whether it was
        the last to count."""
        context = self.context
        if context is None or self.finished or self.call or self.has_optimizer:
            return self.finished
        updates = context.recorder.attempt(context.recorder.count_updates) or 0
        if updates > self.updates and not self._find_optimizer():  # which looks at every object of the program
            self.updates = updates
            self._finish_step()
        return self.finished

    def _begin(self, module: torch.nn.Module, inputs: Any) -> None:
        if torch._C._len_torch_dispatch_stack():
            self.below = BEGINS_IN_A_MODE
            return
        if self.marks is not None and not torch.cuda.is_available():
            self.below = NO_GPU
            self.done(None)
            return
        self.run = group_word()  # now: the process that keeps the store may end before this one's step does
        if self.marks is not None and not self.is_before:
            self.marks.enter_context(mark_kernels())
        self.context = StepContext((), self.nested, optimizers_told=True)
        self.context.enter()
        self.context.recorder.attempt(self.context.recorder.path._push, module, inputs)

    def _after(self, _module: torch.nn.Module, _inputs: Any, outputs: Any) -> None:
        self.depth = max(0, self.depth - 1)
        if self.depth or self.context is None or self.finished:
            return
        self.context.recorder.paused = False
        if self.call:
            self.context.recorder.attempt(self.context.recorder.keep_unbegun, outputs)
            self._end()

    def _steps(self, _optimizer: Any, _args: Any, _kwargs: Any) -> None:
        self.optimizing += 1
        if self.context is not None and not self.finished:
            self.context.recorder.optimizes(sys._getframe(1))

    def _count_step(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        self.optimizing = max(0, self.optimizing - 1)
        if self.context is not None and not self.finished:
            self.context.recorder.end_optimizer_step()
        if self.optimizing:
            return
        self.has_optimizer = True
        if self.context is not None and not self.finished:
            self.context.recorder.stepped.append(optimizer)
        self._finish_step()

    def _finish_step(self) -> None:
        self.steps += 1
        if self.context is None or self.finished or self.call:
            return
        if self.steps >= self.ends:
            self._end()
        elif self.steps < self.begins:
            self.context.leave()
            self.context, self.trains, self.left_out, self.updates = None, False, 0, 0

    def _end(self) -> None:
        assert self.context is not None
        self.finished = True
        self.context.leave()
        if self.marks is not None:
            self.marks.close()
        self.run = self.run or group_word()
        if self.left_out:
            self.context.notes.append(LEFT_OUT % (self.left_out, "" if self.left_out == 1 else "s"))
        self.done(self.context)

    def summary(self) -> dict[str, Any]:
        """What it has seen of the program, where that ends before its step does."""
        return {"calls": self.calls, "steps": self.steps, "below": self.below, "run": self.run}
