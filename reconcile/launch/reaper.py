"""Stands between this tool and one of its workers: whatever way the worker, its code or the tool ends, nothing stays behind.

Home starts ``python -I -S -c START TOLD`` (``command``) instead of the worker, which it starts in turn, confined where it
loads somebody's file (``confine.py``). Orphans below it come to it (Linux: PR_SET_CHILD_SUBREAPER), so that it finds
all that the worker has started, whatever session, folder or variables they have given themselves. It ends as the worker has
ended. Signals to it: SIGTERM is to end it all now, SIGABRT is for the worker, which says then where it is.

Its standard input is a pipe from home, which nobody writes to and which closes when home is gone: killed, say, so that it could
not remove its folder either.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import json
import os
import resource
import select
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

START = (
    "import json, sys; told = json.loads(sys.argv[1]); sys.path += told['paths']; "
    "from reconcile.launch.reaper import main; main(told)"
)
LIBRARIES = ("landlock", "pyseccomp")
"""What confining takes, beside the standard library."""
CONFINED = "confined.json"
"""Left in the worker's folder: what ``confine`` has said."""

SUBREAPER, DEATH = 36, 1
"""PR_SET_CHILD_SUBREAPER and PR_SET_PDEATHSIG (linux/prctl.h)."""
PATIENCE = 10.0
"""Seconds in which everything that gets SIGKILL is gone, unless the system holds it."""
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def command(worker: Sequence[str], run: Path, confined: Path | None, accelerators: bool) -> list[str]:
    """How to start this with that worker. ``run`` is removed if home is killed, and a ``confined`` worker writes only there."""
    specs = [importlib.util.find_spec(name) for name in LIBRARIES]
    packages = [Path(spec.origin) for spec in specs if spec is not None and spec.origin is not None]
    paths = [Path(__file__).parents[2], *(p.parents[1] if p.name == "__init__.py" else p.parent for p in packages)]
    told = {
        "paths": [str(path) for path in paths],
        "worker": list(worker),
        "home": os.getpid(),
        "run": str(run),
        "confined": str(confined or ""),
        "accelerators": accelerators,
    }
    return [sys.executable, "-I", "-S", "-c", START, json.dumps(told)]


def main(told: dict[str, Any]) -> None:
    """Start the worker, wait until it, home or somebody's patience ends, and leave nothing."""
    _prctl(SUBREAPER, 1)
    awake = _signals()
    me = os.getpid()
    worker = os.fork()
    if not worker:
        _become(told, me)
    status = _end_all(worker, _wait(worker, awake))
    if _orphaned(told["home"]):
        shutil.rmtree(told["run"], ignore_errors=True)
    _end_as(status)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), 0, 0, 0)


def _signals() -> int:
    """Have signals written to a pipe; its end to read from."""
    awake, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for number in (*ENDING, signal.SIGABRT, signal.SIGCHLD):
        signal.signal(number, lambda _number, _frame: None)
    return awake


def _become(told: dict[str, Any], parent: int) -> None:
    """Be the worker: a session of its own, that dies with this one's parent."""
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (*ENDING, signal.SIGABRT, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        _prctl(DEATH, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        if told["confined"]:
            from .confine import confine

            held = confine(told["confined"], told["accelerators"])
            note = Path(told["confined"], CONFINED + ".part")
            note.write_text(json.dumps(held), encoding="utf-8")
            note.replace(note.with_suffix(""))
        os.execv(told["worker"][0], told["worker"])
    except OSError as error:
        os.write(2, f"{told['worker'][0]} cannot be started: {error.strerror}.\n".encode())
    finally:
        os._exit(127)


def _wait(worker: int, awake: int) -> int | None:
    """Until the worker has ended (how, as ``waitpid`` says it), or there is reason to end it."""
    while True:
        ready, _, _ = select.select([0, awake], [], [])
        if 0 in ready and not os.read(0, 1024):
            return None
        heard = os.read(awake, 1024) if awake in ready else b""
        if signal.SIGABRT in heard:
            os.kill(worker, signal.SIGABRT)
        if any(number in heard for number in ENDING):
            return None
        ended = 1
        while ended:
            ended, status = os.waitpid(-1, os.WNOHANG)
            if ended == worker:
                return status


def _end_all(worker: int, status: int | None) -> int:
    """End what descends from this process, until nothing does; how the worker has ended."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(worker, signal.SIGKILL)
        for process in _descendants():
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        try:
            ended, its = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            break
        if ended == worker:
            status = its
        if not ended:
            time.sleep(0.005)
    return signal.SIGKILL if status is None else status


def _descendants() -> list[int]:
    """The processes below this one, where the system lists processes."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text(errors="replace").rpartition(")")[2].split()[1])
    found = [os.getpid()]
    for parent in found:
        found.extend(child for child, its in parents.items() if its == parent)
    return found[1:]


def _orphaned(home: int) -> bool:
    """Whether home is gone: its end of the pipe closes a moment before it is nobody's parent any more."""
    if not select.select([0], [], [], 0)[0]:
        return False
    until = time.monotonic() + 1
    while os.getppid() == home and time.monotonic() < until:
        time.sleep(0.01)
    return os.getppid() != home


def _end_as(status: int) -> None:
    """End as the worker did, so that whoever waits for this process need not know that there were two."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status))
