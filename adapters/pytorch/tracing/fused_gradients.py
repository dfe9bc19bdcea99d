"""Recurrent layers and attention of a training step: one op forward, and one backward op for each part of the gradient.

On meta this holds for both.  On a device that computes, it holds only for attention, and only where PyTorch runs its matrix
products one by one: the trace then says what is causal.  There a fused kernel and a recurrent layer run as they are and are
recorded op by op, with the gradients that they compute although nothing needs them, and code that reads a gradient's values (a
hook, clipping, a test for NaN) gets values.

A backward op has the inputs of its forward op.  ``needs`` says which of them need a gradient, ``arrived`` which outputs have
one, ``part`` which part of the work the op counts: parts belong to different phases (reconcile/work/aten/fused_gradients.py).
On meta no step is run: the time to trace a layer does not depend on how many there are.

Attention on meta is counted as the kernel that PyTorch would choose on a CPU.  A kernel other than the plain products computes
the gradients of query, key and value whenever one is needed; the gradients that nothing needs are parts of their own,
``unneeded``.
"""

from __future__ import annotations

from typing import Any, Callable

import torch

from ....core.records import (
    FORWARD,
    INPUT_GRADIENT,
    RECOMPUTATION,
    UNNEEDED,
    WEIGHT_GRADIENT,
    Op,
)
from ..phases import TrainingRecorder
from .followed_calls import is_followed, is_transformed
from .fused_calls import FUSED, FusedCalls
from .nodes import is_recomputing
from .records import tensor_record, tensors_in

ATTENTION = ("query", "key", "value", "mask")
PLAIN = 0
"""Answer of torch._fused_sdp_choice: no kernel, the products are made one by one (SDPBackend.MATH)."""


class FusedGradientFollowed(Exception):
    """The model takes a gradient of a gradient of a call that was recorded as one op: it has to be recorded op by op."""


class _FusedFunction(torch.autograd.Function):
    """A fused call, recorded as one op forward and its parts backward. Its gradients have the right shapes; their
    values are zeros, unless ``followed`` is set."""

    @staticmethod
    def forward(
        ctx: Any,
        recorder: TrainingRecorder,
        compute: Any,
        op: Any,
        at_once: bool,
        followed: bool,
        *tensors: torch.Tensor,
    ) -> Any:
        recorder.paused = True
        try:
            ctx.inner = _FollowedCall(compute, tensors) if followed else None
            out = compute(*tensors) if ctx.inner is None else ctx.inner.out.detach()
            made = op(out)
            ctx.like = [torch.empty_like(t, device="meta") for t in tensors]
        finally:
            recorder.paused = False
        recorder.hold_memory(out)
        recorder.add(made)
        ctx.recorder, ctx.made, ctx.at_once = recorder, made, at_once
        ctx.of_weights = [recorder.of_weights([t]) for t in tensors]
        ctx.device = tensors[0].device
        ctx.save_for_backward(tensors[0])  # so that a checkpoint computes it again, as it would the call itself
        ctx.set_materialize_grads(False)
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        recorder, needs = ctx.recorder, list(ctx.needs_input_grad[5:])
        if recorder.is_followed:
            raise FusedGradientFollowed
        _ = ctx.saved_tensors
        recorder.paused = True
        try:
            if ctx.inner is not None:
                found = ctx.inner.gradients(gradients[0])
            else:
                found = [torch.zeros_like(t, device=ctx.device) if need else None for t, need in zip(ctx.like, needs)]
        finally:
            recorder.paused = False
        recorder.hold_memory(found)
        arrived = [gradient is not None for gradient in gradients]
        computed = [need or (ctx.at_once and i < len(ATTENTION) - 1) for i, need in enumerate(needs)]
        for part, tensors in _list_parts(ctx.made, computed).items():
            weights = part == "weights" or all(ctx.of_weights[i] for i in tensors)
            needed = part in _list_parts(ctx.made, needs)
            attrs = dict(ctx.made.attrs, needs=computed, arrived=arrived, part=part)
            recorder.add(
                ctx.made._replace(
                    op=ctx.made.op + "_backward",
                    outputs=tuple(tensor_record(ctx.like[i]) for i in tensors if computed[i]),
                    attrs=attrs if needed else dict(attrs, **{UNNEEDED: True}),
                    phase=WEIGHT_GRADIENT if weights else INPUT_GRADIENT,
                )
            )
        return (None,) * 5 + tuple(found)


class _FollowedCall:
    """A call on copies of its tensors, followed by autograd on its own, for the values of its gradients."""

    def __init__(self, compute: Callable[..., Any], tensors: tuple[torch.Tensor, ...]) -> None:
        self.tensors = [t.detach().requires_grad_(t.requires_grad) for t in tensors]
        # a checkpoint counts what is saved in it: of the call that is what _FusedFunction saves, and none of this
        with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(_keep_tensor, _keep_tensor):
            self.out = compute(*self.tensors)

    def gradients(self, arrived: torch.Tensor) -> list[Any]:
        """The gradients, None where none is needed.  The engine is run as autograd.grad would, which is being watched."""
        wanted = tuple(t for t in self.tensors if t.requires_grad)
        run = torch.autograd.graph._engine_run_backward
        made = iter(run((self.out,), (arrived,), True, False, wanted, True, accumulate_grad=False))
        return [next(made) if t.requires_grad else None for t in self.tensors]


def _keep_tensor(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def _list_parts(op: Op, needs: list[bool]) -> dict[str, list[int]]:
    """The parts of the gradient that are needed, each with the inputs that it is for."""
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


def _proxy(value: Any) -> Any:
    """A CPU tensor with what a kernel is chosen by of this one, in the memory of one row; another value as it is."""
    if not isinstance(value, torch.Tensor) or not value.dim():
        return value
    last, step = int(value.shape[-1]), 1 if value.stride(-1) == 1 else 2
    row = torch.empty(last * step, dtype=value.dtype, device="cpu")[::step]
    return row.expand(value.shape).requires_grad_(value.requires_grad)


class TrainedFusedCalls(FusedCalls):
    """FusedCalls of a training step: records the op of a call, and a backward op for each part of its gradient."""

    at_once = False  # whether the kernel of the call computes all gradients where one is needed

    @property
    def is_own_call(self) -> bool:
        return not self.recorder.paused and (self.recorder.phase == FORWARD or is_recomputing())

    def can_stand_for(self, tensors: list[torch.Tensor]) -> bool:
        """Whether one op may be recorded in place of a call on these tensors, and others in place of its gradients'."""
        return not is_transformed()

    def recurrent_call(self, name: str, func: Any, args: tuple[Any, ...]) -> Any:
        if args[0].device.type != "meta":
            return func(*args)
        return super().recurrent_call(name, func, args)

    def attention(self, func: Any, args: Any, kwargs: Any) -> Any:
        by_kernel = self._choose_cpu_kernel(args, kwargs) != PLAIN
        if by_kernel and any(t.device.type != "meta" for t in tensors_in([*args, *kwargs.values()])):
            return func(*args, **kwargs)
        self.at_once = by_kernel
        try:
            return super().attention(func, args, kwargs)
        finally:
            self.at_once = False

    def _choose_cpu_kernel(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
        """The kernel that PyTorch would choose for this call on the CPU (torch.nn.attention.SDPBackend)."""
        self.recorder.paused = True
        try:
            there = [_proxy(value) for value in args]
            return int(torch._fused_sdp_choice(*there, **{name: _proxy(value) for name, value in kwargs.items()}))
        except (
            RuntimeError,
            TypeError,
            AttributeError,
        ):  # no such call, which PyTorch will say, or a tensor of another kind
            return PLAIN
        finally:
            self.recorder.paused = False

    def record_op(self, compute: Callable[..., Any], record: Callable[[Any], Op], tensors: list[torch.Tensor]) -> Any:
        self.recorder.check_memory(tensors, FUSED)
        phase = RECOMPUTATION if is_recomputing() else FORWARD
        layer = self.recorder.where()

        def make_op(out: Any) -> Op:
            return record(out)._replace(layer=layer, phase=phase)

        followed = tensors[0].device.type != "meta" and is_followed(tensors)
        return _FusedFunction.apply(self.recorder, compute, make_op, self.at_once, followed, *tensors)
