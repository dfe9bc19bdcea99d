"""What stands around the loading of a file: little memory, little time, little room, and a worker that dies."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from reconcile.core.errors import UsageError
from reconcile.core.protocol import UserModel
from reconcile.launch.environments.interpreters import Interpreter
from reconcile.launch.workers.supervisor import Supervisor
from tests.programs import output_of
from tests.workers import model_file, request, user_model

LIMITED = """
from reconcile.products.files import worker
worker.limit_memory(0)
try:
    bytearray(5 << 30)
except MemoryError:
    print("held")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is limited on Linux only")
def test_memory_is_limited() -> None:
    assert output_of("-c", LIMITED) == "held\n"


HELD = """
import json, pathlib, sys
out = pathlib.Path(json.loads(pathlib.Path(sys.argv[1]).read_text())["out"])
(out / "events.jsonl").write_text(json.dumps({"task": "trace", "phase": "started"}) + chr(10))
9**9**9**9
"""
"""A worker in one operation that keeps every thread of its process from running, for hours."""


LIVELY = """
import json, pathlib, sys, time
out = pathlib.Path(json.loads(pathlib.Path(sys.argv[1]).read_text())["out"])
while True:
    with (out / "events.jsonl").open("a") as file:
        file.write(json.dumps({"task": "trace", "phase": "done"}) + chr(10))
    time.sleep(0.1)
"""
"""A worker that reports progress for ever."""
PRINTING = """
while True:
    print("x" * 9999)
"""
"""A worker that fills the disk with its log."""


def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str = HELD, *, trusted: bool, timeout: float) -> str:
    """What is said of a file whose worker is held, and all within the time of a test."""
    monkeypatch.setattr("reconcile.products.files.confine.PATIENCE", 0.5)
    monkeypatch.setattr("reconcile.products.files.confine.LARGEST", 1 << 20)
    (tmp_path / "tool").write_text(tool)
    model = user_model("m.pt2", model_file("m.pt2", trusted=trusted))
    asked = request("torch", model=model, tasks=("trace",))
    python = Interpreter(Path(sys.executable))
    start = time.monotonic()
    with pytest.raises(UsageError) as caught:
        Supervisor(asked, tmp_path / "run", timeout, lambda _: None, tmp_path / "tool", python).run()
    assert time.monotonic() - start < 500
    return str(caught.value)


def test_what_takes_too_long_is_ended_from_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert held(tmp_path, monkeypatch, trusted=False, timeout=60) == (
        "m.pt2 was not loaded and traced within 0.5 seconds; --trust-file lets it take as long as --timeout allows."
    )


def test_what_reports_progress_for_ever_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "was not loaded and traced within" in held(tmp_path, monkeypatch, LIVELY, trusted=False, timeout=1)


def test_what_fills_the_disk_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = held(tmp_path, monkeypatch, PRINTING, trusted=False, timeout=60)
    assert said == "m.pt2 made its process write more than 0 GiB; --trust-file lets it."
    assert (tmp_path / "run" / "0" / "worker.log").stat().st_size < 1 << 30


def test_a_trusted_file_has_the_time_of_its_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = held(tmp_path, monkeypatch, trusted=True, timeout=1)
    assert said == "m.pt2 cannot be loaded: its process ran into the time limit of 1 s."


def test_a_worker_that_dies_of_its_file(tmp_path: Path) -> None:
    def supervisor(name: str, model: UserModel) -> Supervisor:
        false = Interpreter(Path("/bin/false"))
        asked = request("tf", model=model, tasks=("trace",))
        return Supervisor(asked, tmp_path / name, 60, lambda _: None, tmp_path / "tool", false)

    died = "its process ended with status 1 before it was done"
    with pytest.raises(UsageError, match=rf"^m\.pb cannot be loaded: {died}\.$"):
        supervisor("a", user_model("m.pb", model_file("m.pb", "graph_def"))).run()
    assert supervisor("b", user_model("m:make")).run()["trace"].reason == died
