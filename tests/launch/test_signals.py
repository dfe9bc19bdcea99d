"""SIGTERM and SIGHUP end a run as Ctrl-C does: nothing runs on, nothing is left, and the exit status says what it was."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from reconcile.core import signals
from tests.launch.conftest import STRAY, running, until

MODEL = STRAY + "def make():\n    stray(os.environ['READY'])\n    time.sleep(1000)\n"
COMMAND = ("-m", "reconcile", "run", "--torch", "net:make", "--input", "1,3", "--out", "out")
CALL = ("-c", "import reconcile; reconcile.run(torch='net:make', inputs='1,3')")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux has subreapers and /proc")
@pytest.mark.parametrize(
    ("how", "number", "status"),
    [
        (COMMAND, signal.SIGTERM, 128 + signal.SIGTERM),
        (COMMAND, signal.SIGHUP, 128 + signal.SIGHUP),
        (COMMAND, signal.SIGKILL, -signal.SIGKILL),
        (CALL, signal.SIGTERM, -signal.SIGTERM),
    ],
)
def test_a_run_that_is_ended(
    tmp_path: Path, ready: Path, temporary: Path, stand_in: None, environ: dict[str, str],
    how: tuple[str, ...], number: signal.Signals, status: int,
) -> None:  # fmt: skip
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "net.py").write_text(MODEL)
    environ["PYTHONPATH"] += f"{os.pathsep}{tmp_path / 'stand-in'}"
    environ["READY"] = str(ready)
    process = subprocess.Popen([sys.executable, *how], cwd=folder, env=environ, stderr=subprocess.PIPE, text=True)
    assert until(ready.exists)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == status
    assert said.strip() == ("Interrupted; no file was left half-written." if status > 0 else "")
    assert until(lambda: not running(ready) and not list(temporary.iterdir()), 10)
    assert [path.name for path in folder.iterdir() if path.name not in ("__pycache__", "out")] == ["net.py"]


def handlers() -> list[object]:
    return [signal.getsignal(number) for number in signals.ENDING]


def test_what_is_ignored_or_heard_already_stays() -> None:
    term, hup = signals.ENDING
    before = handlers()
    try:
        signal.signal(term, lambda *_: None)
        signal.signal(hup, signal.SIG_IGN)
        held = handlers()
        with signals.heard() as came, signals.passed_on():
            assert handlers() == held
            signal.raise_signal(term)
            signal.raise_signal(hup)
        assert came == []
        assert handlers() == held
    finally:
        for number, handler in zip(signals.ENDING, before, strict=True):
            signal.signal(number, handler)  # type: ignore[arg-type]


@pytest.mark.parametrize("number", signals.ENDING)
def test_the_first_is_heard_and_all_is_put_back(number: int) -> None:
    before = handlers()
    with signals.heard() as came:
        with pytest.raises(signals.Ended):
            signal.raise_signal(number)
        signal.raise_signal(number)
    assert came == [number]
    assert handlers() == before


def test_other_threads_hear_nothing() -> None:
    before, found = handlers(), []

    def hear() -> None:
        with signals.heard(), signals.passed_on():
            found.append(handlers())

    thread = threading.Thread(target=hear)
    thread.start()
    thread.join()
    assert found == [before]
