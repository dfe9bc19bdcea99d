"""Reading of users' text, TOML and JSON files, within limits on size, nesting and digits; any fault is one sentence."""

from __future__ import annotations

import errno
import json
import os
import stat
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from .errors import UsageError, brief, reason, short

MAX_FILE_BYTES = 1 << 28
"""Bytes of the largest file that is read: 256 MiB."""
MAX_DEPTH = 64
"""The deepest nesting of lists and tables allowed."""
MAX_DIGITS = 100
"""The most digits of a whole number: 2^80 has 25, and Python prints no more than 4,300."""

_MAX_NUMBER: int = 10**MAX_DIGITS
NESTED_TOO_DEEP = f"lists and tables are nested more than {MAX_DEPTH} levels deep"
TOO_MANY_DIGITS = f"a number has more than {MAX_DIGITS} digits"


class Unsound(ValueError):
    """Data that reconcile rejects in any file (no JSON, nested too deeply, a number too long); the message is half a sentence."""


def read_text_file(path: Path, label: str) -> str:
    """The file's text, with or without a byte order mark; ``label`` names the file in messages, such as "the mapping file".

    Raises UsageError if it cannot be read, is too large or is not text in UTF-8.
    """
    try:
        found = read_file(path, MAX_FILE_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{label} {brief(path)} is not text in UTF-8.") from error
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL in it
        raise UsageError(f"cannot read {label} {brief(path)}: {reason(error)}.") from error
    if "\0" in found:
        raise UsageError(f"{label} {brief(path)} is not text: it holds zero bytes.")
    return found.replace("\r\n", "\n").replace("\r", "\n")


def read_file(path: Path, largest: int) -> bytes:
    """The content of a file of at most that many bytes. Raises OSError, also as ``check_regular`` does."""
    if check_regular(path) > largest:
        raise OSError(errno.EFBIG, f"it is larger than {largest >> 20:,} MiB", str(path))
    return path.read_bytes()


def check_regular(path: Path) -> int:
    """The size of a file. Raises OSError, as opening it would, if it is missing or not a regular file: opening a pipe would
    block."""
    found = os.stat(path)
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is neither a file nor a folder", str(path))
    return found.st_size


def read_json(path: Path, label: str, remedy: str) -> Any:
    """The data in a JSON file; ``remedy`` says what to do if the file is damaged. Raises UsageError."""
    try:
        return parse_json(read_text_file(path, label))
    except Unsound as error:
        raise UsageError(f"{label} {brief(path)} is damaged: it is not valid JSON ({error}). {remedy}") from error


def parse_json(content: str) -> Any:
    """The data in a JSON text. Raises Unsound for anything that is not JSON or that ``check_sound`` refuses."""
    return _parse(partial(json.loads, object_pairs_hook=_refuse_repeated_keys), content)


def _parse(load: Callable[[str], Any], content: str) -> Any:
    """What ``load`` reads in a text. Raises Unsound for what it cannot read, and as ``check_sound``."""
    try:
        return check_sound(load(content))
    except RecursionError as error:
        raise Unsound(NESTED_TOO_DEEP) from error
    except ValueError as error:  # a plain one: Python refuses to read longer numbers
        raise Unsound(TOO_MANY_DIGITS if type(error) is ValueError else str(error).rstrip(".")) from error


def check_sound(data: Any) -> Any:
    """The given JSON or TOML data. Raises Unsound if it is nested too deeply or has numbers or texts that cannot be printed."""
    level = [data]
    for _ in range(MAX_DEPTH + 1):
        level = [item for value in level for item in _list_items(value)]
        if not level:
            return data
    raise Unsound(NESTED_TOO_DEEP)


def _list_items(value: Any) -> list[Any]:
    """The items of a list, or the keys and values of a table; nothing for any other value."""
    if isinstance(value, dict):
        return [*value, *value.values()]
    if isinstance(value, list):
        return value
    if isinstance(value, int) and not -_MAX_NUMBER < value < _MAX_NUMBER:
        raise Unsound(TOO_MANY_DIGITS)
    if isinstance(value, str) and not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
        raise Unsound("a text contains half a character (a lone surrogate)")
    return []


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise Unsound(f"the key {short(twice)} appears twice in one table")
    return table


def read_toml(path: Path, label: str) -> dict[str, Any]:
    """The file's tables; ``label`` names the file in messages. Raises UsageError if it cannot be read or is not valid TOML."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        data: dict[str, Any] = _parse(tomllib.loads, read_text_file(path, label))
    except Unsound as error:
        raise UsageError(f"{label} {path} is not valid TOML: {error}.") from error
    return data
