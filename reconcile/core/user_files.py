"""Files that users hand in, read in one place: text, and JSON that is checked before anything works with it."""

from __future__ import annotations

import errno
import io
import json
import os
import stat
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

from .errors import UsageError, brief, reason, short

PART = 1 << 20
PARTS = 1 << 10
"""A file is read in parts of ``PART`` bytes, up to ``PARTS`` of them: 1 GiB."""
DEEP = 64
"""So many lists and tables may stand inside each other."""
DIGITS = 100
"""A whole number has at most so many: 2^80 has 25, and Python prints no more than 4,300."""

_LARGEST: int = 10**DIGITS
DEEPER = f"more than {DEEP} lists and tables stand inside each other"
LONGER = f"a number has more than {DIGITS} digits"


class Unsound(ValueError):
    """Data that cannot be used, whatever it is for; the message is half a sentence."""


def text(path: Path, what: str) -> str:
    """The file's text, with a byte order mark or without; ``what`` is the file in words, such as "the mapping file".

    Raises UsageError where it cannot be read, is too large or is not text in UTF-8.
    """
    try:
        regular(path)
        with path.open("rb") as file:
            parts = list(islice(iter(lambda: file.read(PART), b""), PARTS + 1))
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL in it
        raise UsageError(f"cannot read {what} {brief(path)}: {reason(error)}.") from error
    if len(parts) > PARTS:
        raise UsageError(f"{what} {brief(path)} is too large: reconcile reads up to {PART * PARTS >> 30} GiB.")
    try:
        return io.StringIO(b"".join(parts).decode("utf-8-sig"), newline=None).getvalue()
    except UnicodeDecodeError as error:
        raise UsageError(f"{what} {brief(path)} is not text in UTF-8.") from error


def regular(path: Path) -> None:
    """Raise OSError, as opening it would, for what is not there, and for what is no file: a pipe would be waited for."""
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is neither a file nor a folder", str(path))


def there(path: Path) -> bool:
    """Whether there is anything by that name, also where it cannot be read: reading it says why."""
    try:
        os.stat(path)
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return True
    return True


def read_json(path: Path, what: str, remedy: str) -> Any:
    """What the JSON file says; ``remedy`` is the sentence on what to do where it is damaged. Raises UsageError."""
    try:
        return parse_json(text(path, what))
    except Unsound as error:
        raise UsageError(f"{what} {brief(path)} is damaged: it is not valid JSON ({error}). {remedy}") from error


def parse_json(said: str) -> Any:
    """The data in a JSON text. Raises Unsound for anything that is not JSON or that ``sound`` refuses."""
    try:
        data = json.loads(said, object_pairs_hook=_table)
    except (Unsound, json.JSONDecodeError) as error:
        raise Unsound(str(error)) from error
    except RecursionError as error:
        raise Unsound(DEEPER) from error
    except ValueError as error:  # Python refuses to read longer numbers
        raise Unsound(LONGER) from error
    return sound(data)


def sound(data: Any) -> Any:
    """The data itself, of JSON or TOML. Raises Unsound where it is too deep, and for numbers and texts that cannot be printed."""
    level = [data]
    for _ in range(DEEP + 1):
        level = [item for value in level for item in _inside(value)]
        if not level:
            return data
    raise Unsound(DEEPER)


def _inside(value: Any) -> list[Any]:
    """What stands in a list or table; nothing for any other value."""
    if isinstance(value, dict):
        return [*value, *value.values()]
    if isinstance(value, list):
        return value
    if isinstance(value, int) and not -_LARGEST < value < _LARGEST:
        raise Unsound(LONGER)
    if isinstance(value, str) and not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
        raise Unsound("a text has half a character (a lone surrogate)")
    return []


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise Unsound(f"{short(twice)} is there twice in one table")
    return table
