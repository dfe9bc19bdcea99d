"""Reads the log lines of MKL and oneDNN from this process's standard output, and passes all other output on.

The libraries write below Python, so the file descriptor itself is redirected.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
import tempfile
from functools import cache
from types import TracebackType

import torch
from torch.utils._python_dispatch import _disable_current_modes

from ...shared.refusal import BeyondCounter
from .batch_sizes import BatchSizeStream
from .log_lines import Product, is_of_library, product_of

NOTHING_WRITTEN_HERE = (
    "MKL and oneDNN write nothing of a product here (another BLAS, or a PyTorch without them): nothing witnesses it"
)
PROBE = 64
"""Rows and columns of a product that any BLAS takes."""


class Listening:
    """Turns the logs on, reads what they say, and passes all other output on. Raises BeyondCounter where none can be turned on.

    A process that is forked meanwhile has its own output, and no logs.
    """

    running: Listening | None = None
    """The one that listens: there is one standard output."""

    def __enter__(self) -> Listening:
        sys.stdout.flush()
        self._libc = ctypes.CDLL(None)
        self._libc.fflush(None)
        self._file = tempfile.TemporaryFile()
        self._out = os.dup(1)
        self.batches = BatchSizeStream()
        os.dup2(self._file.fileno(), 1)
        self._at, self._rest = 0, b""
        self._logs = [torch.backends.mkl.verbose(1), torch.backends.mkldnn.verbose(1)]
        self._begun: list[object] = []
        Listening.running = self
        try:
            for log in self._logs:
                log.__enter__()
                self._begun.append(log)
        except Exception as error:
            self.__exit__(None, None, None)
            raise BeyondCounter(NOTHING_WRITTEN_HERE) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._silence()
        sys.stdout.flush()
        self.read_products()
        os.dup2(self._out, 1)
        self._pass(self._rest)
        os.close(self._out)
        self._file.close()
        self.batches.close()
        Listening.running = None

    def _silence(self) -> None:
        for log in reversed(self._begun):
            log.__exit__(None, None, None)  # type: ignore[attr-defined]
        self._begun = []

    def leave_child(self) -> None:
        """In a forked process: its output is that of its parent, and it reads no log."""
        self._silence()
        os.dup2(self._out, 1)
        Listening.running = None

    def read_products(self) -> list[Product]:
        """The products in the log since the last call, in order."""
        self._libc.fflush(None)
        size = os.fstat(self._file.fileno()).st_size
        if size == self._at:
            return []
        text = self._rest + os.pread(self._file.fileno(), size - self._at, self._at)
        self._at = size
        *lines, self._rest = text.split(b"\n")
        products = []
        for raw in lines:
            line = raw.decode("utf-8", "replace")
            if not is_of_library(line):
                self._pass(raw + b"\n")
                continue
            product = product_of(line)
            if product is not None:
                products.append(product)
        return products

    def _pass(self, output: bytes) -> None:
        """Write output that is no log line to the original standard output."""
        while output:
            output = output[os.write(self._out, output) :]


@cache
def _talks() -> bool:
    """Whether a product leaves a line in the log. It is tested once, before anything counts: a counter would see the test."""
    try:
        with Listening() as listening, _disable_current_modes(), torch.no_grad():
            torch.ones(PROBE, PROBE) @ torch.ones(PROBE, PROBE)
            return bool(listening.read_products())
    except BeyondCounter:
        return False


def check() -> None:
    """Raises BeyondCounter where a product leaves no line in the log."""
    if Listening.running is None and not _talks():
        raise BeyondCounter(NOTHING_WRITTEN_HERE)


def _forget_log() -> None:
    if Listening.running is not None:
        Listening.running.leave_child()


def _end() -> None:
    """A program that ends within a step keeps what it wrote."""
    if Listening.running is not None:
        Listening.running.__exit__(None, None, None)


atexit.register(_end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_log)
