"""Whole numbers and masks that keep their values beside a model on meta, which has none."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map

META = torch.device("meta")
RANGES = (torch.arange, torch.as_tensor, torch.tensor)
"""What makes whole numbers of nothing but numbers."""
PICKS = (torch.Tensor.__getitem__, torch.Tensor.__setitem__)


class Values(TorchFunctionMode):
    """Token ids, sizes of images, positions and masks are computed on the CPU, also where a model asks for the device of its
    weights; they go to meta where they meet a number of the model.

    So a model can ask how many tokens are an image's, or whether its mask is causal, as it can on a real device.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call ``func`` where its tensors are."""
        kwargs = kwargs or {}
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        if not any(tensor.is_meta for tensor in tensors):
            whole = func in RANGES or (tensors and not any(tensor.is_floating_point() for tensor in tensors))
            args, kwargs = tree_map(_here, (args, kwargs)) if whole else (args, kwargs)
            return func(*args, **kwargs)
        if func is torch.Tensor.expand_as and not args[0].is_meta:
            return args[0].expand(args[1].shape)
        if func is torch.Tensor.to and not args[0].is_meta:
            return args[0].to(args[1].dtype)
        if func in PICKS:
            args = (args[0], _places(args[1]), *args[2:])
        args, kwargs = tree_map(_there, (args, kwargs))
        return func(*args, **kwargs)


def _here(leaf: Any) -> Any:
    return torch.device("cpu") if leaf == META else leaf


def _there(leaf: Any) -> Any:
    """The tensor on meta. A single number stays: it may be the end of a slice."""
    return leaf.to(META) if isinstance(leaf, torch.Tensor) and leaf.dim() else leaf


def _places(index: Any) -> tuple[Any, ...]:
    """An index whose masks are the places they choose: meta cannot tell how many these are."""
    found: list[Any] = []
    for part in index if isinstance(index, tuple) else (index,):
        mask = isinstance(part, torch.Tensor) and part.dtype == torch.bool and part.dim() and not part.is_meta
        found += part.nonzero(as_tuple=True) if mask else (part,)
    return tuple(found)
