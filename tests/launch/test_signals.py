"""SIGTERM and SIGHUP end a run as Ctrl-C does: nothing runs on, nothing is left, and the exit status says what it was."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from reconcile.core import signals
from tests.conftest import IGNORING, SIGNALS
from tests.launch.conftest import PATIENCE, STRAY, running, until

Start = Callable[..., "subprocess.Popen[str]"]
MODEL = STRAY + "def make():\n    stray(os.environ['READY'])\n    time.sleep(1000)\n"
COMMAND = ("-m", "reconcile", "run", "--torch", "net:make", "--input", "1,3", "--out", "out")
CALL = ("-c", "import reconcile; reconcile.run(torch='net:make', inputs='1,3')")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux has subreapers and /proc")
@pytest.mark.parametrize(
    ("by", "how", "number", "status"),
    [
        ((), COMMAND, signal.SIGTERM, 128 + signal.SIGTERM),
        pytest.param((), COMMAND, signal.SIGHUP, 128 + signal.SIGHUP, marks=pytest.mark.slow),
        pytest.param((), COMMAND, signal.SIGKILL, -signal.SIGKILL, marks=pytest.mark.slow),
        ((), CALL, signal.SIGTERM, -signal.SIGTERM),
        pytest.param(IGNORING, COMMAND, signal.SIGTERM, 128 + signal.SIGTERM, marks=pytest.mark.slow),
        (IGNORING, COMMAND, signal.SIGKILL, -signal.SIGKILL),
    ],
)
def test_a_run_that_is_ended(
    tmp_path: Path, ready: Path, temporary: Path, stand_in: None, environ: dict[str, str], start: Start,
    by: tuple[str, ...], how: tuple[str, ...], number: signal.Signals, status: int,
) -> None:  # fmt: skip
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "net.py").write_text(MODEL)
    environ["PYTHONPATH"] += f"{os.pathsep}{tmp_path / 'stand-in'}"
    environ["READY"] = str(ready)
    process = start([*by, sys.executable, *how], cwd=folder, env=environ, stderr=subprocess.PIPE, text=True)
    assert until(ready.exists)
    if by:
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGHUP)
    process.send_signal(number)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == status
    assert said.strip() == ("Interrupted; no file was left half-written." if status > 0 else "")
    assert until(lambda: not running(ready) and not list(temporary.iterdir()))
    assert [path.name for path in folder.iterdir() if path.name not in ("__pycache__", "out")] == ["net.py"]


def handlers(numbers: Iterable[int] = signals.ENDING) -> list[object]:
    return [signal.getsignal(number) for number in numbers]


@pytest.fixture
def put_back() -> Iterator[None]:
    """A test may change what this process does about signals."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_what_is_ignored_or_heard_already_stays(put_back: None) -> None:
    term, hup = signals.ENDING
    signal.signal(term, lambda *_: None)
    signal.signal(hup, signal.SIG_IGN)
    held = handlers()
    with signals.catch_signals() as came, signals.reraise_signals():
        assert handlers() == held
        signal.raise_signal(term)
        signal.raise_signal(hup)
    assert came == []
    assert handlers() == held


@pytest.mark.parametrize("number", signals.ENDING)
def test_the_first_is_heard_and_all_is_put_back(number: int, put_back: None) -> None:
    for each in signals.ENDING:
        signal.signal(each, signal.SIG_DFL)
    before = handlers()
    with signals.catch_signals() as came:
        with pytest.raises(signals.TerminatedBySignal):
            signal.raise_signal(number)
        signal.raise_signal(number)
    assert came == [number]
    assert handlers() == before


def test_other_threads_hear_nothing() -> None:
    before, found = handlers(), []

    def hear() -> None:
        with signals.catch_signals(), signals.reraise_signals():
            found.append(handlers())

    thread = threading.Thread(target=hear)
    thread.start()
    thread.join()
    assert found == [before]
