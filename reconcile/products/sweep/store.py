"""The output folder of a sweep: its lock, its saved cells and pages, and the cleanup after a killed sweep.

Nothing is written or read through a symbolic link, and only files that this sweep made are removed.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...core import atomic
from ...core.errors import UsageError
from ...core.option import FORMATS
from ...report.reports import TABLE

CELLS = "cells"
LOCK = ".lock"
PAGES = {"README": "md", "sweep": "csv", "audit": "csv", "costs": "csv", "index": "html"}
"""The own files of a sweep and of an audit, by their stems."""
MARK = "sweep"
"""What the names of a sweep's temporary files hold: the process that holds the folder may remove these, and no others."""
LARGEST = 1 << 24
"""Bytes of the largest file that is read as a cell."""
REPORTS = (*FORMATS, TABLE)
"""The endings of a model's reports: beside the Markdown of many layers lies a table of all."""


class Malformed(Exception):
    """Something is kept of a cell, and cannot be relied on; the message is half a sentence."""


@contextmanager
def hold_alone(folder: Path, names: Sequence[str]) -> Iterator[None]:
    """Hold the folder for a sweep of cells of these names: the system lets go of it when this process ends, however it does.

    Raises UsageError where another sweep holds it, and where files cannot be written there.
    """
    try:
        lock = _lock(folder)
        try:
            _clear(folder, names)
        except BaseException:
            os.close(lock)
            raise
    except OSError as error:
        raise _cannot(folder, error) from error
    try:
        yield
    finally:
        os.close(lock)


def find(folder: Path, name: str, key: str) -> Mapping[str, Any] | None:
    """What is kept of the finished cell of that name and key; None where nothing is, or only that of another key.

    Raises Malformed, saying why, where something is kept and cannot be relied on.
    """
    path = _cell(folder, name)
    try:
        data = _read_cell(path)
        if data["key"] != key:
            return None
        if data.pop("digest") != _digest(data):
            raise Malformed(f"{CELLS}/{path.name} is damaged")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Malformed(f"{CELLS}/{path.name} cannot be read: {error.strerror or type(error).__name__}") from error
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise Malformed(f"{CELLS}/{path.name} is damaged") from error
    for report in (f"{atomic.safe(name)}.{ending}" for ending in data["reports"]):
        if not stat.S_ISREG(_mode(folder / report)):
            raise Malformed(f"its report {report} is missing")
    found: dict[str, Any] = data
    return found


def keep(folder: Path, name: str, key: str, answer: Mapping[str, Any]) -> None:
    """Write the reports, then the cell: where that is, they are. What was not finished leaves no cell."""
    texts = answer["texts"]
    if texts:
        atomic.write(folder, name, texts, by=MARK)
    if "" in answer["outcome"]["refused"]:
        try:
            _cell(folder, name).unlink(missing_ok=True)
        except OSError as error:
            raise _cannot(folder, error) from error
        return
    data = {"key": key, "outcome": answer["outcome"], "cost": answer["cost"], "reports": sorted(texts)}
    data["digest"] = _digest(data)
    atomic.write(folder / CELLS, name, {"json": json.dumps(data, indent=1) + "\n"}, by=MARK)


def _digest(data: Mapping[str, Any]) -> str:
    """The SHA-256 of what is kept: a file of which anything was changed no longer has it."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def write_pages(folder: Path, texts: Mapping[str, str]) -> None:
    """Write the sweep's own files, by their stems (``PAGES``)."""
    for stem, text in texts.items():
        atomic.write(folder, stem, {PAGES[stem]: text}, by=MARK)


def _cell(folder: Path, name: str) -> Path:
    return folder / CELLS / f"{atomic.safe(name)}.json"


def _lock(folder: Path) -> int:
    """The open file by which this process holds the folder. Nothing is written to that file, whatever it is."""
    place = folder / CELLS
    path = place / LOCK
    if place.is_symlink():
        raise _not_ours(place, "a link")
    place.mkdir(parents=True, exist_ok=True)
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _not_ours(path, "a link") from error
        raise
    try:
        if not stat.S_ISREG(os.fstat(lock).st_mode):
            raise _not_ours(path, "not a regular file")
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException as error:
        os.close(lock)
        if isinstance(error, BlockingIOError):
            raise UsageError(
                f"another sweep writes to {folder}: wait for it, or give another folder with --out."
            ) from error
        raise
    return lock


def _clear(folder: Path, names: Iterable[str]) -> None:
    """Take away what a killed sweep was writing. Raises UsageError where a folder has the name of a file to write."""
    stems = [atomic.safe(name) for name in names]
    cells = {f"{stem}.json" for stem in stems}
    beside = {f"{stem}.{ending}" for stem in stems for ending in REPORTS}
    beside |= {f"{stem}.{ending}" for stem, ending in PAGES.items()}
    for place, files in ((folder / CELLS, cells), (folder, beside)):
        for left in atomic.left_by(MARK, place, files):
            left.unlink()
        for file in sorted(files):
            if stat.S_ISDIR(_mode(place / file)):
                raise _not_ours(place / file, "a folder, and the sweep writes a file of that name")


def _cannot(folder: Path, error: OSError) -> UsageError:
    return UsageError(f"cannot write to {folder}: {error.strerror or type(error).__name__}.")


def _not_ours(path: Path, what: str) -> UsageError:
    return UsageError(f"{path} is {what}: remove it, or give another folder with --out.")


def _mode(path: Path) -> int:
    """What stands there itself, links not followed; 0 for nothing."""
    try:
        return path.lstat().st_mode
    except FileNotFoundError:
        return 0


def _read_cell(path: Path) -> Any:
    """The data in a regular file, no larger than a cell can be. Raises Malformed, OSError, and ValueError for no JSON."""
    if not stat.S_ISREG(path.lstat().st_mode):
        raise Malformed(f"{CELLS}/{path.name} is not a regular file")
    with path.open("rb") as file:
        return json.loads(file.read(LARGEST))
