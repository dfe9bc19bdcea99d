"""StepContext: records the code that a program runs inside it as a trace; counters of dispatched ops count the same execution.

``reconcile.count`` and ``reconcile watch`` enter it.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from time import perf_counter
from typing import Any

import torch
from torch.utils._python_dispatch import _get_current_dispatch_mode, _get_current_dispatch_mode_stack

from ....adapters.pytorch.model import versions
from ....adapters.pytorch.module_tensors import tensors_of
from ....adapters.pytorch.trace import finish_trace
from ....adapters.pytorch.tracing.numpy_crossings import BY_ADDRESS, watch_leaving
from ....adapters.pytorch.tracing.wrapped_functions import wrap_function
from ....adapters.shared.refusal import BeyondCounter
from ....core.message import text_of
from ....core.records import CALLED_WITH, OWN_STEP, Problem, Trace
from .frames import called_by
from .recorded_model import RecordedModel
from .recorder import StepRecorder

COMPILE_WAS_OFF = (
    "torch.compile was off in the step: it is counted as it is written. Compiled, the same products run in fewer kernels, and "
    "random numbers differ"
)
"""Note of a step of a program that compiles a part of it."""
DATA = "torch.utils.data"
WORKERS_MADE_THE_DATA = "the workers of a DataLoader made the data, and what they computed is not counted"
"""Note of a step that loads its data in other processes."""
STEP_ENDED_EARLY = "the step ended early (%s), and what would have run after that is not recorded"
CONTEXTS_LEFT_OUT_OF_ORDER = (
    "contexts were left in another order than they were entered, or on another thread: a mode of PyTorch that was entered within "
    "the step is left after it, and what ran then was not recorded by each"
)
GENERATOR_NOT_BEGUN = (
    "a model returned a generator or a coroutine, and nothing of it ran within the step: take its items there, and their work is "
    "counted"
)
OF_ITS_OWN, OF_SEVERAL = " of the program's own", "%s, of %d that the program has"
"""Which optimizers stepped, after how often one did."""
FOR_SHAPES = "%d of the calls of a model were on tensors without values (meta), which give shapes: nothing runs there"
NOTHING_RAN = "nothing ran in the step: no operator of PyTorch was called on this thread"


@contextmanager
def optimizers(recorder: StepRecorder, done: Callable[[], None]) -> Iterator[None]:
    """Meanwhile the recorder knows when an optimiser steps; ``done`` is called after each step."""
    from torch.optim import optimizer as module

    def before(_optimizer: Any, _args: Any, _kwargs: Any) -> None:
        recorder.attempt(recorder.optimizes, sys._getframe(1))

    def after(optimizer: Any, _args: Any, _kwargs: Any) -> None:
        if recorder.attempt(recorder.end_optimizer_step):
            recorder.stepped.append(optimizer)
            done()

    handles = [module.register_optimizer_step_pre_hook(before), module.register_optimizer_step_post_hook(after)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def list_optimizers() -> list[Any]:
    """The optimizers of torch.optim that the program has."""
    objects = gc.get_objects()
    kinds = {kind for kind in set(map(type, objects)) if issubclass(kind, torch.optim.Optimizer)}
    return [each for each in objects if type(each) in kinds]


def weights_of(optimizer: Any) -> set[int]:
    """The identities of the weights that an optimizer changes."""
    return {id(weight) for group in getattr(optimizer, "param_groups", ()) for weight in group["params"]}


def count_optimizers(models: Iterable[torch.nn.Module]) -> int:
    """How many optimizers the program has for weights of these; those of the same weights are one: one may wrap another."""
    of_models = {id(weight) for model in models for weight in model.parameters()}
    found: list[set[int]] = []
    for optimizer in list_optimizers():
        weights = weights_of(optimizer)
        if weights & of_models and not any(weights & other for other in found):
            found.append(weights)
    return len(found)


@contextmanager
def eager() -> Iterator[None]:
    """Within this, what torch.compile makes runs as it is written: a compiled kernel shows no ops."""
    if not hasattr(getattr(torch, "compiler", None), "set_stance"):  # before PyTorch 2.6
        yield
        return
    with ExitStack() as stack:

        def as_written() -> None:
            from torch._dynamo import eval_frame

            if hasattr(
                eval_frame, "_stance"
            ):  # two contexts that end out of order would leave it as the first one found it
                in_force = eval_frame.DynamoStance("force_eager")
                stack.enter_context(wrap_function(eval_frame, "_stance", lambda _stance: in_force))
            else:
                stack.enter_context(torch.compiler.set_stance("force_eager"))
            # its own warns of our hooks
            stack.enter_context(
                wrap_function(eval_frame.OptimizedModule, "__call__", lambda _call: torch.nn.Module.__call__)
            )

        waiting = [as_written]

        def watch(compile_: Any) -> Any:
            def call_eagerly(*args: Any, **kwargs: Any) -> Any:
                made = compile_(*args, **kwargs)
                while waiting:
                    waiting.pop()()
                return made

            return call_eagerly

        if "torch._dynamo" in sys.modules:
            as_written()
        else:  # it takes seconds to import, so only where the program does
            stack.enter_context(wrap_function(torch, "compile", watch))
        yield


class StepContext:
    """What runs between ``enter`` and ``leave`` as a trace, and as a ledger of each counter that is nested in it.

    ``nested`` make counters that the recorder tells each op: see ``nested`` of flop_counter. ``optimizers_told`` says that the
    recorder is told elsewhere when an optimizer steps.
    """

    def __init__(
        self,
        models: Sequence[torch.nn.Module],
        nested: Sequence[Callable[[StepRecorder], Any]],
        optimizers_told: bool = False,
    ) -> None:
        self.recorder = StepRecorder(models)
        self.optimizers_told = optimizers_told
        self.notes: list[str] = []
        self.models = models
        self.counters = self.recorder.counters = [make(self.recorder) for make in nested]
        self.seconds = 0.0
        self.updates = 0  # of weights by the program itself, if no optimizer stepped
        self.optimizers = 0  # that the program has, if one stepped
        self.stepped = ""  # which ones
        self.runs = False
        self._stack = ExitStack()
        self._began = 0.0

    def enter(self, done: Callable[[], None] = lambda: None) -> None:
        """Begin to record; ``done`` is called after each step of an optimiser."""
        try:
            self._begin(done)
        except Exception as error:  # whatever the program has made of PyTorch
            self.recorder.fail(error)
        self.runs = True
        self._began = perf_counter()

    def _begin(self, done: Callable[[], None]) -> None:
        recorder = self.recorder
        with ExitStack() as stack:
            for each in (
                recorder.watch_surroundings(self._loads),
                eager(),
                recorder.follow_passes(),
                watch_leaving(recorder.seal.note_left),
                watch_leaving(recorder.seal.note_address, BY_ADDRESS),
                nullcontext() if self.optimizers_told else optimizers(recorder, done),
                recorder.path,
                self._run_counters(),
                recorder,
            ):
                stack.enter_context(each)
            self._stack = stack.pop_all()

    @contextmanager
    def _run_counters(self) -> Iterator[None]:
        """Meanwhile the counters count."""
        around = [mode for mode in _get_current_dispatch_mode_stack() if isinstance(mode, StepRecorder)]
        for recorder in around:
            for counter in recorder.counters:
                counter.within()
        for counter in self.counters:
            counter.enter(bool(around))
        try:
            yield
        finally:
            for counter in self.counters:
                counter.leave()

    def inside(self, module: torch.nn.Module, args: Any, kwargs: Any) -> None:
        """Say that the step was entered within a call of this module, before its forward."""
        self.recorder.attempt(self.recorder.path.inside, module, args, kwargs)

    def leave(self, error: BaseException | None = None) -> None:
        """End to record; ``error`` is what ended the step before its time."""
        self.seconds = perf_counter() - self._began
        self.runs = False
        recorder = self.recorder
        if _get_current_dispatch_mode() is not recorder:
            recorder.problems.append(Problem("", "(step)", "", CONTEXTS_LEFT_OUT_OF_ORDER))
        self._stack.close()
        recorder.attempt(self._look_after)
        recorder.release()
        if error is not None:
            recorder.problems.append(
                Problem("", "(step)", "", STEP_ENDED_EARLY % f"{type(error).__name__}: {text_of(error)}")
            )
        elif recorder.attempt(recorder.leaves_unbegun):
            recorder.problems.append(Problem("", "(step)", "", GENERATOR_NOT_BEGUN))
        elif not self.has_ops:
            recorder.problems.append(Problem("", "(step)", "", NOTHING_RAN))

    def _look_after(self) -> None:
        """What a step has left behind."""
        recorder = self.recorder
        for module, _ in recorder.calls:
            recorder.seal.check_state(tensors_of(module))
        self.updates = 0 if recorder.stepped else recorder.count_updates()
        self.optimizers = count_optimizers({module for module, _ in recorder.calls}) if recorder.stepped else 0
        if self.optimizers > 1:
            of = recorder.path.describe_weights
            texts = [f"{type(each).__name__} of {of(weights_of(each))}" for each in recorder.stepped]
            self.stepped = " and ".join(dict.fromkeys(texts))

    @property
    def has_ops(self) -> bool:
        """Whether any op ran."""
        return self.recorder.failed or bool(self.recorder.attempt(lambda: self.recorder.ops))

    @property
    def device(self) -> str:
        """The device of the models' weights, else of the process."""
        weights = (p for module, _ in self.recorder.calls for p in module.parameters())
        weight = next(weights, None)
        return "cpu" if weight is None else weight.device.type

    def _loads(self) -> bool:
        """Whether a DataLoader is at work: what its workers do is told, and is no part of the step."""
        if not called_by(DATA):
            return False
        if WORKERS_MADE_THE_DATA not in self.notes:
            self.notes.append(WORKERS_MADE_THE_DATA)
        return True

    def trace(self) -> Trace:
        """The trace of the step; of one that could not be recorded, why."""
        made = self.recorder.attempt(self._make_trace)
        return made or Trace(
            "torch", versions(), "cpu", (), tuple(self.recorder.problems), (), (), (self.describe_step(),)
        )

    def _make_trace(self) -> Trace:
        recorder = self.recorder
        notes = (
            self.describe_step(),
            *self.called_with(),
            *self.notes,
            *([FOR_SHAPES % recorder.for_shapes] if recorder.for_shapes else []),
            *([COMPILE_WAS_OFF] if self.is_compiled() else []),
        )
        return finish_trace(recorder, self.device, notes)._replace(versions=self.versions())

    def is_compiled(self) -> bool:
        """Whether torch.compile had compiled a model of the step, or a part of one."""
        return any(
            type(module).__name__ == "OptimizedModule" or getattr(module, "_compiled_call_impl", None) is not None
            for module in self.recorder.path.modules
        )

    def versions(self) -> dict[str, str]:
        """Of PyTorch, and of the Keras that made a model."""
        return next((versions(model) for model in self.models), versions())

    def ledgers(self) -> list[Any]:
        """The ledger of each counter; an exception in the place of one says why there is none."""
        found: list[Any] = []
        for counter in self.counters:
            try:
                found.append(counter.ledger(self.recorder, self.device, self.versions()))
            except BeyondCounter as error:
                found.append(error)
            except Exception as error:  # whatever it met in the step
                found.append(BeyondCounter(f"it failed ({type(error).__name__}: {text_of(error)})"))
        return found

    def recorded_model(self, tokens: int | None = None) -> RecordedModel:
        """The model of the step for a formula. Raises FactoryError where no model was called, where its calls differ in more
        than the batch, and where it read another number of tokens."""
        return RecordedModel(self.recorder, self.models[0] if self.models else None, self.device, tokens)

    def describe_step(self) -> str:
        """What the step was."""
        recorder = self.recorder
        parts = [
            _several(len(recorder.calls), "call of a model", "calls of a model"),
            _several(recorder.passes, "backward pass", "backward passes"),
            _several(len(recorder.stepped) + self.updates, "step of an optimizer", "steps of an optimizer")
            + OF_ITS_OWN * bool(self.updates),
        ]
        parts += [OF_SEVERAL % (self.stepped, self.optimizers)] if self.optimizers > 1 else []
        return OWN_STEP + ", ".join(parts)

    def called_with(self) -> tuple[str, ...]:
        """The tensors that the models were called with: those of all calls, if they are alike."""
        counts: dict[str, int] = {}
        for _, given in self.recorder.calls:
            text = ", ".join(f"{str(dtype).replace('torch.', '')} {shape}" for shape, dtype in given)
            counts[text] = counts.get(text, 0) + 1
        texts = [text if n == 1 else f"{n} times {text}" for text, n in counts.items() if text]
        return (CALLED_WITH + "; ".join(texts),) if texts else ()


def _several(count: int, one: str, more: str) -> str:
    return f"{count} {one if count == 1 else more}"
