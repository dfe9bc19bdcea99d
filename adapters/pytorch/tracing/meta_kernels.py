"""Replacement meta kernels, which give shapes without values, where PyTorch's own refuse a call that the CPU computes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

_HELD: list[Any] = []  # a registration lasts as long as its library


def register() -> None:
    """Let this process use them; once, and as far as this PyTorch has these operators (2.5)."""
    if _HELD or not hasattr(torch.ops.aten, "_grouped_mm"):
        return
    library = torch.library.Library("aten", "IMPL")
    library.impl("_grouped_mm", grouped_mm, "Meta", allow_override=True)
    _HELD.append(library)


def grouped_mm(first: Any, second: Any, offs: Any = None, bias: Any = None, out_dtype: Any = None) -> Any:
    """An empty tensor of the shape of these products of groups, of any dtype: PyTorch's own kernel takes bfloat16 alone."""
    rows, columns = first.shape[-2], second.shape[-1]
    groups: list[int] = []
    if first.dim() == second.dim():
        groups = [first.shape[0] if first.dim() == 3 else offs.shape[0]]
    return first.new_empty(groups + [rows, columns], dtype=out_dtype or first.dtype)


@contextmanager
def traceable() -> Iterator[None]:
    """Meanwhile ``torch.jit.trace`` meets a convolution on meta as it does on the CPU: as one ``aten::_convolution``.

    PyTorch's own kernel for meta does not call that operator, and it fails under a trace, where sizes are tensors.  A PyTorch
    that does not allow the kernel to be replaced stays as it is.
    """
    try:
        from torch._meta_registrations import meta_conv

        library = torch.library.Library("aten", "IMPL")
    except (ImportError, AttributeError):  # before PyTorch 2.0
        yield
        return

    def convolution(*args: Any) -> Any:
        flags = (False, False, False, True)  # benchmark, deterministic, cudnn_enabled, allow_tf32
        return torch.ops.aten._convolution.default(*(args + flags))

    def call_traced(*args: Any) -> Any:
        return meta_conv(*args[:9])

    try:
        library.impl("convolution", convolution, "Meta", allow_override=True)
        library.impl("_convolution", call_traced, "Meta", allow_override=True)
    except TypeError:  # before PyTorch 2.5
        pass
    try:
        yield
    finally:
        library._destroy()
