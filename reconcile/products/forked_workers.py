"""Forked workers: where many models run in sequence, workers are forked from a process that has imported their framework.

Importing a framework takes longer than counting a small model.  Inside ``warm()``, a worker of the running interpreter comes from
a nursery (nursery.py), one for each framework; every other worker starts as always.  A process that runs one cell of a sweep has
none of its own: the sweep offers it its nurseries (sweep/nurseries.py), which may be of another environment.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

from ..core.protocol import WorkerRequest, to_text
from ..launch.environments.interpreters import Interpreter
from ..launch.workers.scratch import pack, scratch
from ..launch.workers.supervisor import FORKS

ABLE = sys.platform == "linux" and hasattr(socket, "send_fds")
"""Elsewhere every worker starts afresh: frameworks may not survive a fork there."""

NURSERY = ".products.nursery"
"""The module that a nursery's process runs."""
PAUSE = 0.005
TRIES = 2
"""Nurseries of one kind that are made before their workers start as always."""


class Forked:
    """The reaper of a forked worker, with the methods of a ``subprocess.Popen`` that a supervisor uses."""

    def __init__(self, connection: socket.socket) -> None:
        self.returncode: int | None = None
        self._connection = connection
        self._said = b""
        self._lock = threading.Lock()

    def poll(self) -> int | None:
        """How it ended, as ``Popen.poll`` gives it; None if it has not ended. Any thread may ask."""
        with self._lock:
            while self.returncode is None and select.select([self._connection], [], [], 0)[0]:
                try:
                    more = self._connection.recv(64)
                except ConnectionError:
                    more = b""
                self._said += more
                if self._said.count(b"\n") == 3:
                    _, status, peak = map(int, self._said.split())
                    _PEAKS.append(peak)
                    self.returncode = os.waitstatus_to_exitcode(status)
                elif not more:  # it was killed before it could tell
                    self.returncode = -signal.SIGKILL
            return self.returncode

    def wait(self, timeout: float = math.inf) -> int:
        """Wait until it has ended. Raises subprocess.TimeoutExpired after the given number of seconds."""
        until = time.monotonic() + timeout
        while (status := self.poll()) is None:
            if time.monotonic() > until:
                raise subprocess.TimeoutExpired("a worker", timeout)
            time.sleep(PAUSE)
        return status

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended. One that has not begun yet ends as soon as it begins."""
        if self.poll() is not None:
            return
        if b"\n" not in self._said:
            self._connection.shutdown(socket.SHUT_WR)
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(self._said.split()[0]), number)

    def terminate(self) -> None:
        """Have it end its worker."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it; its worker dies with it."""
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> Forked:
        return self

    def __exit__(self, *_error: object) -> None:
        """Wait until it has ended."""
        self.wait()
        self._connection.close()


class Offered:
    """A nursery by its socket, that of another process or a :class:`Nursery`; ``python`` is its interpreter."""

    def __init__(self, control: socket.socket, python: str) -> None:
        self.control = control
        self.python = python

    def fork(self, request: Path, log: IO[bytes], variables: Mapping[str, str]) -> Forked:
        """A worker that serves the request in this file, with these variables."""
        job = request.with_name("job.json")
        work = {"request": str(request), "confined": "", "variables": dict(variables)}
        job.write_text(json.dumps({**work, "folder": os.getcwd()}), encoding="utf-8")
        ours, theirs = socket.socketpair()
        with theirs, contextlib.suppress(BrokenPipeError):  # the nursery was killed: so is the worker
            socket.send_fds(self.control, [str(job).encode()], [theirs.fileno(), log.fileno()])
        return Forked(ours)


class Nursery(Offered):
    """The process that forks the workers of one framework. With a ``library``, it has imported that module, too."""

    def __init__(self, request: WorkerRequest, folder: Path, python: Interpreter, library: str = "") -> None:
        folder.mkdir()
        file = folder / "request.json"
        file.write_text(to_text(request._replace(tasks=(), out=str(folder))), encoding="utf-8")
        control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        super().__init__(control, str(python.path))
        with theirs, (folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [str(python.path), "-u", str(pack(folder)), str(file), NURSERY, str(theirs.fileno()), library],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=[theirs.fileno()],
                env={**python.environ(), "TMPDIR": str(folder)},
            )

    @property
    def alive(self) -> bool:
        """Whether its process is there."""
        return self._process.poll() is None

    def close(self) -> None:
        """End it."""
        self.control.close()
        self._process.wait()


class Nurseries:
    """The nurseries of a run, a process for each framework in each interpreter, made when it is first needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: dict[tuple[str, str, str], list[Nursery]] = {}
        self._lock = threading.Lock()

    def of(self, request: WorkerRequest, python: Interpreter | None = None, library: str = "") -> Nursery | None:
        """The nursery of the request's framework. None where it has died more than once: it is better to start workers."""
        python = python or Interpreter()
        name = request.framework.name
        with self._lock:
            made = self._made.setdefault((name, str(python.path), library), [])
            if len(made) == TRIES and not made[-1].alive:
                return None
            if not made or not made[-1].alive:
                number = sum(map(len, self._made.values()))
                made.append(Nursery(request, self._folder / f"{name}-{number}", python, library))
            return made[-1]

    def close(self) -> None:
        """End all processes."""
        for nursery in (nursery for made in self._made.values() for nursery in made):
            nursery.close()


OPEN: list[Nurseries] = []
"""The nurseries of this process; none outside ``warm()``."""
OFFERED: dict[str, Offered] = {}
"""Nurseries of other processes, by framework."""
_PEAKS: list[int] = []


def peak() -> int:
    """The most memory that a forked worker of this process has held, in units of getrusage's ru_maxrss."""
    return max(_PEAKS, default=0)


def find_nurseries() -> Nurseries | None:
    """The nurseries of this process; None outside ``warm()``."""
    return OPEN[-1] if OPEN else None


def accept(offers: Mapping[str, tuple[int, str]]) -> None:
    """Have the workers of these frameworks forked: each with the number of a socket of its nursery, and its interpreter."""
    for framework, (number, python) in offers.items():
        os.set_inheritable(number, False)  # a nursery ends when no process holds this any more
        OFFERED[framework] = Offered(socket.socket(fileno=number), python)


@contextlib.contextmanager
def warm() -> Iterator[None]:
    """Within this context, workers of the running interpreter are forked from nurseries, in every thread."""
    if not ABLE or OPEN:
        yield
        return
    with scratch() as folder:
        OPEN.append(Nurseries(folder))
        try:
            yield
        finally:
            OPEN.pop().close()


def nursery_of(request: WorkerRequest, python: Interpreter) -> Offered | None:
    """The nursery from which a worker of this request may come; None if it needs a process of its own.

    A model file is read in a process that is confined from its start, a recipe decides how the framework is imported, a framework
    with threads of its own does not survive a fork, and an interpreter other than the running one may be too old.
    """
    forks = request.framework.forks and not (request.file is not None or request.recipe)
    if not forks or python.user_owned:
        return None
    offered = OFFERED.get(request.framework.name)
    if offered is not None and offered.python == str(python.path):
        return offered
    return OPEN[-1].of(request) if OPEN and python.is_running else None


FORKS.append(nursery_of)
