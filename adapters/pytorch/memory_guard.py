"""Stops a model that does not fit before it takes the machine's memory: every tensor is looked at before it is made."""

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ..shared.refusal import OutOfMemory
from . import memory as torch_room

SMALL = 1 << 24
"""Bytes up to which a tensor is made without a look at what is free."""

RESERVE = 1 << 28
"""Bytes left to the system and to the rest of the process."""


class Watch(TorchDispatchMode):
    """Raises OutOfMemory before a tensor is made on the CPU that does not fit; ``why`` the model is not made on meta."""

    def __init__(self, why):
        # type: (str) -> None
        super(Watch, self).__init__()
        self.why = why

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        # type: (Any, Any, Any, Any) -> Any
        kwargs = kwargs or {}
        wanted = 0 if func._schema.is_mutable or getattr(func, "is_view", False) else asked(args, kwargs)
        if wanted > SMALL:
            left = torch_room.free()
            if left is not None and wanted > left - RESERVE:
                raise OutOfMemory(
                    "it asks for %s more and %s of memory are free; it cannot be made on meta, where nothing is allocated "
                    "(%s): mend that, or run it smaller" % (torch_room.gib(wanted), torch_room.gib(left), self.why)
                )
        return func(*args, **kwargs)


def asked(args, kwargs):
    # type: (Any, Any) -> int
    """Bytes of the result, by the sizes that are asked for or by the largest tensor that goes in."""
    if str(kwargs.get("device", "cpu") or "cpu") != "cpu":
        return 0
    tensors = [a for a in args if isinstance(a, torch.Tensor)]
    if tensors:
        return max([t.numel() * t.element_size() for t in tensors if not t.is_meta] or [0])
    sizes = args[0] if args and isinstance(args[0], (list, tuple, torch.Size)) else ()
    count = torch.empty((), dtype=kwargs.get("dtype") or torch.get_default_dtype(), device="meta").element_size()
    for size in sizes:
        count *= int(size)
    return count if sizes else 0
