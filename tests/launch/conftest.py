"""Processes that leave everything by which they could be found, and who of them still runs."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.launch.stand_ins import interpreter, uv
from tests.own.conftest import stand_in

__all__ = ["interpreter", "stand_in", "uv"]

STRAY = """
import os, sys, time

def stray(ready):
    '''Start a process that has a session of its own, another parent, no variables and another folder; wait until it runs.'''
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.chdir("/")
            code = "import sys, time; open(sys.argv[1], 'w').close(); time.sleep(1000)"
            os.execve(sys.executable, [sys.executable, "-c", code, ready], {})
        os._exit(0)
    os.wait()
    while not os.path.exists(ready):
        time.sleep(0.01)
"""


PATIENCE = 240.0
"""Seconds that a test waits for what a process does: many times what it takes, since others may use the machine."""


def until(condition: Callable[[], bool]) -> bool:
    """Whether it holds, now or within PATIENCE."""
    end = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


def running(ready: Path) -> list[psutil.Process]:
    """Strays that were given that file, without those that have ended: who waits for them is the system's affair."""
    processes = psutil.process_iter(["cmdline", "status"])
    return [
        p for p in processes if str(ready) in (p.info["cmdline"] or []) and p.info["status"] != psutil.STATUS_ZOMBIE
    ]


def has_ended(process: psutil.Process) -> bool:
    """Whether a process has ended; who waits for it is the system's affair."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.fixture
def ready(tmp_path: Path) -> Iterator[Path]:
    """The file that a stray makes when it runs; whatever a failing test leaves of them is ended."""
    path = tmp_path / "ready"
    yield path
    for process in running(path):
        process.kill()


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[Any]]]:
    """``subprocess.Popen``; what a failing test leaves of these is ended, so that the next test hears nothing of it."""
    with ExitStack() as stack:

        def started(*args: Any, **kwargs: Any) -> subprocess.Popen[Any]:
            process: subprocess.Popen[Any] = stack.enter_context(subprocess.Popen(*args, **kwargs))
            stack.callback(process.kill)
            return process

        yield started


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    """A folder for temporary files."""
    path = tmp_path / "temporary"
    path.mkdir()
    return path


@pytest.fixture
def environ(temporary: Path) -> dict[str, str]:
    """The variables of a process that imports this tree and has that folder for its temporary files."""
    paths = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": os.pathsep.join(paths)}
