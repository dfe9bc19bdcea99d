"""Recurrent layers and attention of a training step on meta: one op forward, and backward one per part of the gradient.

On any other device they run as they are and are recorded op by op: a kernel may compute gradients that nobody needs, and what
looks at the values of a gradient (a hook, clipping, a test for NaN) gets them.

A backward op has the inputs of its forward op.  ``needs`` says which of them need a gradient, ``arrived`` which outputs have
one, ``part`` which part of the work it stands for: parts belong to different phases (reconcile/work/aten_fused_gradients.py).
On meta no step is run: the time to trace a layer does not depend on how many there are.
"""

from typing import Any, Callable, Dict, List

import torch

from ...core.records import FORWARD, INPUT_GRADIENT, RECOMPUTATION, WEIGHT_GRADIENT, Op
from .followed_calls import is_transformed
from .nodes import recomputing
from .phases import TrainingRecorder
from .records import tensor_record
from .trace import FusedCalls

ATTENTION = ("query", "key", "value", "mask")


class _Opaque(torch.autograd.Function):
    """A fused call as one op forward and its parts backward; what comes back has the right shapes and no meaning."""

    @staticmethod
    def forward(ctx, recorder, compute, op, *tensors):
        # type: (Any, TrainingRecorder, Any, Any, *torch.Tensor) -> Any
        recorder.paused = True
        try:
            out = compute()
            made = op(out)
            ctx.like = [torch.empty_like(t, device="meta") for t in tensors]
        finally:
            recorder.paused = False
        recorder.add(made)
        ctx.recorder, ctx.made = recorder, made
        ctx.of_weights = [recorder.of_weights([t]) for t in tensors]
        ctx.device = tensors[0].device
        ctx.save_for_backward(tensors[0])  # so that a checkpoint computes it again, as it would the call itself
        ctx.set_materialize_grads(False)
        return out

    @staticmethod
    def backward(ctx, *gradients):
        # type: (Any, *Any) -> Any
        recorder, needs = ctx.recorder, list(ctx.needs_input_grad[3:])
        _ = ctx.saved_tensors
        recorder.paused = True
        try:
            found = [torch.zeros_like(t, device=ctx.device) if need else None for t, need in zip(ctx.like, needs)]
        finally:
            recorder.paused = False
        arrived = [gradient is not None for gradient in gradients]
        for part, tensors in _parts(ctx.made, needs).items():
            weights = part == "weights" or all(ctx.of_weights[i] for i in tensors)
            recorder.add(
                ctx.made._replace(
                    id=recorder.next_id(),
                    op=ctx.made.op + "_backward",
                    outputs=tuple(tensor_record(found[i]) for i in tensors if found[i] is not None),
                    attrs=dict(ctx.made.attrs, needs=needs, arrived=arrived, part=part),
                    phase=WEIGHT_GRADIENT if weights else INPUT_GRADIENT,
                )
            )
        return (None, None, None) + tuple(found)


def _parts(op, needs):
    # type: (Op, List[bool]) -> Dict[str, List[int]]
    """Part of the gradient -> the inputs that it is for, where one of them needs it."""
    wanted = [i for i, need in enumerate(needs) if need]
    if "weights_at" in op.attrs:
        at = op.attrs["weights_at"]
        return {
            "activations": list(range(at)),
            **({"weights": list(range(at, len(needs)))} if wanted[-1] >= at else {}),
        }
    parts = {ATTENTION[i]: [i] for i in wanted}
    scored = [i for i in wanted if ATTENTION[i] != "value"]
    return {**({"scores": scored} if scored else {}), **parts}


class TrainedFusedCalls(FusedCalls):
    """Lets recurrent layers and attention through as ops of their own."""

    @property
    def wanted(self):
        # type: () -> bool
        return not self.recorder.paused and (self.recorder.phase == FORWARD or recomputing())

    def stands(self, tensors):
        # type: (List[torch.Tensor]) -> bool
        """Whether one op may stand for a call on these tensors, and a stand-in for its gradients."""
        return tensors[0].device.type == "meta" and not is_transformed()

    def one(self, compute, record, tensors):
        # type: (Callable[[], Any], Callable[[Any], Op], List[torch.Tensor]) -> Any
        phase = RECOMPUTATION if recomputing() else FORWARD
        layer = self.recorder.where()

        def made(out):
            # type: (Any) -> Op
            return record(out)._replace(layer=layer, phase=phase)

        return _Opaque.apply(self.recorder, compute, made, *tensors)
