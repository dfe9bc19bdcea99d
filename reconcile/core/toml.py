"""Reading a TOML file from a user."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from . import user_files
from .errors import UsageError


def read(path: Path, label: str) -> dict[str, Any]:
    """The file's tables; ``label`` names the file in messages. Raises UsageError if it cannot be read or is not valid TOML."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    content = user_files.text(path, label)
    try:
        data: dict[str, Any] = user_files.sound(tomllib.loads(content))
    except (tomllib.TOMLDecodeError, user_files.Unsound) as error:
        raise UsageError(f"{label} {path} is not valid TOML: {str(error).rstrip('.')}.") from error
    except RecursionError as error:
        raise UsageError(f"{label} {path} is not valid TOML: {user_files.DEEPER}.") from error
    except ValueError as error:  # Python refuses to read longer numbers
        raise UsageError(f"{label} {path} is not valid TOML: {user_files.LONGER}.") from error
    return data
