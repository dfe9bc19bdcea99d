"""What keeps a worker whole beside anybody's code: a log and a death watch of its own, and a state to come back to.

Python 3.6 and standard library only, plus the framework that is loaded already.
"""

import contextlib
import faulthandler
import os
import random
import sys
import threading
import traceback
from io import open  # as they are now: what their code makes of these later is its business
from os import getpid
from typing import Any

LOG = sys.stderr
"""Where tracebacks go; ``stand_alone`` puts a file in its place that nobody else closes or redirects."""


def stand_alone():
    # type: () -> None
    """Take what is needed before any code of the user's runs: the way to the log, and word of the parent's end.

    Their code reads nothing on standard input; a crash leaves its Python stack in the log and no core file anywhere.
    """
    global LOG
    LOG = open(os.dup(2), "w", encoding="utf-8", errors="backslashreplace", buffering=1)  # noqa: SIM115
    faulthandler.enable(LOG)
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    parent = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    threading.Thread(target=_end_with_parent, args=(parent, getpid()), daemon=True).start()


def _end_with_parent(parent, me):
    # type: (int, int) -> None
    """End this process when whoever started it is gone: its end of our standard input closes."""
    while os.read(parent, 1024):
        pass
    if getpid() == me:
        os._exit(1)


def leave(code):
    # type: (int) -> None
    """End now: threads that the user's code left behind are not waited for, and processes are the reaper's."""
    for stream in (sys.stdout, sys.stderr, LOG):
        with contextlib.suppress(AttributeError, OSError, ValueError):  # theirs to close or to replace
            stream.flush()
    os._exit(code)


def only(process):
    # type: (int) -> None
    """A fork's child that comes back from the user's code ends here: there is one worker, the process of this id."""
    if getpid() != process:
        os._exit(0)


def note(error):
    # type: (BaseException) -> None
    """Write an error's traceback to the log, unless their code has closed that, too."""
    with contextlib.suppress(OSError, ValueError):
        LOG.write("".join(traceback.format_exception(type(error), error, error.__traceback__)))


class Surroundings(object):
    """What a factory may change of the process, as it is now: every call of it starts from there.

    What a call changes stays for as long as its model is used: a default dtype belongs to the model.
    """

    def __init__(self, adapter):
        # type: (Any) -> None
        self.adapter = adapter
        self.folder = os.getcwd()
        self.path = list(sys.path)
        self.variables = dict(os.environ)
        self.depth = sys.getrecursionlimit()
        self.defaults = adapter.defaults()

    def restore(self):
        # type: () -> None
        """Come back to it, with random numbers from their start."""
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


def mend():
    # type: () -> None
    """Give the rest of the work what it needs where their code has taken it away: depth to call, somewhere to print."""
    sys.setrecursionlimit(max(1000, sys.getrecursionlimit()))
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    for name in ("stdout", "stderr"):
        if getattr(getattr(sys, name), "closed", True):
            setattr(sys, name, LOG)
