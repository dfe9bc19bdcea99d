"""Detects memory that a kernel outside of PyTorch's dispatcher wrote: the trace is then incomplete, and says so.

Kernels of C++ and CUDA extensions, of CuPy or Numba take the address of a tensor that the program made by ``torch.empty`` or
``torch.zeros``, and write there.  Such memory is marked when it is made.  Where an operator reads it before any operator
wrote it, the marks tell whether it is still as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from typing import Any, NamedTuple

import torch

from .groups import PROCESSES
from .records import tensors_in
from .wrapped_functions import wrap_function
from .wrappers import is_fake, is_wrapper

MEMORY = "(memory)"
WRITTEN_BY_NO_OPERATOR = (
    "memory that was made here had values before any operator wrote it: a kernel that PyTorch's dispatcher does not meet (or "
    "numpy) computed them, and nothing of it is recorded"
)

MARK = 0x2D
"""Each byte of marked memory: 0.08 in float16 and near 1e-11 in wider floats, so what a program does with the values of empty
memory goes on."""
MAKING = {
    MARK: ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"),
    0: ("zeros", "zeros_like", "new_zeros"),
}
"""The operators that make memory, by each byte that it then has."""
MARKED = 1 << 22
"""Bytes that are marked and looked at: the first of each, since a large cache may never be touched whole."""
LOOKS = ("size", "stride", "storage_offset", "numel", "is_contiguous", "record_stream", "resize_", "set_")


@cache
def making_operators() -> dict[Any, int]:
    """The operators that make memory, and each byte that it then has."""
    packets = [(getattr(torch.ops.aten, name), byte) for byte, names in MAKING.items() for name in names]
    return {getattr(packet, kind): byte for packet, byte in packets for kind in packet.overloads() if kind != "out"}


class Unwritten(NamedTuple):
    """Memory that no operator has written yet: a weak reference and its address, each byte that it has, and the layer that made
    it."""

    storage: Any
    address: int
    byte: int
    layer: str


class MarkedMemory:
    """Memory from where it is made to the first operator that writes it; ``layer()`` is the layer that runs now."""

    def __init__(self, layer: Callable[[], str]) -> None:
        self.layer = layer
        self.making = making_operators()
        self.made: dict[int, Unwritten] = {}
        self.unseen: list[str] = []  # layers that made memory which got values from no operator

    def mark(self, tensor: torch.Tensor, byte: int) -> None:
        """Mark the memory of a tensor that an operator just made, and follow it until it is written."""
        floats = tensor.is_floating_point() or tensor.is_complex()
        if not floats or tensor.is_meta or tensor.layout is not torch.strided or not tensor.numel():
            return
        if is_fake(type(tensor)):  # it has no memory, and PyTorch warns a caller that asks for its address
            return
        from torch.multiprocessing.reductions import StorageWeakRef  # a PyTorch without it makes no memory either

        storage = tensor.untyped_storage()
        if byte:
            _bytes(storage).fill_(byte)
        self.made[storage._cdata] = Unwritten(StorageWeakRef(storage), storage.data_ptr(), byte, self.layer())

    @contextmanager
    def forget_freed(self) -> Iterator[None]:
        """Within this, memory that the program gives back is followed no longer.

        FSDP takes other memory for the same tensor, which has the values of the owner before, and may be at the same address.
        """
        kind = getattr(torch, "UntypedStorage", None)
        if kind is None:  # an old PyTorch
            yield
            return

        def follow(resize: Callable[..., Any]) -> Callable[..., Any]:
            @wraps(resize)
            def resize_storage(storage: Any, *args: Any, **kwargs: Any) -> Any:
                self.made.pop(storage._cdata, None)
                return resize(storage, *args, **kwargs)

            return resize_storage

        with wrap_function(kind, "resize_", follow):
            yield

    def check_marks(self, func: Any, args: Any, kwargs: Any) -> None:
        """Check the marks of the memory that an operator reads, and follow what it may write no longer."""
        schema = getattr(func, "_schema", None)
        if schema is None or getattr(func, "is_view", False):
            return
        name = schema.name.rpartition("::")[2]
        if name in LOOKS or name.endswith("_like") or name.startswith("new_"):
            return
        own = func.namespace not in ("aten", "prims")  # other libraries' schemas need not say what they write
        # what other processes send comes into memory that FSDP gives back and takes again
        fills = func.namespace in PROCESSES
        for position, argument in enumerate(schema.arguments):
            value = args[position] if position < len(args) else kwargs.get(argument.name)
            writes = own or (argument.alias_info is not None and argument.alias_info.is_write)
            for tensor in tensors_in(value):
                self._look(tensor, writes, fills)

    def _look(self, tensor: torch.Tensor, writes: bool, fills: bool) -> None:
        if tensor.layout is not torch.strided or tensor.is_meta or is_wrapper(type(tensor)):
            return
        storage = tensor.untyped_storage()
        made = self.made.get(storage._cdata)
        if made is None:
            return
        given_back = storage.data_ptr() != made.address  # by an operator that resizes
        same = fills or given_back or bool((_bytes(storage) == made.byte).all())
        if not same:
            self.unseen.append(made.layer)
        if writes or given_back or not same:
            del self.made[storage._cdata]


def _bytes(storage: Any) -> torch.Tensor:
    """The first bytes of a storage as a tensor."""
    held = torch.empty(0, dtype=torch.uint8, device=storage.device)
    return held.set_(storage, 0, (min(storage.nbytes(), MARKED),), (1,))
