"""Memory of tensors: the plain tensors that a value consists of, and where a storage lies with a digest of what it holds."""

from __future__ import annotations

import ctypes
import gc
import sys
import zlib
from types import FunctionType, ModuleType
from typing import Any

import torch
from torch.utils import _python_dispatch

from .dispatched_calls import DENSE
from .wrappers import is_fake, is_wrapper

SMALL, LARGE = 1 << 14, 1 << 25
"""Bytes up to which a checksum is faster than the sum of the words, and up to which all words are added."""
ROW = 64
"""Words of which a sum is taken: the order of these sums counts."""
SAMPLES, SAMPLE = 64, 1 << 12
"""How many pieces of a larger storage are looked at, and the bytes of each: a cache that is never used whole stays untouched."""
OBJECTS = 10_000
"""How many objects are opened to find the memory that one keeps."""


def plain_tensors(value: Any) -> list[torch.Tensor]:
    """A tensor, or those that it holds if its class takes operators apart; none of another value."""
    if not isinstance(value, torch.Tensor):
        return []
    if not is_wrapper(type(value)):
        return [value]
    return [tensor for held in leaves_of(list(vars(value).values())) for tensor in plain_tensors(held)]


def leaves_of(value: Any) -> list[Any]:
    """The leaves of a nested container; none of one that contains itself."""
    from torch.utils import _pytree  # which an old PyTorch has not

    try:
        leaves: list[Any] = _pytree.tree_flatten(value)[0]
    except RecursionError:  # it contains itself
        return []
    return leaves


def memory_in(value: Any) -> list[Any]:
    """The tensors and arrays that an object keeps, at any depth; not those of a model that it keeps."""
    found: list[Any] = []
    waiting, met = [value], {id(value)}
    for opened in waiting:
        for held in gc.get_referents(opened):
            if id(held) not in met and not isinstance(held, (type, FunctionType, ModuleType, torch.nn.Module)):
                met.add(id(held))
                is_memory = hasattr(type(held), "__array__")
                (found if is_memory else waiting if len(met) < OBJECTS else []).append(held)
    return found


def weak_reference(storage: Any) -> Any:
    """A weak reference to a storage, as PyTorch itself makes one: it does not keep the storage's memory."""
    from torch.multiprocessing.reductions import StorageWeakRef  # which an old PyTorch has not

    return StorageWeakRef(storage)


def place_of(storage: Any) -> tuple[int, int]:
    """Address and size of a storage's memory; size 0 where there is none, as of the zeros that forward mode makes."""
    try:
        return storage.data_ptr(), storage.nbytes()
    except RuntimeError:
        return 0, 0


def digest(address: int, size: int, storage: Any) -> int:
    """A checksum of a storage's bytes, 0 of none. Over ``LARGE`` bytes it is of about ``SAMPLES`` pieces on the CPU, and of the
    first ``LARGE`` on a device."""
    if not size:
        return 0
    if storage.device.type != "cpu":
        return _digest_on_device(storage, size)
    if size <= LARGE:
        return _digest_memory(address, size)
    pieces = range(0, size - SAMPLE, (size - SAMPLE) // SAMPLES)
    return hash(tuple(_digest_memory(address + start, SAMPLE) for start in pieces))


def _digest_memory(address: int, size: int) -> int:
    memory: Any = (ctypes.c_char * size).from_address(address)
    if size <= SMALL or "numpy" not in sys.modules:
        return zlib.crc32(memory)
    import numpy

    words = numpy.frombuffer(memory, numpy.uint64, size // 8)
    rows = words[: len(words) // ROW * ROW].reshape(-1, ROW).sum(1)
    return zlib.crc32(rows) ^ zlib.crc32(memory[size // (8 * ROW) * 8 * ROW :])


def _digest_on_device(storage: Any, size: int) -> int:
    with _python_dispatch._disable_current_modes():
        held = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage, 0, (min(size, LARGE),), (1,))
        words = held.numel() // 8 * 8
        return int(held[:words].view(torch.int64).sum()) ^ int(held[words:].sum()) << 1


def parts_of(tensor: torch.Tensor) -> list[torch.Tensor]:
    """The strided tensors with memory that a tensor consists of: itself, or those of a sparse one; none of a wrapper, of a fake
    tensor or on meta."""
    kind = type(tensor)
    if kind in DENSE and tensor.layout is torch.strided:
        return [] if tensor.is_meta else [tensor]
    if tensor.is_meta or is_wrapper(kind) or is_fake(kind):
        return []
    if tensor.layout is torch.strided:
        return [tensor]
    with _python_dispatch._disable_current_modes():
        if tensor.layout is torch.sparse_coo:
            return [tensor._indices(), tensor._values()]
        if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
            return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
        if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
            return [tensor.ccol_indices(), tensor.row_indices(), tensor.values()]
    return []
