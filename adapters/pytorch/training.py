"""The trace of one training step of a PyTorch model: forward, loss, both kinds of gradients, and the optimiser's step.

The loss is the mean of squares of every floating output, summed over the outputs.  Gradients come from
``backward()``: the parameters that require one get theirs, and so do inputs at hand that do.  Recurrent
layers and attention are recorded as one op each way, as in inference (tracing/fused_gradients.py).
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from ...core.records import LOSS, LOSS_LAYER, OPTIMIZER, Trace
from ..shared.refusal import FactoryError
from .call_adapter import tensors_out
from .lazy import take_lazy
from .model import TorchModel
from .optimizers import Update, update_of
from .phases import TrainingRecorder
from .trace import finish_trace
from .tracing.fused_gradients import FusedGradientFollowed, TrainedFusedCalls
from .tracing.nodes import TrainingPath
from .tracing.numpy_crossings import keep_numbers
from .tracing.seal import Seal
from .tracing.second_call import record_twice, shake
from .tracing.trace_device import record_model


def step(
    module: torch.nn.Module,
    inputs: list[Any],
    update: Update,
    recorder: TrainingRecorder,
    calls: TrainedFusedCalls | None = None,
) -> None:
    """One training step of a module in train mode; ``calls`` is the function mode around it, if there is one.

    If a model has nothing to train, it is the forward pass and the loss.  Raises FactoryError where the model cannot
    be trained on its input.
    """

    def around() -> AbstractContextManager[Any]:
        return nullcontext() if calls is None else calls  # PyTorch leaves modes before a checkpoint recomputes

    with recorder.follow_passes(around):
        result = _call_module(module, inputs, recorder)
        recorder.check_result(result)
        outputs = [t for t in tensors_out(result) if t.is_floating_point()]
        recorder.begin(LOSS, LOSS_LAYER)
        loss, recorder.trains = _loss(outputs)
        if loss is not None and recorder.trains:
            loss.backward()
    for name, weight in module.named_parameters():
        if weight.grad is not None:
            recorder.begin(OPTIMIZER, name.rpartition(".")[0])
            update(name, weight)


def _loss(outputs: list[torch.Tensor]) -> tuple[torch.Tensor | None, bool]:
    """The loss, if there is a floating output, and whether one of these depends on what is trained."""
    trained = [t for t in outputs if t.requires_grad]
    losses = [torch.square(t).mean() for t in trained or outputs]
    loss = losses[0] if losses else None
    for other in losses[1:]:
        loss = loss + other
    return loss, bool(trained)


def run_step(model: TorchModel) -> None:
    """One plain training step of a fresh module on the CPU, which nothing follows."""
    module = model.build("cpu").train()
    loss, trains = _loss([t for t in tensors_out(take_lazy(module(*model.example("cpu")))) if t.is_floating_point()])
    if loss is not None and trains:
        loss.backward()
    update = update_of(model)
    for name, weight in module.named_parameters():
        if weight.grad is not None:
            update(name, weight)


def _call_module(module: torch.nn.Module, inputs: list[Any], recorder: TrainingRecorder) -> Any:
    try:
        return take_lazy(module(*inputs))
    except ValueError as error:
        if ONE_VALUE not in str(error):
            raise
        size = str(error).partition("got input size torch.Size(")[2].rstrip(")")
        raise FactoryError(ONE_VALUE_PER_CHANNEL % (recorder.path.current or "its batch norm", size)) from error


NOTHING_TO_TRAIN = (
    "nothing to train: no floating output depends on a parameter that requires a gradient; the step is the forward pass "
    "and the loss"
)
ONE_VALUE = "Expected more than 1 value per channel when training"
ONE_VALUE_PER_CHANNEL = (
    "The model cannot be trained on this input: %s normalises by its batch's statistics and gets one value per channel, "
    "%s: give a larger batch, or a larger input."
)


def trace(model: TorchModel, died: tuple[str, ...] = ()) -> Trace:
    """Trace of one training step where the model is asked to run; see :func:`.trace.trace`."""
    recorder, device, notes = record_model(record, model, died)
    return finish_trace(recorder, device, (note(model),) + (() if recorder.trains else (NOTHING_TO_TRAIN,)) + notes)


def note(model: TorchModel) -> str:
    """What the step is, for the report."""
    of_inputs = "and the inputs that require one" if model.trains_inputs else "(none with respect to the model's input)"
    return (
        "one training step: forward in train mode; loss: the mean of squares of every floating output, summed; gradients "
        f"with respect to the parameters {of_inputs}; one step of {update_of(model).title}, "
        "one parameter after the other"
    )


def record(model: TorchModel, device: str) -> TrainingRecorder:
    """What a training step of a fresh module dispatches."""
    try:
        return _record(model, device, fused=True)
    except FusedGradientFollowed:
        return _record(model, device, fused=False)


def _record(model: TorchModel, device: str, fused: bool) -> TrainingRecorder:
    """The same; ``fused`` says that a recurrent layer and attention are one op each way."""

    def call(module: torch.nn.Module, seal: Seal | None, shaken: str) -> TrainingRecorder:
        inputs = shake(model.example(device), shaken)
        module.zero_grad(set_to_none=True)
        path = TrainingPath(module)
        recorder = TrainingRecorder(path, module)
        recorder.add_data(tensors_out(inputs))
        calls = TrainedFusedCalls(recorder) if fused else None
        sealed, surroundings = recorder.follow_seal(seal, module, inputs), recorder.watch_surroundings
        with sealed, surroundings(), keep_numbers(), torch.enable_grad(), calls or nullcontext(), recorder, path:
            step(module, inputs, update_of(model), recorder, calls)
        return recorder

    return record_twice(call, lambda: model.build(device).train(), device, model.quick)
