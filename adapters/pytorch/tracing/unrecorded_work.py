"""Detects work that PyTorch's modes do not see: on earlier threads, and in other processes.

It becomes a problem of the trace.  Threads are watched only if there are any. PyTorch's profiler sees the ops of all threads;
where it cannot, a thread that was busy during the call may have run some.  A process counts if it is started during the call, or
if a tensor comes back from it.
"""

from __future__ import annotations

import multiprocessing.process
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Callable

import torch

try:
    from torch.multiprocessing import reductions
except ImportError:  # a PyTorch that was built without it
    reductions = None


from ....core.records import Problem
from .launches import is_launching
from .module_path import ModulePath
from .operator_facts import is_move
from .wrapped_functions import wrap_function

THREAD, PROCESS = "(thread)", "(process)"
RAN_ON_EARLIER_THREADS = (
    "%s ran on threads that were there before the call, and nothing that runs there is recorded: start them in forward"
)
THREADS_WERE_BUSY = (
    "%s was busy during the call, it was there before, and this PyTorch does not tell its ops: they may be the model's, and are "
    "not recorded: start it in forward, or use a PyTorch that profiles all threads (2.8)"
)
PROCESS_STARTED = "a process was started here, or sent tensors, and nothing that runs in another process is recorded"

SHOWN = 3
"""Ops that a reason names."""
BUSY_SHARE = 0.05
"""Fraction of a call's time: a thread that computes less only waits and polls."""

LEVEL = "KINETO_LOG_LEVEL"
"""The profiler's own setting, without which it writes to standard error."""

PACKAGE = __name__.partition(".")[0]

STARTING: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (os, ("fork", "forkpty", "posix_spawn", "posix_spawnp", "system")),
    (sys.modules.get("_posixsubprocess"), ("fork_exec",)),
    (subprocess, ("_fork_exec",)),
    (getattr(subprocess, "_winapi", None), ("CreateProcess",)),
    (multiprocessing.process.BaseProcess, ("start",)),
)
"""The functions by which Python starts processes."""
RECEIVING = tuple(
    name for name in getattr(reductions, "__dict__", {}) if name.startswith("rebuild_") and "tensor" in name
)
"""The functions of PyTorch that a tensor from another process comes back by."""


@contextmanager
def note_unrecorded(
    path: ModulePath, problems: list[Problem], apart: Callable[[], bool] = lambda: False
) -> Iterator[None]:
    """Within this, keep as problems of the trace what runs where no mode reaches; ``apart()`` says that what a process does now
    is no part of it."""
    layers: list[str] = []

    def note() -> None:
        if not apart() and not is_launching():
            layers.append(path.current)

    with _profile_block(path, problems), _processes(note):
        yield
    problems.extend(Problem(layer, PROCESS, layer, PROCESS_STARTED) for layer in dict.fromkeys(layers))


# Threads.


@contextmanager
def _profile_block(path: ModulePath, problems: list[Problem]) -> Iterator[None]:
    """Within this, a profiler looks at threads that were there before, if there are any."""
    others = [thread for thread in threading.enumerate() if not _is_own(thread)]
    profiler = _started_profiler() if others else None
    began, clocks = time.perf_counter(), {} if profiler else _clocks(others)
    try:
        yield
    finally:
        events = profiler().events() if profiler else ()
    if others and not path.unseen:  # modules that ran there have their names
        _note_other_threads(path, problems, others, events)
        elapsed = time.perf_counter() - began
        busy = [name for name, clock in clocks.items() if clock() > BUSY_SHARE * elapsed]
        problems.extend(Problem("", THREAD, "", THREADS_WERE_BUSY % name) for name in busy)


def _note_other_threads(path: ModulePath, problems: list[Problem], others: list[threading.Thread], events: Any) -> None:
    """Note the ops that compute of threads that were there before; the workers of PyTorch's own pool run parts of an op that the
    caller called, and are none by the system's number."""
    theirs = {thread.native_id for thread in [*others, *threading.enumerate()]} - path.threads
    ops = dict.fromkeys(_op(event) for event in events if event.device_resource_id() in theirs)
    names = [name for name in ops if name and not _is_move(name)]
    if names:
        shown = ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
        problems.append(Problem("", THREAD, "", RAN_ON_EARLIER_THREADS % shown))


def _is_own(thread: threading.Thread) -> bool:
    """Whether this thread is the caller, or one of ours that guards a worker."""
    function = getattr(thread, "_target", None) or getattr(thread, "function", None)
    module = getattr(function, "__module__", None) or ""
    return thread is threading.current_thread() or module.partition(".")[0] == PACKAGE


def _op(event: Any) -> str:
    """The op of a profiler's event, '' for one of its marks."""
    space, _, name = event.name().partition("::")
    return "" if not name or space == "profiler" else f"{space}.{name}"


def _is_move(op: str) -> bool:
    """Whether it computes nothing, by each of its overloads."""
    space, _, name = op.partition(".")
    schemas = torch._C._jit_get_schemas_for_operator(f"{space}::{name}")
    return bool(schemas) and all(map(is_move, schemas))


def _started_profiler() -> Callable[[], Any] | None:
    """Profile the ops of all threads; what ends that and gives the result.  None if this PyTorch cannot, or profiles already."""
    autograd = torch._C._autograd
    told = LEVEL in os.environ
    try:
        from torch._C._profiler import ProfilerActivity, ProfilerConfig, ProfilerState, _ExperimentalConfig

        if not hasattr(autograd._KinetoEvent, "device_resource_id") or autograd._profiler_enabled():
            return None
        every = _ExperimentalConfig(profile_all_threads=True)
        config = ProfilerConfig(ProfilerState.KINETO, False, False, False, False, False, every)
        os.environ.setdefault(LEVEL, "99")
        autograd._prepare_profiler(config, {ProfilerActivity.CPU})
        autograd._enable_profiler(config, {ProfilerActivity.CPU})
    except (ImportError, AttributeError, TypeError, RuntimeError):
        return None
    finally:
        if not told:
            os.environ.pop(LEVEL, None)
    return autograd._disable_profiler


def _clocks(threads: list[threading.Thread]) -> dict[str, Callable[[], float]]:
    """By thread's name, what tells how many seconds it has computed since now; none where the system does not tell."""
    of_thread = getattr(time, "pthread_getcpuclockid", None)
    if of_thread is None:
        return {}
    return {thread.name: _clock_from_now(of_thread(thread.ident)) for thread in threads if thread.is_alive()}


def _clock_from_now(clock: int) -> Callable[[], float]:
    began = time.clock_gettime(clock)

    def seconds() -> float:
        try:
            return time.clock_gettime(clock) - began
        except OSError:  # it has ended
            return float("inf")

    return seconds


# Processes.


@contextmanager
def _processes(note: Callable[[], Any]) -> Iterator[None]:
    """Within this, ``note()`` is called where a process is started or a tensor comes back from one."""

    def watch(name: str, counts: Callable[[], bool]) -> Callable[[Any], Any]:
        def wrap(function: Any) -> Any:
            def start_watched(*args: Any, **kwargs: Any) -> Any:
                if counts():
                    note()
                return function(*args, **kwargs)

            for attribute in ("__module__", "__name__", "__qualname__"):  # they are sent to other processes by name
                setattr(start_watched, attribute, getattr(function, attribute, None) or name)
            return start_watched

        return wrap

    starting = [(owner, name) for owner, names in STARTING for name in names if getattr(owner, name, None) is not None]
    with ExitStack() as stack:
        for owner, name in starting:
            stack.enter_context(wrap_function(owner, name, watch(name, lambda: not _is_importing())))
        for name in RECEIVING:
            stack.enter_context(wrap_function(reductions, name, watch(name, lambda: True)))
        yield


def _is_importing() -> bool:
    """Whether a module is being imported: some ask the system by another program what they can use."""
    frame: Any = sys._getframe()
    files: set[str] = set()
    while frame is not None:
        files.add(frame.f_code.co_filename)
        frame = frame.f_back
    return any(name.startswith("<frozen importlib") for name in files)
