"""Reads and validates the files that a worker writes: the model's own code runs in that process and may have changed them.

``check_room`` writes one of its own, to test for a full disk.
"""

from __future__ import annotations

import contextlib
import errno
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.errors import UsageError, reason
from ...core.records import Ledger, Trace, from_json
from ...core.user_files import read_file

META_FIELDS: Mapping[str, type] = {
    "name": str, "params": dict, "layers": list, "notes": list, "published": list, "doc": str, "source": str,
    "frameworks": list,
}  # fmt: skip
"""The fields of a pair's description of itself, with their types."""
MAX_FILE_BYTES = 1 << 30
"""Bytes of the largest file that a worker writes: a trace of some million ops."""
PHASES = ("loading", "started", "done", "failed")
"""What a worker says of a task."""
FREE_BYTES_NEEDED = 1 << 16
"""Bytes for which a worker's folder has room unless the disk is full."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one task: a record, or the reason why there is none (and the missing package, if that is the reason, or
    whether the model is ``beyond`` the counter)."""

    record: Trace | Ledger | None
    reason: str = ""
    missing: str = ""
    beyond: bool = False


def read_meta(folder: Path) -> dict[str, Any] | None:
    """The pair's description of itself, or ``{"error": why}``; None if it is not written yet. Raises UsageError."""
    data = read_object(folder, "meta.json")
    if data is not None:
        _check("meta.json", data, {"error": str} if "error" in data else META_FIELDS)
        if not all(isinstance(name, str) for name in data.get("frameworks", ())):
            raise _refuse_damaged("meta.json", "frameworks")
    return data


def point_descriptions(meta: Mapping[str, Any], count: int) -> list[dict[str, Any]]:
    """The description of a model at each of ``count`` points. Raises UsageError."""
    tables = meta.get("points")
    if not isinstance(tables, list) or len(tables) != count or not all(isinstance(table, dict) for table in tables):
        raise _refuse_damaged("meta.json", "points")
    return [_check("meta.json", table, {"params": dict, "inputs": list, "layers": list}) for table in tables]


def refusal(folder: Path) -> dict[str, Any] | None:
    """Why the user's own code cannot be used: ``error`` and whether it ``declined``; None if it can. Raises UsageError."""
    return read_object(folder, "refused.json", {"error": str, "declined": bool})


def events(folder: Path, seen: int, tasks: Sequence[str]) -> list[dict[str, str]]:
    """The events after the first ``seen`` ones, of these tasks or of none. Raises UsageError."""
    lines = (_text(folder, "events.jsonl") or "").split("\n")[seen:-1]
    found = [_check("events.jsonl", _parse_text("events.jsonl", line, _plain_table), {}) for line in lines]
    for event in found:
        if "phase" in event and (event["phase"] not in PHASES or event.get("task") not in ("", *tasks)):
            raise _refuse_damaged("events.jsonl", "task")
    return found


def outcome(folder: Path, task: str) -> Outcome | None:
    """The outcome of a task; None if there is none. A record that cannot be read is a task that failed."""
    try:
        text = _text(folder, f"{task}.json")
        if text is not None:
            return Outcome(_parse_text(f"{task}.json", text, from_json))
        data = read_object(folder, f"{task}.error.json", {"reason": str, "missing": str, "beyond": bool})
        return None if data is None else Outcome(None, data["reason"], data["missing"], data["beyond"])
    except UsageError as error:
        return Outcome(None, str(error).rstrip("."))


def check_room(folder: Path) -> None:
    """Raise OSError if the disk under a worker's folder is full: the worker could then not say why it ended."""
    with contextlib.suppress(FileNotFoundError), tempfile.TemporaryFile(dir=folder) as spare:
        spare.write(bytes(FREE_BYTES_NEEDED))
        spare.flush()


def read_object(folder: Path, name: str, fields: Mapping[str, type] | None = None) -> dict[str, Any] | None:
    """The JSON object in a file, with at least these fields; None if there is no file. Raises UsageError."""
    text = _text(folder, name)
    data = None if text is None else _parse_text(name, text, _plain_table)
    return data if data is None or fields is None else _check(name, data, fields)


def _plain_table(text: str) -> dict[str, Any]:
    data = json.loads(text)
    if not isinstance(data, dict):
        raise TypeError
    return data


def _text(folder: Path, name: str) -> str | None:
    try:
        return read_file(folder / name, MAX_FILE_BYTES).decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise _refuse_damaged(name) from error
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
            raise
        raise _refuse_damaged(name, reason(error)) from error


def _parse_text(name: str, text: str, parse: Callable[[str], Any]) -> Any:
    try:
        return parse(text)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise _refuse_damaged(name) from error


def _check(name: str, data: dict[str, Any], fields: Mapping[str, type]) -> dict[str, Any]:
    fields = fields or dict.fromkeys(data, str)
    wrong = next((field for field, kind in fields.items() if not isinstance(data.get(field), kind)), None)
    if wrong is not None:
        raise _refuse_damaged(name, wrong)
    return data


def _refuse_damaged(name: str, where: str = "") -> UsageError:
    return UsageError(
        f"the worker's file {name} is damaged{f' ({where[:80]})' if where else ''}: the model's own code has changed it. "
        "Let that code write to other folders only."
    )
