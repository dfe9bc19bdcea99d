"""The nursery: a process that has imported a framework, and forks workers from that state to save the time of the import.

``python reconcile.pyz REQUEST MODULE CONTROL LIBRARY`` starts it (forked_workers.py does): it imports what that request needs,
and the module LIBRARY unless that is '', and waits at the socket CONTROL. Each message there is the path of a job, with two file
descriptors: the connection of one worker with home, and its log. The job's process is the worker's reaper (reaper.py), forked
from here instead of started. Its standard input is the connection, to which it writes its process id and, at the end, the
worker's status and its peak memory. No user code runs in this process, so a worker starts in the state of a fresh one.

Linux, and a Python of the version that runs home.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import resource
import select
import socket
import tempfile
import threading
from collections.abc import Iterator
from typing import Any

from ..adapters.shared import keras_model
from ..core.framework import absolute, adapter_of
from ..core.protocol import WorkerRequest, from_text
from ..launch.workers import reaper
from ..worker import import_path
from ..worker import main as worker

LONGEST = 1 << 16
"""The most bytes of a path."""
FILES = 2


def main(request: str, control: str, library: str = "") -> None:
    """Entry point: import what the request in this file needs, and serve jobs until home closes the socket of this number."""
    with open(request, encoding="utf-8") as file, _end_with_home(int(control)):
        _load(from_text(file.read()), library)
    gc.freeze()  # what is here already is not copied by collections of the workers
    with socket.socket(fileno=int(control)) as jobs:
        while True:
            message, files, _, _ = socket.recv_fds(jobs, LONGEST, FILES)
            _bury()
            if not message:
                os._exit(0)
            if not os.fork():
                jobs.close()
                _become(message.decode(), *files)
            for file_ in files:
                os.close(file_)


@contextlib.contextmanager
def _end_with_home(control: int) -> Iterator[None]:
    """Within this context, the process ends as soon as home has: an import may take longer than anybody waits."""
    reading, writing = os.pipe()
    ends = select.poll()
    ends.register(control, 0)  # no event but that home's end is closed
    ends.register(reading, 0)

    def wait() -> None:
        if control in dict(ends.poll()):
            os._exit(0)

    thread = threading.Thread(target=wait)
    thread.start()
    try:
        yield
    finally:
        os.close(writing)
        thread.join()
        os.close(reading)


def _bury() -> None:
    """Forget the reapers that have ended: they have reported to home, and their processor time counts for this process."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _load(request: WorkerRequest, library: str) -> None:
    """Import the framework, the captures and the library. What cannot be imported is left to the worker, which says so."""
    for package, folder in request.brought.items():
        import_path.import_outside(package, folder)
    with contextlib.suppress(Exception):
        adapter_of(request.framework).before_import()
    captures = (absolute(module) + ".capture" for module, _ in request.counters.values())
    if library:
        os.environ[keras_model.VARIABLE] = (
            request.framework.backend
        )  # which the worker would set before it imports the model's
    for module in (request.framework.package, *captures, *([library] if library else [])):
        with contextlib.suppress(Exception):
            importlib.import_module(module)


def _become(path: str, connection: int, log: int) -> None:
    """Become the reaper of a job, tell home the id, and at the end the worker's status as ``waitpid`` gives it."""
    try:
        os.setsid()
        for number, standard in ((connection, 0), (log, 1), (log, 2)):
            os.dup2(number, standard)
        os.close(connection)
        os.close(log)
        _tell(os.getpid())
        with open(path, encoding="utf-8") as file:
            job: dict[str, Any] = json.load(file)
        os.environ.update(job["variables"])
        os.chdir(job["folder"])  # home's, as for a worker that is started: home may have moved since this process began
        tempfile.tempdir = None  # it is the nursery's
        status = reaper.supervise_work(job, lambda: worker.main(job["request"]))
        _tell(status)
        _tell(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
    finally:
        os._exit(0)


def _tell(number: int) -> None:
    with contextlib.suppress(OSError):  # home has ended
        os.write(0, b"%d\n" % number)
