"""A torch function mode in which token ids, positions and masks keep values on the CPU, for a model on the meta device."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any


def values_on_cpu() -> AbstractContextManager[Any]:
    """Within it, token ids, sizes of images, positions and masks are computed on the CPU, also where a model asks for the device
    of its weights; they go to meta where they meet a number of the model.

    So a model can ask how many tokens are an image's, or whether its mask is causal, as it can on a real device.
    """
    import torch
    from torch.overrides import TorchFunctionMode
    from torch.utils._pytree import tree_leaves, tree_map

    meta, tensor = torch.device("meta"), torch.Tensor
    ranges, picks = {"arange", "as_tensor", "tensor"}, {"__getitem__", "__setitem__"}

    def here(leaf: Any) -> Any:
        return torch.device("cpu") if leaf == meta else leaf

    def there(leaf: Any) -> Any:
        """The tensor on meta. A single number stays: it may be the end of a slice."""
        return leaf.to(meta) if isinstance(leaf, tensor) and leaf.dim() else leaf

    def places(index: Any) -> tuple[Any, ...]:
        """An index whose masks are the places they choose: meta cannot tell how many these are."""
        found: list[Any] = []
        for part in index if isinstance(index, tuple) else (index,):
            mask = isinstance(part, tensor) and part.dtype == torch.bool and part.dim() and not part.is_meta
            found += part.nonzero(as_tuple=True) if mask else (part,)
        return tuple(found)

    class Values(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs, name = kwargs or {}, getattr(func, "__name__", "")  # a recorder may stand in a function's place
            given = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, tensor)]
            if not any(one.is_meta for one in given):
                whole = name in ranges or (given and not any(one.is_floating_point() for one in given))
                args, kwargs = tree_map(here, (args, kwargs)) if whole else (args, kwargs)
                return func(*args, **kwargs)
            if name == "expand_as" and not args[0].is_meta:
                return args[0].expand(args[1].shape)
            if name == "to" and not args[0].is_meta:
                return args[0].to(args[1].dtype)
            args = (args[0], places(args[1]), *args[2:]) if name in picks else args
            args, kwargs = tree_map(there, (args, kwargs))
            return func(*args, **kwargs)

    return Values()
