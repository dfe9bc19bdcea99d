"""Reading a text file that somebody gave: what is no file is refused before it is opened, where a pipe would wait for ever."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from .errors import UsageError, reason, short


def regular(path: Path) -> None:
    """Raise OSError, as opening it would, for what is not there, and for what is no file."""
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is neither a file nor a folder", str(path))


def text(path: Path, what: str, encoding: str = "utf-8") -> str:
    """The file's text; ``what`` is the file in words. Raises UsageError where it cannot be read, or is not UTF-8."""
    try:
        regular(path)
        return path.read_text(encoding=encoding)
    except UnicodeDecodeError as error:
        raise UsageError(f"{what} {short(path)} is not text in UTF-8.") from error
    except (OSError, ValueError) as error:  # ValueError: a path with a zero byte
        raise UsageError(f"cannot read {what} {short(path)}: {reason(error)}.") from error
