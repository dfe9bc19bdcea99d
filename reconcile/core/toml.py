"""Reading a TOML file that somebody gave."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from . import user_files
from .errors import UsageError


def read(path: Path, what: str) -> dict[str, Any]:
    """The file's tables; ``what`` is the file in words. Raises UsageError where it cannot be read or is no TOML."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    said = user_files.text(path, what)
    try:
        data: dict[str, Any] = user_files.sound(tomllib.loads(said))
    except (tomllib.TOMLDecodeError, user_files.Unsound) as error:
        raise UsageError(f"{what} {path} is not valid TOML: {str(error).rstrip('.')}.") from error
    except RecursionError as error:
        raise UsageError(f"{what} {path} is not valid TOML: {user_files.DEEPER}.") from error
    except ValueError as error:  # Python refuses to read longer numbers
        raise UsageError(f"{what} {path} is not valid TOML: {user_files.LONGER}.") from error
    return data
