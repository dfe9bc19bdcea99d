"""Standard output of this process, below Python, while MKL and oneDNN write into it."""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from types import TracebackType

import torch

from ...shared.refusal import BeyondCounter
from .log import Product, is_of_library, product_of

SILENT = (
    "MKL and oneDNN write nothing of a product here (another BLAS, or a PyTorch without them): nothing witnesses it"
)


class Listening:
    """Turns the logs on, reads what they say, and gives back all other output."""

    def __enter__(self) -> Listening:
        sys.stdout.flush()
        self._libc = ctypes.CDLL(None)
        self._libc.fflush(None)
        self._file = tempfile.TemporaryFile()
        self._out = os.dup(1)
        os.dup2(self._file.fileno(), 1)
        self._at, self._rest = 0, b""
        self._others: list[bytes] = []
        self._logs = [torch.backends.mkl.verbose(1), torch.backends.mkldnn.verbose(1)]
        self._begun: list[object] = []
        try:
            for log in self._logs:
                log.__enter__()
                self._begun.append(log)
        except Exception as error:
            self.__exit__(None, None, None)
            raise BeyondCounter(SILENT) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for log in reversed(self._begun):
            log.__exit__(None, None, None)  # type: ignore[attr-defined]
        sys.stdout.flush()
        self.heard()
        os.dup2(self._out, 1)
        os.close(self._out)
        self._file.close()
        for line in [*self._others, self._rest]:
            os.write(1, line)

    def heard(self) -> list[Product]:
        """The products in the log since the last call, in order."""
        self._libc.fflush(None)
        size = os.fstat(self._file.fileno()).st_size
        text = self._rest + os.pread(self._file.fileno(), size - self._at, self._at)
        self._at = size
        *lines, self._rest = text.split(b"\n")
        products = []
        for raw in lines:
            line = raw.decode("utf-8", "replace")
            if not is_of_library(line):
                self._others.append(raw + b"\n")
                continue
            product = product_of(line)
            if product is not None:
                products.append(product)
        return products
