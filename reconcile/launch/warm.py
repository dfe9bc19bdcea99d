"""Workers without a start: where many models run one after another, their workers are forked from one that has its framework.

Importing TensorFlow takes longer than counting a small model.  Inside ``warm()``, a worker of the running interpreter comes from
a nursery (nursery.py), one for each framework; every other worker starts as always.
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
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

from ..core.protocol import WorkerRequest, to_text
from . import zipapp
from .interpreters import Interpreter

ABLE = sys.platform == "linux" and hasattr(socket, "send_fds")
"""Elsewhere every worker starts afresh: frameworks may not survive a fork there."""

PAUSE = 0.005


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
                if self._said.count(b"\n") == 2:
                    self.returncode = os.waitstatus_to_exitcode(int(self._said.split()[1]))
                elif not more:  # it was killed before it could tell
                    self.returncode = -signal.SIGKILL
            return self.returncode

    def wait(self, timeout: float = math.inf) -> int:
        """Wait until it has ended. Raises subprocess.TimeoutExpired after so many seconds."""
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


class Nursery:
    """The process that forks the workers of one framework."""

    def __init__(self, request: WorkerRequest, folder: Path) -> None:
        folder.mkdir()
        file = folder / "request.json"
        file.write_text(to_text(request._replace(tasks=(), out=str(folder))), encoding="utf-8")
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        python = Interpreter()
        with theirs, (folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [str(python.path), "-u", str(zipapp.pack(folder)), str(file), str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=[theirs.fileno()],
                env={**python.environ(), "TMPDIR": str(folder)},
            )

    def fork(self, request: Path, run: Path, log: IO[bytes], variables: Mapping[str, str]) -> Forked:
        """A worker that serves the request in this file, with these variables; ``run`` is removed if home is killed."""
        job = request.with_name("job.json")
        job.write_text(
            json.dumps({"request": str(request), "run": str(run), "confined": "", "variables": dict(variables)}),
            encoding="utf-8",
        )
        ours, theirs = socket.socketpair()
        with theirs, contextlib.suppress(BrokenPipeError):  # the nursery was killed: so is the worker
            socket.send_fds(self._control, [str(job).encode()], [theirs.fileno(), log.fileno()])
        return Forked(ours)

    def close(self) -> None:
        """End it."""
        self._control.close()
        self._process.wait()


class Nurseries:
    """The nurseries of a run, a process for each framework, made when it is first needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: dict[str, Nursery] = {}
        self._lock = threading.Lock()

    def of(self, request: WorkerRequest) -> Nursery:
        """The nursery of the request's framework."""
        name = request.framework.name
        with self._lock:
            if name not in self._made:
                self._made[name] = Nursery(request, self._folder / name)
            return self._made[name]

    def close(self) -> None:
        """End all processes."""
        for nursery in self._made.values():
            nursery.close()


_OPEN: list[Nurseries] = []


@contextlib.contextmanager
def warm() -> Iterator[None]:
    """Meanwhile, workers of the running interpreter are forked, in every thread."""
    if not ABLE or _OPEN:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="reconcile-") as folder:
        _OPEN.append(Nurseries(Path(folder)))
        try:
            yield
        finally:
            _OPEN.pop().close()


def nursery_of(request: WorkerRequest, python: Interpreter) -> Nursery | None:
    """The nursery from which a worker of this request may come; None if it needs a process of its own.

    A model file is read in a process that is confined from its start, a recipe decides how the framework is imported, and an
    interpreter other than the running one may be too old.
    """
    if not _OPEN or not python.running or request.file is not None or request.recipe or request.lent:
        return None
    return _OPEN[-1].of(request)
