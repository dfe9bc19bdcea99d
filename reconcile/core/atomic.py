"""Writes files atomically (each complete in a temporary file beside its target, then moved onto it), under safe names."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import time
from collections.abc import Container, Mapping
from contextlib import suppress
from pathlib import Path

from .errors import UsageError, brief, reason

PART = 1 << 20
LONGEST = 100
"""Bytes of a file name, without the suffix for its format and the marker of a temporary file."""
DIGITS = 12
"""Hexadecimal digits of the hash in a name."""
LEFT = 3600.0
"""Seconds after which a temporary file counts as left behind: nobody writes it any more."""


def prepare(folder: Path) -> None:
    """Check that the folder can be written to, or created. Raises UsageError; leaves nothing behind."""
    try:
        nearest = folder.absolute()
        while not _there(nearest) and nearest != nearest.parent:
            nearest = nearest.parent
        probe = _beside(nearest / "probe")
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError as error:
        raise _refuse_folder(folder, error) from error


def _there(path: Path) -> bool:
    """Whether anything exists at this path, including a broken link. Raises OSError for an impossible path."""
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    return True


def write(folder: Path, stem: str, texts: Mapping[str, str | bytes], by: str = "") -> list[Path]:
    """Write ``<stem>.<format>`` files and return their paths. An interruption leaves every file either as it was or complete.

    If the process is killed, temporary files may remain. A later call without ``by`` removes old ones of the same files;
    ``left_by`` finds those with the word ``by`` in their names. Raises UsageError if the folder cannot be written to.
    """
    targets = {folder / f"{safe(stem)}.{name}": text for name, text in texts.items()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with suppress(OSError):
            for left in () if by else left_by("", folder, {target.name for target in targets}):
                if left.stat().st_mtime < time.time() - LEFT:
                    left.unlink()
        _place(targets, by)
    except OSError as error:
        raise _refuse_folder(folder, error) from error
    return list(targets)


def write_file(file: Path, text: str, *, new: bool = False) -> Path:
    """Write one file atomically; with ``new``, only if it does not exist.

    Raises UsageError if it cannot be written, FileExistsError if ``new`` and it exists.
    """
    try:
        _place({file: text}, new=new)
    except FileExistsError:
        raise
    except OSError as error:
        raise UsageError(f"cannot write {brief(file)}: {reason(error)}.") from error
    return file


def left_by(by: str, folder: Path, names: Container[str]) -> list[Path]:
    """Temporary files in a folder that ``write`` made with the word ``by``, or none, for files of these names."""
    ours = re.compile(rf"\.(.+)\.{by and by + '-'}[0-9a-f]{{8}}\.tmp")
    with os.scandir(folder) as entries:
        files = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
    return [folder / name for name in files if (match := ours.fullmatch(name)) and match[1] in names]


def _place(targets: Mapping[Path, str | bytes], by: str = "", new: bool = False) -> None:
    waiting: dict[Path, Path] = {}
    try:
        for target, text in targets.items():
            waiting[target] = _beside(target, by)
            with waiting[target].open("xb") as file:
                for start in range(0, len(text), PART):  # encoding the whole text at once would double the memory
                    part = text[start : start + PART]
                    file.write(part if isinstance(part, bytes) else part.encode("utf-8", "backslashreplace"))
                file.flush()
                os.fsync(file.fileno())
        for target, temporary in waiting.items():
            _link(temporary, target) if new else temporary.replace(target)
    finally:
        for temporary in waiting.values():
            temporary.unlink(missing_ok=True)


def safe(name: str) -> str:
    """A model's name as a file name: no separators, not hidden, not empty, not too long for a file system.

    A name that has to change gets a hash of the original, so that different names give different files.
    """
    kept = re.sub(r"[^\w.+=@-]", "_", name).lstrip(".").encode()[:LONGEST].decode(errors="ignore")
    if name and kept == name:
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]
    return f"{kept.encode()[: LONGEST - DIGITS - 1].decode(errors='ignore') or 'model'}-{digest}"


def _link(waiting: Path, target: Path) -> None:
    """Move the file onto its target unless that exists; without hard links, check first and then move."""
    try:
        target.hardlink_to(waiting)
    except FileExistsError:
        raise
    except OSError:
        if os.path.lexists(target):
            raise FileExistsError(target) from None
        waiting.replace(target)


def _beside(target: Path, by: str = "") -> Path:
    return target.with_name(f".{target.name}.{by and by + '-'}{secrets.token_hex(4)}.tmp")


def _refuse_folder(folder: Path, error: OSError) -> UsageError:
    return UsageError(f"cannot write reports to {brief(folder)}: {reason(error)}. Choose another folder with --out.")
