"""MemoryGuard: a dispatch mode that raises OutOfMemory before a tensor is allocated on the CPU that free memory cannot hold."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from ..shared.refusal import OutOfMemory
from . import memory_estimate
from .tracing.records import tensors_in

SMALL = 1 << 24
"""Bytes up to which tensors are made without a look at what is free."""

RESERVE = 1 << 28
"""Bytes left to the system and to the rest of the process."""


class MemoryGuard(TorchDispatchMode):
    """Raises OutOfMemory before tensors are made on the CPU that do not fit; ``advice`` is the end of its sentence."""

    supports_higher_order_operators = True
    takes_parts = True  # it may meet what a kernel calls in place of the operator (tracing/opened_kernels.py)

    def __init__(self, advice: str = "") -> None:
        super().__init__()
        self.advice = advice
        self.made = 0  # bytes since the last look

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not hasattr(func, "_schema"):  # it runs functions, which are met here
            return func(*args, **kwargs)
        wanted = (
            0 if func._schema.is_mutable or getattr(func, "is_view", False) else requested_bytes(func, args, kwargs)
        )
        self.made += wanted
        if self.made > SMALL:
            self.made, left = 0, memory_estimate.free_memory()
            if left is not None and wanted > left - RESERVE:
                asks = (
                    f"it asks for {memory_estimate.gib(wanted)} more and {memory_estimate.gib(left)} of memory are free"
                )
                raise OutOfMemory(asks + self.advice)
        return func(*args, **kwargs)


class BypassJitTrace(TorchFunctionMode):
    """Turns off dispatch modes while ``torch.jit.trace`` records: calls would be recorded a second time on their way through."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if torch._C._get_tracing_state() is None:
            return func(*args, **kwargs)
        with _disable_current_modes():
            return func(*args, **kwargs)


FILLS = (torch.Tensor.normal_, torch.Tensor.uniform_)
"""Methods that fill a tensor with random numbers."""


class SkipInitOnMeta(TorchFunctionMode):
    """Leaves weights on meta without first values, which change no size: on meta they cost an import of PyTorch's compiler."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if any(func is fill for fill in FILLS) or getattr(func, "__module__", "") == "torch.nn.init":
            filled = args[0] if args else kwargs.get("tensor")
            if isinstance(filled, torch.Tensor) and filled.is_meta:
                return filled
        return func(*args, **kwargs)


def requested_bytes(func: Any, args: Any, kwargs: Any) -> int:
    """Bytes of the result: of the sizes that are asked for, else of the largest tensor or list of tensors that goes in."""
    if str(kwargs.get("device", "cpu") or "cpu") != "cpu":
        return 0
    given = dict(zip((argument.name for argument in func._schema.arguments), args))
    given.update(kwargs)
    if isinstance(given.get("size"), (list, tuple)):
        count = element_bytes(given)
        for size in given["size"]:
            count *= int(size)
        return count
    return max([sum(map(bytes_of, tensors_in(value))) for value in given.values()] or [0])


def element_bytes(given: Any) -> int:
    """Bytes of one element of what these arguments ask for."""
    like = given["self"].dtype if isinstance(given.get("self"), torch.Tensor) else torch.get_default_dtype()
    return int(torch.empty((), dtype=given.get("dtype") or like, device="meta").element_size())


def bytes_of(tensor: torch.Tensor) -> int:
    """Bytes of a tensor's elements; 0 on meta."""
    return 0 if tensor.is_meta else tensor.numel() * tensor.element_size()
