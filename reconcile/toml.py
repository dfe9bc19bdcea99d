"""Reading a TOML file that somebody gave."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from . import reading
from .errors import UsageError


def read(path: Path, what: str) -> dict[str, Any]:
    """The file's tables; ``what`` is the file in words. Raises UsageError where it cannot be read or is no TOML."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        data: dict[str, Any] = tomllib.loads(reading.text(path, what))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{what} {path} is not valid TOML: {error}.") from error
    return data
