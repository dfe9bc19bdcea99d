"""Processes that leave everything by which they could be found, and who of them still runs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

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


def until(condition: Callable[[], bool], seconds: float = 60) -> bool:
    """Whether it holds within this number of seconds."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


def running(ready: Path) -> list[psutil.Process]:
    """Strays that were given that file, without those that have ended: who waits for them is the system's affair."""
    processes = psutil.process_iter(["cmdline", "status"])
    return [
        p for p in processes if str(ready) in (p.info["cmdline"] or []) and p.info["status"] != psutil.STATUS_ZOMBIE
    ]


@pytest.fixture
def ready(tmp_path: Path) -> Iterator[Path]:
    """The file that a stray makes when it runs; whatever a failing test leaves of them is ended."""
    path = tmp_path / "ready"
    yield path
    for process in running(path):
        process.kill()


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
