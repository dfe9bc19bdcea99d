"""A worker that runs a user's program as it is, and the ranks that it forks: they end with the tool, however that ends."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.conftest import IGNORING
from tests.launch.conftest import until

PROGRAM = """
import os, pathlib, time

def make():
    if not os.fork():
        os.setsid()  # what it has started ends as well, wherever that went
        pathlib.Path(os.environ["READY"]).with_name(str(os.getpid())).touch()
        time.sleep(1000)
    time.sleep(0.5)
    pathlib.Path(os.environ["READY"]).with_name(str(os.getpid())).touch()
    pathlib.Path(os.environ["READY"]).touch()
    time.sleep(1000)

if __name__ == "__main__":
    make()
"""
RANKS = ("run", "--torch", "slow:make", "--ranks", "2", "--out", "out")
RANKED = (pytest.mark.frameworks, pytest.mark.slow)
WATCH = ("watch", "slow.py")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere only the tool itself ends its worker")
@pytest.mark.parametrize(
    ("by", "words", "number"),
    [
        pytest.param(IGNORING, RANKS, signal.SIGTERM, marks=RANKED),
        pytest.param((), RANKS, signal.SIGKILL, marks=RANKED),
        ((), WATCH, signal.SIGTERM),
        ((), WATCH, signal.SIGINT),
        ((), WATCH, signal.SIGHUP),
        (IGNORING, WATCH, signal.SIGKILL),
    ],
)
def test_no_program_runs_on_when_the_tool_is_ended(
    tmp_path: Path, ready: Path, environ: dict[str, str], start: Callable[..., subprocess.Popen[bytes]],
    by: tuple[str, ...], words: tuple[str, ...], number: signal.Signals,
) -> None:  # fmt: skip
    (tmp_path / "slow.py").write_text(PROGRAM)
    environ["READY"] = str(ready)
    command = [*by, sys.executable, "-m", "reconcile", *words]
    tool = start(command, cwd=tmp_path, env=environ, stderr=subprocess.DEVNULL)
    assert until(ready.exists)
    family = psutil.Process(tool.pid).children(recursive=True)
    assert {int(path.name) for path in tmp_path.glob("[0-9]*")} <= {process.pid for process in family}
    tool.send_signal(number)
    assert until(lambda: not any(map(runs, family)) and not [*Path(environ["TMPDIR"]).glob("reconcile-*")])


def runs(process: psutil.Process) -> bool:
    """Whether it has not ended; whoever waits for it then is the system's affair."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
