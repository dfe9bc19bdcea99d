"""Files of a worker that the model's own code has overwritten, and a worker that had no room to say why it ended."""

from __future__ import annotations

import errno
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reconcile.core.errors import UsageError, of_system
from reconcile.core.records import Ledger, to_json
from reconcile.launch.environments.interpreters import Interpreter
from reconcile.launch.workers import worker_files
from reconcile.launch.workers.supervisor import Supervisor
from reconcile.products.files import confine
from tests.workers import request

CONFINED = "confined.json"
READERS: dict[str, Callable[[Path], Any]] = {
    "meta.json": worker_files.read_meta,
    "refused.json": worker_files.refusal,
    CONFINED: lambda folder: worker_files.read_object(folder, CONFINED, dict.fromkeys(confine.LIMITS, str)),
    "events.jsonl": lambda folder: worker_files.events(folder, 0, ("trace",)),
}
NOT_JSON = (b"", b"{", b"[" * 100_000, b'{"a": ' + b"9" * 5000 + b"}", b"\xff\xfe", b"nonsense")
OTHER_JSON = (b"[]", b"null", b'"text"', b"7", b'{"error": 7}', b'{"frameworks": [7]}', b'{"task": {}}')
NO_EVENTS = (b'{"phase": "done"}', b'{"phase": "done", "task": "other"}', b'{"phase": "confined", "task": "trace"}')


@pytest.mark.parametrize("text", NO_EVENTS)
def test_what_is_said_of_no_task_is_damaged(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "events.jsonl").write_bytes(text + b"\n")
    with pytest.raises(UsageError, match="is damaged"):
        READERS["events.jsonl"](tmp_path)


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("text", [*NOT_JSON, *OTHER_JSON], ids=lambda text: text[:12].decode("latin-1"))
def test_a_damaged_file_is_one_sentence(tmp_path: Path, name: str, text: bytes) -> None:
    (tmp_path / name).write_bytes(text + b"\n")
    with pytest.raises(
        UsageError, match=rf"^the worker's file {name} is damaged.*: the model's own code has changed it\. Let "
    ):
        READERS[name](tmp_path)


@pytest.mark.parametrize("name", READERS)
def test_a_file_that_is_not_written_yet_is_none(tmp_path: Path, name: str) -> None:
    assert not READERS[name](tmp_path)


@pytest.mark.parametrize("name", READERS)
def test_a_pipe_in_its_place_is_not_waited_for(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(UsageError, match="is damaged"):
        READERS[name](tmp_path)


LEDGER = json.loads(to_json(Ledger("thop", "torch", "MAC", "cpu", {}, 1, (), (), {}, ())))
DAMAGES: list[dict[str, Any]] = [{"schema": 0}, {"entries": 7}, {"entries": [{"x": 1}]}, {"sightings": {"a": 1}}]
CHANGED = [{**LEDGER, **damage} for damage in DAMAGES]


def test_a_file_that_fills_no_memory_is_refused(tmp_path: Path) -> None:
    """64 GiB of nothing, which take no room on the disk."""
    (tmp_path / "refused.json").touch()
    os.truncate(tmp_path / "refused.json", 64 << 30)
    with pytest.raises(UsageError, match="is damaged"):
        worker_files.refusal(tmp_path)


@pytest.mark.parametrize("text", [*NOT_JSON, *OTHER_JSON, *(json.dumps(data).encode() for data in CHANGED)])
def test_a_damaged_record_fails_its_task_alone(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "thop.json").write_bytes(text)
    (tmp_path / "fvcore.error.json").write_bytes(text)
    (tmp_path / "flop_counter.json").write_text(json.dumps(LEDGER))
    for task in ("thop", "fvcore"):
        outcome = worker_files.outcome(tmp_path, task)
        assert outcome is not None
        assert outcome.record is None
        assert outcome.reason.startswith(f"the worker's file {task}.")
    assert worker_files.outcome(tmp_path, "other") is None
    outcome = worker_files.outcome(tmp_path, "flop_counter")
    assert outcome is not None
    assert outcome.record is not None


def full(*_given: object, **_named: object) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_is_why_a_worker_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that can write nothing ends with status 1 and an empty log, as /bin/false does."""
    false = Interpreter(Path("/bin/false"))
    worker = Supervisor(request("torch"), tmp_path / "run", 60, lambda _: None, tmp_path / "tool", false)
    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with pytest.raises(OSError, match="No space left on device") as raised:
        worker.run()
    assert "Free some space" in of_system(raised.value)


def test_the_check_for_room_leaves_nothing(tmp_path: Path) -> None:
    worker_files.check_room(tmp_path)
    worker_files.check_room(tmp_path / "gone")
    assert list(tmp_path.iterdir()) == []
