"""An independent count of multiply-adds: every kernel that multiplies and adds, as it reaches PyTorch's dispatcher.

It shares nothing with the trace: no formula, no record, no fused call. What it reads is the shapes of the tensors that a kernel
is called with.
"""

from __future__ import annotations

from math import prod
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

PRODUCTS = {
    "mm": 0,
    "_int_mm": 0,
    "bmm": 0,
    "addmm": 1,
    "_addmm_activation": 1,
    "baddbmm": 1,
    "mv": 0,
    "addmv": 1,
    "dot": 0,
    "vdot": 0,
}
"""Products of matrices and vectors, and the position of their first factor."""


class DispatchCount(TorchDispatchMode):
    """Counts while it is entered: ``macs``, of which ``by`` name."""

    def __init__(self) -> None:
        super().__init__()
        self.by: dict[str, int] = {}

    @property
    def macs(self) -> int:
        """The multiply-adds of all kernels."""
        return sum(self.by.values())

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if hasattr(func, "_schema"):
            name = func._schema.name.partition("::")[2].rstrip("_")
            macs = multiply_adds(name, args, out)
            if macs:
                self.by[name] = self.by.get(name, 0) + macs
        return out


def multiply_adds(name: str, args: Any, out: Any) -> int:
    """Multiply-adds of one kernel; a product of complex numbers has four."""
    if name in PRODUCTS:
        a, b = args[PRODUCTS[name] : PRODUCTS[name] + 2]
        columns = b.shape[-1] if b.dim() > 1 else 1
        return int(prod(a.shape)) * columns * (4 if a.is_complex() else 1)
    if name == "linear":
        return int(args[0].numel()) * int(args[1].shape[0])
    if name in ("convolution", "_convolution"):
        x, weight, transposed = args[0], args[1], args[6]
        return int((x if transposed else out).numel()) * prod(weight.shape[1:])
    if name == "convolution_backward":
        gradient, x, weight, transposed, wanted = args[0], args[1], args[2], args[7], args[10]
        return int((x if transposed else gradient).numel()) * prod(weight.shape[1:]) * sum(map(bool, wanted[:2]))
    if name.startswith("_scaled_dot_product"):
        backward = name.endswith("_backward")
        q, k, v = args[1:4] if backward else args[:3]
        return (
            prod(q.shape[:-1])
            * k.shape[-2]
            * (3 * q.shape[-1] + 2 * v.shape[-1] if backward else q.shape[-1] + v.shape[-1])
        )
    if name == "_euclidean_dist":  # one product of rows with two columns more: -2 x, x², 1 and y, 1, y² (Distance.cpp)
        a, b = args[:2]
        return int(prod(a.shape[:-1])) * int(b.shape[-2]) * (int(a.shape[-1]) + 2)
    if name == "_grouped_mm":
        return _grouped(*args[:2])
    return 0


def _grouped(a: Any, b: Any) -> int:
    """Products of groups of rows: with a matrix each, or of groups of columns with groups of rows."""
    if a.dim() == 3 and b.dim() == 2:
        return int(a.shape[1]) * int(b.numel())
    return int(a.numel()) * int(b.shape[-1])


def count(model: Any, named: Any) -> int:
    """The multiply-adds of one call; recurrent layers in their own kernels, which oneDNN would hide."""
    with torch.no_grad(), torch.backends.mkldnn.flags(enabled=False), DispatchCount() as counted:
        model(**named)
    return counted.macs
