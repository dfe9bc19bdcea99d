"""The trace of one training step of a PyTorch model: forward, loss, both kinds of gradients, and the optimiser's step.

The loss is the mean of squares of every floating output, summed over the outputs.  Gradients come from
``backward()``: the parameters that require one get theirs, and what leads to the input alone is never computed.  Recurrent layers
and attention are recorded as one op each way, as in inference; their backward has no formula.
"""

from typing import Any, List

import torch

from ..records import FORWARD, INPUT_GRADIENT, LOSS, OPTIMIZER, Op, Trace
from .torch_model import TorchModel, tensors_out, versions
from .torch_phases import LOSS_LAYER, TrainingPath, TrainingRecorder
from .torch_records import plain, tensor_record, tensors_in
from .trace_torch import FusedCalls, recurrent, stand_in

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

    def __torch_function__(self, func, types, args=(), kwargs=None):
        # type: (Any, Any, Any, Any) -> Any
        kwargs = kwargs or {}
        recorder = self.recorder
        name = self.recurrent.get(func) if type(func).__hash__ is not None else None
        if recorder.paused or recorder.phase != FORWARD:
            return func(*args, **kwargs)
        if name is not None and not kwargs:
            meta = args[0].device.type == "meta"
            compute = (lambda: stand_in(name, args)) if meta else (lambda: func(*args))

            def made(out):
                # type: (Any) -> Op
                return recurrent(name, args, out, recorder.next_id(), recorder.path.current)

            return _Opaque.apply(recorder, compute, made, *tensors_in(args))
        if func is torch.nn.functional.scaled_dot_product_attention:
            return self.attention(func, args, kwargs)
        return func(*args, **kwargs)

    def attention(self, func, args, kwargs):
        # type: (Any, Any, Any) -> Any
        names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa")
        given = dict(zip(names, args))
        given.update(kwargs)
        recorder = self.recorder
        tensors = [given[n] for n in names[:4] if isinstance(given.get(n), torch.Tensor)]

        def made(out):
            # type: (Any) -> Op
            attrs = {n: plain(given.get(n)) for n in names[4:]}
            if given.get("attn_mask") is None:
                attrs["attn_mask"] = None
            inputs = tuple(tensor_record(t) for t in tensors)
            id, layer = recorder.next_id(), recorder.path.current
            return Op(id, "aten.scaled_dot_product_attention", layer, inputs, (tensor_record(out),), attrs)

        return _Opaque.apply(recorder, lambda: func(*args, **kwargs), made, *tensors)


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
    notes = [note(model.training)]
    recorder, device = None, "meta"
    if not died:
        try:
            recorder = record(model, device)
        except Exception as error:  # whatever a model does that needs values: run it for real
            died = "%s: %s" % (type(error).__name__, str(error).strip().split("\n")[0][:200])
    if recorder is None:
        notes.append("cannot run on meta (%s): traced on the CPU" % died)
        recorder, device = record(model, "cpu"), "cpu"
    ops = tuple(recorder.ops.values())
    layers = tuple(dict.fromkeys(op.layer for op in ops))
    return Trace("torch", versions(), device, ops, (), (), layers, tuple(notes))


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
