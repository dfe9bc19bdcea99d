"""Parts of the rules of several counters of PyTorch's modules and functions: names, sizes, and counts per element."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.records import Op
from ...work import Work, prod
from .rulebook import Compute, dims, size

NN, F = "torch.nn.modules.", "torch.nn.functional."
AXES = (1, 2, 3)


def classes(space: str, *names: str) -> tuple[str, ...]:
    """Full names of classes of one module of torch.nn."""
    return tuple(f"{NN}{space}.{name}" for name in names)


def by_axes(space: str, *names: str) -> tuple[str, ...]:
    """Full names of classes that exist for one axis, two and three: ("conv", "Conv") are Conv1d, Conv2d and Conv3d."""
    return classes(space, *(f"{name}{axes}d" for name in names for axes in AXES))


def functional(*names: str) -> tuple[str, ...]:
    """Full names of functions of torch.nn.functional."""
    return tuple(F + name for name in names)


def of_torch(*names: str) -> tuple[str, ...]:
    """Full names of functions that torch and its tensors have."""
    return tuple(f"{space}.{name}" for name in names for space in ("torch", "torch.Tensor"))


def shape_in(op: Op, at: int = 0) -> tuple[int, ...]:
    """The shape of an input."""
    return dims(op.inputs[at].shape)


def shape_out(op: Op) -> tuple[int, ...]:
    """The shape of the first output."""
    return dims(op.outputs[0].shape)


def elements_in(op: Op) -> int:
    """Elements of the first input."""
    return size(op.inputs[0].shape)


def elements_out(op: Op) -> int:
    """Elements of the first output."""
    return size(op.outputs[0].shape)


def per_input(**counts: int) -> Compute:
    """These operations for each element of the first input."""
    return lambda op: Work(**counts) * elements_in(op)


def per_output(**counts: int) -> Compute:
    """These operations for each element of the first output."""
    return lambda op: Work(**counts) * elements_out(op)


def dots(terms: int, out: int, biased: bool) -> Work:
    """A dot product of this many terms for each of ``out`` elements, of a counter that takes 2K - 1: a product starts the sum."""
    return Work(mac=terms * out, accumulators=out, add=out if biased else 0)


def flat_window(op: Op) -> int:
    """The window of a pool, of a counter that takes a kernel given as one number for that many elements, whatever the axes
    (torch_flops/flops_ops.py:38, torchscan/modules/flops.py:172)."""
    kernel = op.attrs["kernel_size"]
    return int(kernel) if isinstance(kernel, int) else prod(kernel)


def shrunk(op: Op) -> tuple[int, ...]:
    """The window of an adaptive pool by axis: the quotient of both sizes, or the remainder and 1 if there is one
    (torch_flops/flops_ops.py:44, torchscan/modules/_pooling.py:9)."""
    pairs = zip(shape_in(op)[2:], shape_out(op)[2:], strict=True)
    return tuple(i % o + 1 if i % o else i // o for i, o in pairs)


def two_or_four(op: Op) -> Work:
    """A norm: two operations for each element of the input, and two more if it has weights."""
    affine = op.attrs.get("affine", False) or op.attrs.get("elementwise_affine", False)
    return (Work(add=2, mul=2) if affine else Work(add=1, mul=1)) * elements_in(op)


def printed_flops(equation: str, shapes: Sequence[tuple[int, ...]]) -> int:
    """numpy.einsum_path's optimized FLOP count, of which it prints four digits."""
    import numpy as np  # not at home, unless a counter met an einsum

    text = np.einsum_path(equation, *(np.broadcast_to(np.float32(0), s) for s in shapes), optimize="optimal")[1]
    line = next(part for part in text.split("\n") if "optimized flop" in part.lower())
    return int(float(line.split(":")[-1]))
