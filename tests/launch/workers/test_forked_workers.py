"""A forked worker gives what one that started gives, fails as it does, and leaves no process behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from reconcile.core.errors import Refused, UsageError
from reconcile.launch.environments.interpreters import Interpreter
from reconcile.launch.request import run_request
from reconcile.launch.runner import collect
from reconcile.launch.workers import crashes, scratch
from reconcile.products import forked_workers
from tests.conftest import PAIRS
from tests.launch.conftest import PATIENCE, until
from tests.workers import request

pytestmark = [
    pytest.mark.skipif(not forked_workers.ABLE, reason="workers are forked on Linux, from Python 3.9 on"),
    pytest.mark.frameworks,
]
ROOT = Path(__file__).parents[3]
PAIR = str(PAIRS / "misbehaves.py")


@pytest.fixture
def started() -> Callable[[], list[psutil.Process]]:
    """A function: the tool's processes that run, without those of other tests (the session's nurseries)."""

    def find() -> list[psutil.Process]:
        found = []
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):  # a zombie has no command any more
                if scratch.TOOL in " ".join(process.cmdline()):
                    found.append(process)
        return found

    before = find()
    return lambda: [process for process in find() if process not in before]


@pytest.mark.parametrize(
    "pass_", [pytest.param("forward", marks=pytest.mark.slow), pytest.param("training", marks=pytest.mark.heavy)]
)
def test_a_forked_worker_finds_what_a_started_one_finds(pass_: str) -> None:
    asked = run_request(model="gru_demo", overrides={"frames": "7"}, pass_=pass_)
    started = collect(asked)
    with forked_workers.warm():
        forked, again = collect(asked), collect(asked)
    assert forked.traces == again.traces == started.traces
    assert forked.ledgers == again.ledgers == started.ledgers
    assert [ledger for ledger in started.ledgers if hasattr(ledger, "total")] != []


NET = """
import torch
def make():
    return torch.nn.Linear({inner}, 4), (torch.ones(2, {inner}),)
"""


@pytest.mark.parametrize("models", [("torch",), pytest.param(("torch", "tf"), marks=pytest.mark.slow)])
def test_a_worker_is_forked_by_the_nursery_of_its_framework(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, models: tuple[str, ...]
) -> None:
    forked = []
    fork = forked_workers.Nursery.fork
    monkeypatch.setattr(
        forked_workers.Nursery, "fork", lambda nursery, *given: forked.append(nursery) or fork(nursery, *given)
    )
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(NET.format(inner=3))
    asked = run_request(torch="net:make", counters=("flop_counter",))
    if "tf" in models:
        asked = run_request(model="gru_demo", overrides={"frames": "3"})
    with forked_workers.warm():
        for _ in range(2):
            collect(asked)
    assert len(forked) == 2 * len(models)
    assert len(set(forked)) == len(models)


PRINTS = """
import sys, torch
def make():
    print("from the factory")
    sys.stderr.write("and from its errors\\n")
    raise SystemExit(3)
"""


def test_what_the_users_code_prints_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stand_in: None) -> None:
    (tmp_path / "prints.py").write_text(PRINTS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(crashes, "LOGS", str(tmp_path))
    with forked_workers.warm(), pytest.raises(Refused) as refused:
        collect(run_request(torch="prints:make", inputs=["x=1,2"]))
    assert "from the factory" in refused.value.printed
    assert "and from its errors" in refused.value.printed


@pytest.mark.slow
def test_a_worker_is_where_home_is_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two folders have a net.py each, and the nursery is of before the second."""
    found = []
    with forked_workers.warm():
        for inner in (3, 5):
            folder = tmp_path / str(inner)
            folder.mkdir()
            (folder / "net.py").write_text(NET.format(inner=inner))
            monkeypatch.chdir(folder)
            asked = run_request(torch="net:make", counters=("flop_counter",))
            found += [ledger.total for ledger in collect(asked).ledgers if hasattr(ledger, "total")]
    assert found == [2 * 2 * 3 * 4, 2 * 2 * 5 * 4]


def test_only_workers_of_the_running_interpreter_are_forked(started: Callable[[], list[psutil.Process]]) -> None:
    asked = request("torch", tasks=("thop",))
    assert forked_workers.nursery_of(asked, Interpreter()) is None
    with forked_workers.warm():
        assert forked_workers.nursery_of(asked, Interpreter(Path("/usr/bin/python3"))) is None
        assert forked_workers.nursery_of(asked, Interpreter(user_owned=True)) is None
        assert forked_workers.nursery_of(asked._replace(recipe="keras_frozen"), Interpreter()) is None
        assert started() == []


WORKER = """
import os, sys, threading
sys.path[:0] = [{root!r}, {own!r}]
from reconcile.launch.workers import warm
from reconcile.launch.request import RunRequest
from reconcile.launch.runner import collect
with warm.warm():
    collect(RunRequest({pair!r}, {{"how": "hang", "under": "thop"}}, counters=("thop",)))
"""


@pytest.mark.slow
def test_all_ends_where_the_tool_is_killed(tmp_path: Path, start: Callable[..., subprocess.Popen[bytes]]) -> None:
    code = WORKER.format(root=str(ROOT), own=str(tmp_path), pair=PAIR)
    home = start([sys.executable, "-c", code], cwd=ROOT, env={**os.environ, "TMPDIR": str(tmp_path)})
    seen: dict[int, psutil.Process] = {}

    def hangs() -> bool:
        seen.update({process.pid: process for process in psutil.Process(home.pid).children(recursive=True)})
        return any('"thop", "phase": "started"' in log.read_text() for log in tmp_path.rglob("events.jsonl"))

    assert until(hangs)
    home.send_signal(signal.SIGKILL)
    home.wait()
    _, alive = psutil.wait_procs(list(seen.values()), timeout=PATIENCE)
    assert alive == []
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_is_stopped_before_its_nursery_is_ready(
    tmp_path: Path, stand_in: None, started: Callable[[], list[psutil.Process]]
) -> None:
    """The worker ends as soon as it begins, and the caller waits no longer than that."""
    from reconcile.launch.workers.scratch import pack
    from reconcile.launch.workers.supervisor import Supervisor

    asked = request("torch", tasks=("thop",))
    with forked_workers.warm():
        nursery = forked_workers.nursery_of(asked, Interpreter())
        one = Supervisor(asked, tmp_path / "run", 60, lambda _event: None, pack(tmp_path), Interpreter(), nursery)

        def run() -> None:
            with contextlib.suppress(UsageError):  # the worker may be sooner than the stop: the request names no pair
                one.run()

        thread = threading.Thread(target=run)
        thread.start()
        assert until(lambda: (tmp_path / "run" / "0" / "job.json").exists())
        one.stop()
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert started() == []
