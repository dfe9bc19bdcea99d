"""Tells which tensor classes take operators apart themselves (DTensor, quantised, low-rank).

Such a class has its own ``__torch_dispatch__``; its tensor has the sizes of the whole, and what runs are operators on the tensors
that it holds.  Recorders ask here: they let the operator of the whole pass (return NotImplemented, as
torch.distributed.tensor.debug.CommDebugMode does) and meet the operators that the class calls.  Python 3.8, torch 1.x and later.
"""

import sys
from typing import Any

import torch

_PLAIN = getattr(getattr(torch, "_C", None), "_disabled_torch_dispatch_impl", None)


def is_wrapper(kind: Any) -> bool:
    """Whether a class of tensors takes operators apart itself."""
    if kind is torch.Tensor or kind is torch.nn.Parameter or _PLAIN is None:
        return False
    return getattr(kind, "__torch_dispatch__", _PLAIN) is not _PLAIN and not is_fake(kind) and not _is_functional(kind)


def is_fake(kind: Any) -> bool:
    """Whether it has sizes and nothing to compute with: DTensor asks such tensors for the sizes of a result."""
    return _is(kind, "torch._subclasses.fake_tensor", "FakeTensor")


def _is_functional(kind: Any) -> bool:
    return _is(kind, "torch._subclasses.functional_tensor", "FunctionalTensor")


MODEL_HAS_FAKE_TENSORS = (
    "The model has FakeTensors, which have sizes and nothing to compute with: make it outside of FakeTensorMode; under "
    "torch.device('meta') it needs no memory either."
)
"""Why such a model cannot be counted."""


def overrides_functions(kind: Any) -> bool:
    """Whether a class of tensors has its own ``__torch_function__``, such as an attention bias that chooses a kernel."""
    own = getattr(getattr(kind, "__torch_function__", None), "__func__", None)
    return own is not None and own is not getattr(torch.Tensor.__torch_function__, "__func__", None)


def is_jagged(kind: Any) -> bool:
    """Whether it is PyTorch's nested tensor of jagged layout, whose attention is recorded row by row."""
    return _is(kind, "torch.nested._internal.nested_tensor", "NestedTensor")


def is_distributed(kind: Any) -> bool:
    """Whether it is a tensor that several processes share: it has the shape of the whole, and this process its part."""
    return _is(kind, "torch.distributed.tensor", "DTensor")


def is_awaited(kind: Any) -> bool:
    """Whether it is a plain tensor that other processes still send: what is called on it is called on the tensor."""
    return _is(kind, "torch.distributed._functional_collectives", "AsyncCollectiveTensor")


def _is(kind: Any, module: str, name: str) -> bool:
    known = getattr(sys.modules.get(module), name, None)
    return known is not None and isinstance(kind, type) and issubclass(kind, known)
