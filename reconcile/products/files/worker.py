"""Loads a user's model file in the worker process: once for each model that a factory would make.

The main process has already checked the type of the file, and that its archive or folder may be opened (kinds.py). Here its
framework reads it, in a process that is confined (confine.py) and whose memory is limited, so that a malicious file fails instead
of harming the machine. ``--trust-file`` removes both.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

from ...adapters.shared.refusal import FactoryError
from ...core.framework import absolute
from ...core.protocol import WorkerRequest
from ...worker.factory import FactoryPair
from ...worker.user_code import describe_user_error
from .model_file import LONGEST_RUN, FileError

MEMORY = 4 << 30
"""Bytes that the worker may allocate, in addition to those that its framework took at the start and ``COPIES`` of the file."""
NO_MEMORY = ("OOM when allocating", "bad_alloc", "can't allocate memory", "Cannot allocate memory")
"""Words in the errors of TensorFlow, C++, PyTorch and the system that mean a lack of memory."""
OUT_OF_MEMORY = "it asks for more memory than it is allowed; --trust-file lets it"
THREAD = 64 << 20
"""Bytes per core for the stacks and heaps of the threads that a framework keeps for it."""
COPIES = 8
"""The file's own bytes, the tensors made of them, those of the frozen graph, of its import and of a run."""


RUNNING = ("tf.profiler@runmeta",)
"""Counters that run a TensorFlow graph; the others read it."""
STATIC = ("tf.profiler@function", "tf.profiler@frozen")


class FromFile(FactoryPair):
    """One framework's model file and the inputs given on the command line."""

    def __init__(self, request: WorkerRequest, adapter: Any) -> None:
        super().__init__(request, adapter)
        assert request.file is not None
        self.file = request.file
        self.tasks = request.tasks

    def ready(self, lacking: str, doing: Callable[[str], None]) -> None:
        """Import the framework; the file is loaded when a model is needed. Raises FactoryError without the framework."""
        self.code.doing = doing
        self._imported_framework(lacking)

    def _build(self, _params: Any) -> Any:
        loader = importlib.import_module(absolute(self.framework.loader))
        loader.ready()
        if not self.file.trusted:
            limit_memory(self.file.size)
        try:
            model, self._arguments = loader.load(self.file, self.given_inputs)
        except FileError as error:
            raise FactoryError(str(error)) from error
        except MemoryError as error:
            raise FactoryError(f"{self.where} cannot be loaded: {OUT_OF_MEMORY}.") from error
        except Exception as error:
            traceback.print_exc()
            why = OUT_OF_MEMORY if any(word in str(error) for word in NO_MEMORY) else _shorten_error(error)
            raise FactoryError(f"{self.where} cannot be loaded: {why}.") from error
        return model

    def tried(self, call: Callable[[], Any], inputs: Callable[[], str]) -> None:
        """Call the model without any counter. Raises FactoryError if that fails as well."""
        try:
            call()
        except Exception as error:
            traceback.print_exc()
            text = f"{self.where}, called with ({inputs()}), {_shorten_error(error)}."
            raise FactoryError(text) from error

    def may_run(self, trace: Any) -> None:
        """Raise FactoryError if a counter that runs the model was asked for, and the run would take forever."""
        longest = max(trace.ops, key=lambda op: op.calls, default=None)
        running = [name for name in self.tasks if name in RUNNING]
        if longest is not None and running and longest.calls > LONGEST_RUN:
            raise FactoryError(
                f"a loop in {self.where} runs {longest.calls:,} times, and {running[0]} runs the model: choose counters "
                f"that do not run it, with {' '.join('--counter ' + name for name in STATIC)}."
            )


def _shorten_error(error: BaseException) -> str:
    """An error as a predicate, of at most 300 characters."""
    text = describe_user_error(error)
    return text if len(text) < 300 else text[:300] + "..."


_limited = False


def limit_memory(size: int) -> None:
    """Limit, once, how much more memory this process may allocate; the kernel refuses requests beyond that (Linux)."""
    global _limited
    if _limited or not sys.platform.startswith("linux"):
        return
    import resource

    with open("/proc/self/status") as status:
        data = next(int(line.split()[1]) << 10 for line in status if line.startswith("VmData"))
    allowed = data + MEMORY + COPIES * size + THREAD * (os.cpu_count() or 1)
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    if hard == resource.RLIM_INFINITY or allowed < hard:
        resource.setrlimit(resource.RLIMIT_DATA, (allowed, allowed))
    _limited = True
