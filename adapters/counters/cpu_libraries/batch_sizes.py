"""Sizes of batched matrix products, read from memory: MKL's log has only their addresses.

``MKL_VERBOSE SGEMM_BATCH(N,N,0x7ffe...98,...`` names the variables in which PyTorch holds M, N, K and the number of products.
They live as long as the call, and MKL writes the line before it returns. So standard output is a stream of reconcile meanwhile
(fopencookie of glibc): as the line passes, the values at the addresses are read and added to it. The integers are of 32 bits, as
in PyTorch's MKL (lp64). Where this cannot be done, the line stays as it is.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

BATCH = re.compile(rb"MKL_VERBOSE [SDCZ]GEMM_BATCH\(([^)]*)\)")
SIZES = b" sizes:"
"""Before the sizes that are added to a line: M, N, K and the number of products."""
BY_BATCH = ("aten::bmm", "aten::baddbmm")
"""Operators that call MKL's batches, on the thread that they are called on: no other thread writes meanwhile."""
GROUPS = 1
BYTES = 4
LINE_BUFFERED = 1  # _IOLBF
ROOM = 1 << 16

_Write = ctypes.CFUNCTYPE(ctypes.c_ssize_t, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


class _Functions(ctypes.Structure):
    """cookie_io_functions_t of stdio.h."""

    _fields_ = (("read", ctypes.c_void_p), ("write", _Write), ("seek", ctypes.c_void_p), ("close", ctypes.c_void_p))


def with_sizes(line: bytes, read: Any) -> bytes:
    """The line with the sizes of its batch, if it is about one group of products; ``read(address)`` gives an integer there."""
    found = BATCH.match(line)
    if found is None:
        return line
    arguments = found[1].split(b",")
    try:
        m, n, k, groups, batch = (read(int(arguments[at], 16)) for at in (2, 3, 4, -2, -1))
    except (OSError, ValueError, IndexError):
        return line
    if groups != GROUPS:
        return line
    return line + SIZES + b"%d,%d,%d,%d" % (m, n, k, batch)


class BatchSizeStream:
    """A stream that replaces standard output within ``record_sizes``, and adds the sizes of batches to the lines of MKL."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None)
        self._memory = -1
        self._stream: int | None = None
        self._called = _Write(self._write_with_sizes)  # kept: the stream calls it
        try:
            self._memory = os.open("/proc/self/mem", os.O_RDONLY)
            self._stdout = ctypes.c_void_p.in_dll(self._libc, "stdout")
            _ = self._libc.gnu_get_libc_version  # elsewhere standard output is no variable
            make = self._libc.fopencookie
        except (OSError, ValueError, AttributeError):  # another system
            return
        make.restype = ctypes.c_void_p
        make.argtypes = [ctypes.c_void_p, ctypes.c_char_p, _Functions]
        self._stream = make(None, b"w", _Functions(None, self._called, None, None))
        if self._stream is not None:
            self._libc.setvbuf(ctypes.c_void_p(self._stream), None, LINE_BUFFERED, ctypes.c_size_t(ROOM))

    @contextmanager
    def record_sizes(self) -> Iterator[None]:
        """Within it, the sizes of batches are read from memory and added to the lines."""
        if self._stream is None or self._stdout.value == self._stream:
            yield
            return
        self._libc.fflush(None)
        before = self._stdout.value
        self._stdout.value = self._stream
        try:
            yield
        finally:
            self._libc.fflush(None)
            self._stdout.value = before

    def close(self) -> None:
        """Close the stream."""
        if self._stream is not None:
            self._libc.fclose(ctypes.c_void_p(self._stream))
            self._stream = None
        if self._memory >= 0:
            os.close(self._memory)
            self._memory = -1

    def _write_with_sizes(self, _cookie: Any, buffer: int, size: int) -> int:
        lines = ctypes.string_at(buffer, size).split(b"\n")
        text = b"\n".join(with_sizes(line, self._integer) for line in lines)
        while text:
            text = text[os.write(1, text) :]
        return size

    def _integer(self, address: int) -> int:
        return int.from_bytes(os.pread(self._memory, BYTES, address), "little", signed=True)
