"""The reaper: the parent process of one worker; it kills every process that the worker started when the worker or home ends.

Home starts ``python -I -S -c START JOB`` (``command``) instead of the worker. The reaper then starts the worker, confined if it
loads a file that is not trusted (``ModelFile.confinement``). Orphans below the reaper become its children (Linux:
PR_SET_CHILD_SUBREAPER), so it finds every process that the worker has started, whatever session, folder or variables that
process has set. It ends as the worker ended. It takes two signals: SIGTERM ends everything now, and SIGABRT is passed to the
worker, which then reports where it is.

Its standard input is a pipe from home that has no writer. It closes when home has ended, for instance because home was
killed.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ...worker.process_guard import end_with, leave_no_core, prctl

START = (
    "import json, sys; job = json.loads(sys.argv[1]); sys.path += job['paths']; "
    "from reconcile.launch.workers.reaper import main; main(job)"
)
MARK = "RECONCILE_WORKER"
"""Variable whose value identifies the processes that a worker has started, wherever they moved."""
CONFINED = "confined.json"
"""File in the worker's folder with the result of the confinement."""

PR_SET_CHILD_SUBREAPER = 36
"""linux/prctl.h"""
PATIENCE = 10.0
"""Seconds within which every process that gets SIGKILL has ended, unless the system keeps it."""
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def command(
    worker: Sequence[str],
    folder: Path | None = None,
    confinement: Any = None,
    readable: Sequence[str] = (),
    accelerators: bool = False,
    stdin: int | None = None,
) -> list[str]:
    """The command of a reaper with that worker. If the module ``confinement`` is not None, it lets the worker write to ``folder``
    alone, and read that and ``readable``. ``stdin`` is the number of what it reads, in
    place of the pipe from home."""
    paths = [Path(__file__).parents[3], *(confinement.find_libraries() if confinement else ())]
    job = {
        "paths": [str(path) for path in paths],
        "worker": list(worker),
        "confined": str(folder) if confinement else "",
        "confinement": confinement.__name__ if confinement else "",
        "readable": list(readable),
        "accelerators": accelerators,
        "stdin": stdin,
    }
    return [sys.executable, "-I", "-S", "-c", START, json.dumps(job)]


def end_marked(mark: str) -> None:
    """At home: end processes of a worker that have left its process group, if the system lists processes."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if f"{MARK}={mark}".encode() in path.read_bytes().split(b"\0"):
                os.kill(int(path.parent.name), signal.SIGKILL)


def main(job: dict[str, Any]) -> None:
    """Start the worker, wait until it has ended or is to be ended, leave no process behind, and end as the worker did."""
    _end_as(supervise_work(job, lambda: os.execv(job["worker"][0], job["worker"])))


def supervise_work(job: dict[str, Any], work: Callable[[], object]) -> int:
    """Fork a worker that does this work, and leave no process behind. Returns its status from ``waitpid``."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    awake = _signals()
    me = os.getpid()
    worker = os.fork()
    if not worker:
        _become(job, me, work)
    return _end_all(worker, _wait(worker, awake))


def _signals() -> int:
    """Have signals written to a pipe. Returns the end to read from."""
    awake, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for number in (*ENDING, signal.SIGABRT, signal.SIGCHLD):
        signal.signal(number, lambda _number, _frame: None)
    return awake


def _become(job: dict[str, Any], parent: int, work: Callable[[], object]) -> None:
    """Become the worker, in a session of its own; it is killed when its parent, the reaper, ends."""
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (*ENDING, signal.SIGABRT, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        end_with(parent)
        if job.get("stdin") is not None:
            os.dup2(job["stdin"], 0)
        if job["confined"]:
            confinement = importlib.import_module(job["confinement"])
            reasons = confinement.confine(job["confined"], job["readable"], job["accelerators"])
            note = Path(job["confined"], CONFINED + ".part")
            note.write_text(json.dumps(reasons), encoding="utf-8")
            note.replace(note.with_suffix(""))
            if not confinement.holds(reasons):
                os._exit(127)
        work()
    except OSError as error:
        os.write(2, f"{job['worker'][0]} cannot be started: {error.strerror}.\n".encode())
    finally:
        os._exit(127)


def _wait(worker: int, awake: int) -> int | None:
    """Wait until the worker has ended, and return its status from ``waitpid``; None if it is to be ended now."""
    while True:
        ready, _, _ = select.select([0, awake], [], [])
        if 0 in ready and not os.read(0, 1024):
            return None
        signals = os.read(awake, 1024) if awake in ready else b""
        if signal.SIGABRT in signals:
            os.kill(worker, signal.SIGABRT)
        if any(number in signals for number in ENDING):
            return None
        ended = 1
        while ended:
            ended, status = os.waitpid(-1, os.WNOHANG)
            if ended == worker:
                return status


def _end_all(worker: int, status: int | None) -> int:
    """End all descendants of this process, until there are none. Returns the worker's status."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(worker, signal.SIGKILL)
        for process in _descendants():
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        try:
            ended, exit_status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            break
        if ended == worker:
            status = exit_status
        if not ended:
            time.sleep(0.005)
    return signal.SIGKILL if status is None else status


def _descendants() -> list[int]:
    """The descendants of this process, if the system lists processes."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text(errors="replace").rpartition(")")[2].split()[1])
    family = [os.getpid()]
    for ancestor in family:
        family.extend(child for child, parent in parents.items() if parent == ancestor)
    return family[1:]


def _end_as(status: int) -> None:
    """End as the worker did, so that the process that waits for this one need not know that there were two."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        leave_no_core()
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status))
