"""The trace of one training step of a PyTorch model: forward, loss, both kinds of gradients, and the optimiser's step.

The loss is the mean of squares of every floating output, summed over the outputs.  Gradients come from
``backward()``: the parameters that require one get theirs, and what leads to the input alone is never computed.  Recurrent layers
and attention are recorded as one op each way, as in inference; their backward has no formula.
"""

from typing import Any, Callable, List

import torch

from ..records import FORWARD, INPUT_GRADIENT, LOSS, LOSS_LAYER, OPTIMIZER, Op, Trace
from .torch_model import TorchModel, tensors_out
from .torch_phases import TrainingPath, TrainingRecorder
from .torch_records import tensor_record
from .trace_torch import FusedCalls, finished, recorded

OPTIMIZERS = {"sgd": lambda p: torch.optim.SGD(p, foreach=False), "adam": lambda p: torch.optim.Adam(p, foreach=False)}
"""By name, as PyTorch makes them when told nothing else; one parameter after the other."""


class _Opaque(torch.autograd.Function):
    """A fused call as one op each way; what comes back has the right shapes and no meaning."""

    @staticmethod
    def forward(ctx, recorder, compute, op, *tensors):
        # type: (Any, TrainingRecorder, Any, Any, *torch.Tensor) -> Any
        recorder.paused = True
        try:
            out = compute()
            ctx.like = [torch.empty_like(t, device="meta") for t in tensors]
        finally:
            recorder.paused = False
        made = op(out)
        recorder.add(made)
        ctx.recorder, ctx.made = recorder, made
        ctx.device = tensors[0].device
        return out

    @staticmethod
    def backward(ctx, *gradients):
        # type: (Any, *Any) -> Any
        recorder, made = ctx.recorder, ctx.made
        recorder.paused = True
        try:
            found = [torch.zeros_like(t, device=ctx.device) if t.is_floating_point() else None for t in ctx.like]
        finally:
            recorder.paused = False
        outputs = tuple(tensor_record(t) for t in found if t is not None)
        recorder.add(
            made._replace(id=recorder.next_id(), op=made.op + "_backward", outputs=outputs, phase=INPUT_GRADIENT)
        )
        return (None, None, None) + tuple(found)


class TrainedFusedCalls(FusedCalls):
    """Lets recurrent layers and attention through as one op forward and one op backward."""

    @property
    def wanted(self):
        # type: () -> bool
        return not self.recorder.paused and self.recorder.phase == FORWARD

    def one(self, compute, record, tensors):
        # type: (Callable[[], Any], Callable[[Any], Op], List[torch.Tensor]) -> Any
        return _Opaque.apply(self.recorder, compute, record, *tensors)


def step(module, inputs, optimizer, recorder):
    # type: (torch.nn.Module, List[Any], str, TrainingRecorder) -> None
    """One training step of a module in train mode. Raises ValueError where there is nothing to train."""
    outputs = [t for t in tensors_out(module(*inputs)) if t.is_floating_point()]
    recorder.begin(LOSS, LOSS_LAYER)
    losses = [torch.square(t).mean() for t in outputs if t.requires_grad]
    if not losses:
        raise ValueError(
            "no floating output depends on a parameter that requires a gradient: there is nothing to train"
        )
    loss = losses[0]
    for other in losses[1:]:
        loss = loss + other
    recorder.watch(loss.grad_fn)
    loss.backward()
    for name, weight in module.named_parameters():
        if weight.grad is not None:
            recorder.begin(OPTIMIZER, name.rpartition(".")[0])
            OPTIMIZERS[optimizer]([weight]).step()


def trace(model, died=""):
    # type: (TorchModel, str) -> Trace
    """Trace of one training step, on ``meta`` where the model allows, else on the CPU with a note.

    ``died`` says how an earlier process ended when the model ran on meta, if one did.
    """
    recorder, device, notes = recorded(record, model, died)
    return finished(recorder, device, (note(model.training),) + notes)


def note(optimizer):
    # type: (str) -> str
    """What the step is, for the report."""
    return (
        "one training step: forward in train mode; loss: the mean of squares of every floating output, summed; gradients "
        "with respect to the parameters (none with respect to the model's input); one step of torch.optim.%s, one "
        "parameter after the other" % {"sgd": "SGD", "adam": "Adam"}[optimizer]
    )


def record(model, device):
    # type: (TorchModel, str) -> TrainingRecorder
    """What a training step of a fresh module dispatches."""
    module = model.build(device)
    module.train()
    inputs = model.example(device)
    path = TrainingPath(module)
    recorder = TrainingRecorder(path, module)
    with torch.enable_grad(), TrainedFusedCalls(recorder), recorder, path:
        step(module, inputs, model.training, recorder)
    return recorder
