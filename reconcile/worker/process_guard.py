"""Protects a worker process from user code: a log stream of its own, an end with its parent process, and state to restore.

Python 3.6 and standard library only, plus the framework that is loaded already.
"""

# ruff: noqa: UP020, UP029  (`open` is bound when the module is: the builtin may be replaced later)

import contextlib
import ctypes
import faulthandler
import os
import random
import signal
import sys
import threading
import traceback
from io import open
from os import getpid
from typing import Any

PR_SET_PDEATHSIG = 1
"""linux/prctl.h"""
LOG = sys.stderr
"""The stream for tracebacks; ``stand_alone`` replaces it by a file that no other code closes or redirects."""


def stand_alone() -> None:
    """Before any of the user's code runs, secure the log and the signal that the parent has ended.

    The user's code reads nothing on standard input. A crash writes its Python stack to the log and leaves no core file.
    """
    global LOG
    LOG = open(os.dup(2), "w", encoding="utf-8", errors="backslashreplace", buffering=1)  # noqa: SIM115
    faulthandler.enable(LOG)
    with contextlib.suppress(ImportError, OSError, ValueError):
        leave_no_core()
    parent = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    threading.Thread(target=_end_with_parent, args=(parent, getpid()), daemon=True).start()


def _end_with_parent(parent: int, me: int) -> None:
    """End this process when the process that started it has ended, which closes its end of our standard input."""
    while os.read(parent, 1024):
        pass
    if getpid() == me:
        os._exit(1)


def end_with(starter: int) -> None:
    """Have the system kill this process when the one that started it, whose number this is, has ended, however it did. Linux."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != starter:
        os._exit(1)


def prctl(option: int, value: int) -> None:
    """Set an attribute of this process by its number in linux/prctl.h; elsewhere than on Linux nothing happens."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), 0, 0, 0)


def leave_no_core() -> None:
    """Have the system write no core file if this process crashes. Raises ImportError, OSError or ValueError where it cannot."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def leave(code: int) -> None:
    """End now, without waiting for threads that the user's code left behind; the reaper ends its processes."""
    for stream in (sys.stdout, sys.stderr, LOG):
        with contextlib.suppress(AttributeError, OSError, ValueError):  # the user's code may have closed or replaced it
            stream.flush()
    os._exit(code)


def only(process: int) -> None:
    """End a forked child that returns from the user's code: only the process with this id is the worker."""
    if getpid() != process:
        os._exit(0)


def note(error: BaseException) -> None:
    """Write an error's traceback to the log, unless the user's code has closed even that."""
    with contextlib.suppress(OSError, ValueError):
        LOG.write("".join(traceback.format_exception(type(error), error, error.__traceback__)))


class Surroundings:
    """The state of the process that a factory may change, as it is now: every call of the factory starts from this state.

    Changes that a call makes last as long as its model is used: a default dtype belongs to the model.
    """

    def __init__(self, adapter: Any) -> None:
        self.adapter = adapter
        self.folder = os.getcwd()
        self.path = list(sys.path)
        self.variables = dict(os.environ)
        self.depth = sys.getrecursionlimit()
        self.defaults = adapter.defaults()

    def restore(self) -> None:
        """Restore the state, and restart the random numbers."""
        os.chdir(self.folder)
        sys.path[:] = self.path
        if dict(os.environ) != self.variables:
            os.environ.clear()
            os.environ.update(self.variables)
        sys.setrecursionlimit(self.depth)
        random.seed(0)
        if "numpy.random" in sys.modules:
            sys.modules["numpy.random"].seed(0)
        self.adapter.restore(self.defaults)


def fill_streams() -> None:
    """Take the numbers of closed streams, so that no file that is opened later gets one of them."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free


def mend() -> None:
    """Restore what the worker needs if the user's code has removed it: recursion depth, and streams to print to."""
    sys.setrecursionlimit(max(1000, sys.getrecursionlimit()))
    fill_streams()
    for name in ("stdout", "stderr"):
        if getattr(getattr(sys, name), "closed", True):
            setattr(sys, name, LOG)
