"""Makes the input tensors of a model's call: copies of the caller's with the same values, strides and shared memory.

A tensor that is passed twice is copied once, and views of one storage become views of one copy.  Inputs that are given by shape
and dtype get pseudo-random numbers.  Python 3.8, torch 1.x and later.
"""

from typing import Any, Dict, Tuple

import torch

from ..shared.refusal import FactoryError
from .tracing.wrappers import MODEL_HAS_FAKE_TENSORS, is_fake


def dtype_of(leaf: Any) -> torch.dtype:
    """The dtype of a tensor, of a numpy array, or of an input that is given by its shape and dtype."""
    return leaf.dtype if isinstance(leaf.dtype, torch.dtype) else getattr(torch, str(leaf.dtype))


class Inputs:
    """Makes the tensors of one call on one device."""

    def __init__(self, device: str) -> None:
        self.device = device
        self._made: Dict[int, Tuple[Any, torch.Tensor]] = {}  # by id, with the leaf, so that the id stays its own
        self._storages: Dict[int, Any] = {}  # by the address of a leaf's memory, with that memory

    def tensor(self, leaf: Any) -> torch.Tensor:
        """The tensor for a leaf: a tensor at hand, an array, or a shape and a dtype."""
        if id(leaf) not in self._made:
            made = self._made[id(leaf)] = (leaf, _with_attributes(self._new(leaf), leaf))
            if isinstance(leaf, torch.Tensor) and leaf.is_leaf and leaf.grad is not None:
                made[1].grad = self.tensor(leaf.grad)
        return self._made[id(leaf)][1]

    def _new(self, leaf: Any) -> torch.Tensor:
        if isinstance(leaf, torch.Tensor):
            if type(leaf) in (torch.Tensor, torch.nn.Parameter) and _has_storage(leaf):
                return self._copy_tensor(leaf)
            if is_fake(type(leaf)):
                raise FactoryError(MODEL_HAS_FAKE_TENSORS)
            if not leaf.is_meta:
                return leaf.detach().to(self.device)
        elif hasattr(leaf, "__array__") and self.device != "meta":
            return torch.as_tensor(leaf.__array__()).to(self.device)
        return _made_up(leaf, self.device)

    def _copy_tensor(self, leaf: torch.Tensor) -> torch.Tensor:
        """The tensor on a copy of the memory that it is a view of; of one without values, on memory with made-up ones."""
        held = leaf.untyped_storage()
        key = held._cdata
        if key not in self._storages:
            if leaf.is_meta and self.device != "meta":
                count = held.nbytes() // leaf.element_size()
                flat = leaf.new_empty((count,))
                copied = _made_up(flat, self.device).untyped_storage()
            elif self.device == "meta":
                copied = torch.empty((held.nbytes(),), dtype=torch.uint8, device="meta").untyped_storage()
            else:
                whole = torch.empty((0,), dtype=torch.uint8, device=leaf.device).set_(held)
                copied = whole.clone().to(self.device).untyped_storage()
            self._storages[key] = (held, copied)
        place = torch.empty((0,), dtype=leaf.dtype, device=self.device)
        with torch.no_grad():
            return place.set_(self._storages[key][1], leaf.storage_offset(), tuple(leaf.shape), leaf.stride())


def _with_attributes(made: torch.Tensor, leaf: Any) -> torch.Tensor:
    """The tensor with what a leaf has beside its values: its attributes, whether it requires a gradient, and is a parameter."""
    if isinstance(leaf, torch.Tensor) and made is not leaf:
        made = torch.nn.Parameter(made, leaf.requires_grad) if type(leaf) is torch.nn.Parameter else made
        for name, value in vars(leaf).items():
            if name not in vars(made):  # a class that takes operators apart keeps its tensors there
                setattr(made, name, value)
        if leaf.requires_grad:
            made.requires_grad_()
    return made


def _has_storage(leaf: torch.Tensor) -> bool:
    """Whether it is a tensor of sizes and strides on memory of its own (not sparse, not quantised), in PyTorch 2.0 or later."""
    plain = leaf.layout is torch.strided and not leaf.is_quantized and not getattr(leaf, "is_nested", False)
    return plain and hasattr(leaf, "untyped_storage") and leaf.device.type in ("cpu", "meta", "cuda")


def _made_up(leaf: Any, device: str) -> torch.Tensor:
    """Pseudo-random numbers, the same for every such leaf; integers are zeros and ones."""
    dtype, shape = dtype_of(leaf), tuple(leaf.shape)
    if device == "meta":
        return torch.empty(shape, dtype=dtype, device="meta")
    generator = torch.Generator().manual_seed(0)
    if dtype.is_floating_point:
        value = torch.randn(shape, generator=generator, dtype=dtype, device="cpu")
    else:
        value = torch.randint(0, 2, shape, generator=generator, dtype=dtype, device="cpu")
    return value.to(device)
