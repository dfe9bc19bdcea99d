"""Memory that has values although no operator wrote any: a kernel that PyTorch's dispatcher does not meet wrote them.

Kernels of C++ and CUDA extensions, of CuPy or Numba take the address of a tensor that the program made by ``torch.empty`` or
``torch.zeros``, and write there.  Such memory is marked when it is made.  Where an operator reads it before any operator
wrote it, the marks tell whether it is still as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from ....core.records import Problem
from .records import tensors_in
from .wrappers import is_fake, is_wrapper

MEMORY = "(memory)"
UNSEEN = (
    "memory that was made here had values before any operator wrote it: a kernel that PyTorch's dispatcher does not meet "
    "computed them, and nothing of it is recorded"
)

EMPTY = {f"aten::{name}" for name in ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided")}
ZEROS = {f"aten::{name}" for name in ("zeros", "zeros_like", "new_zeros")}
MARK = 0x2D
"""Each byte of marked memory: 0.08 in float16 and near 1e-11 in wider floats, so what a program does with the values of empty
memory goes on."""
MARKED = 1 << 22
"""Bytes that are marked and looked at: the first of each, since a large cache may never be touched whole."""
LOOKS = ("size", "stride", "storage_offset", "numel", "is_contiguous", "record_stream", "resize_", "set_")


class Made(NamedTuple):
    """Memory that no operator has written yet: a weak reference, each byte that it has, and the layer that made it."""

    storage: Any
    byte: int
    layer: str


class Written(TorchDispatchMode):
    """Follows memory from where it is made to the first operator that writes it."""

    supports_higher_order_operators = True

    def __init__(self, layer: Callable[[], str]) -> None:
        super().__init__()
        self.layer = layer
        self.unseen: dict[str, None] = {}
        self._made: dict[int, Made] = {}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if any(map(is_wrapper, types)):
            return NotImplemented  # what it calls is met here
        schema = getattr(func, "_schema", None)
        if schema is None or any(map(is_fake, types)):
            return func(*args, **kwargs)
        if self._made and not getattr(func, "is_view", False):
            self._look(func, schema, args, kwargs)
        out = func(*args, **kwargs)
        if schema.name in EMPTY or schema.name in ZEROS:
            self._mark(out, 0 if schema.name in ZEROS else MARK)
        return out

    def _mark(self, tensor: Any, byte: int) -> None:
        floats = isinstance(tensor, torch.Tensor) and (tensor.is_floating_point() or tensor.is_complex())
        if not floats or tensor.is_meta or tensor.layout is not torch.strided or not tensor.numel():
            return
        storage = tensor.untyped_storage()
        if byte:
            _bytes(storage).fill_(byte)
        self._made[storage._cdata] = Made(StorageWeakRef(storage), byte, self.layer())

    def _look(self, func: Any, schema: Any, args: Any, kwargs: Any) -> None:
        """An operator is called: what it reads is looked at, and what it may write is followed no longer."""
        if schema.name.rpartition("::")[2] in LOOKS or schema.name.endswith("_like"):
            return
        own = func.namespace not in ("aten", "prims")  # other libraries' schemas need not say what they write
        for position, argument in enumerate(schema.arguments):
            value = args[position] if position < len(args) else kwargs.get(argument.name)
            writes = own or (argument.alias_info is not None and argument.alias_info.is_write)
            for tensor in tensors_in(value):
                made = self._of(tensor)
                if made is None:
                    continue
                if not bool((_bytes(tensor.untyped_storage()) == made.byte).all()):
                    self.unseen[made.layer] = None
                    writes = True
                if writes:
                    self._made.pop(tensor.untyped_storage()._cdata, None)

    def _of(self, tensor: torch.Tensor) -> Made | None:
        if tensor.layout is not torch.strided or tensor.is_meta:
            return None
        return self._made.get(tensor.untyped_storage()._cdata)


def _bytes(storage: Any) -> torch.Tensor:
    """The first bytes of a storage as a tensor."""
    held = torch.empty(0, dtype=torch.uint8, device=storage.device)
    return held.set_(storage, 0, (min(storage.nbytes(), MARKED),), (1,))


@contextmanager
def memory_followed(layer: Callable[[], str], problems: list[Problem]) -> Iterator[None]:
    """Meanwhile, note as problems of the trace where memory got values from no operator; ``layer()`` is what runs now."""
    mode = Written(layer)
    with mode:
        yield
    problems.extend(Problem(layer, MEMORY, layer, UNSEEN) for layer in mode.unseen)
