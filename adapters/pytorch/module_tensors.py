"""Lists the parameters and buffers of a PyTorch module, sums their bytes, and recognises those that have no size yet.

Python 3.8, torch 1.x and later.
"""

from typing import Any, List


def parameter_bytes(module: Any) -> int:
    """Bytes of a module's parameters and buffers, each counted once, as far as they have a size."""
    held = {id(t): t for t in tensors_of(module) if not is_lazy(t)}
    return sum(t.numel() * t.element_size() for t in held.values())


def is_lazy(tensor: Any) -> bool:
    """Whether it is a parameter or buffer of a lazy module that has not been called."""
    return hasattr(tensor, "materialize")


def tensors_of(module: Any) -> List[Any]:
    """A module's parameters and buffers."""
    return list(module.parameters()) + list(module.buffers())
