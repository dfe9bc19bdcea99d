"""The folders of runs, below the one for temporary files. One that a run left because all its processes were killed is removed
by the next run: a lock in the folder, which ends with the process that holds it, says whether it is in use.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

if sys.platform != "win32":
    import fcntl

PREFIX = "reconcile-"
HELD = ".held"
"""The file in a folder whose lock its process holds."""


@contextlib.contextmanager
def scratch(prefix: str = PREFIX) -> Iterator[Path]:
    """A new folder, removed at the end; and those that others have left are removed now."""
    clear(Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=prefix) as made, held(Path(made)):
        yield Path(made)


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Meanwhile, no other process removes the folder; if this process ends before it is removed, the next run removes it."""
    with (folder / f"{HELD}.part").open("wb") as file:
        if sys.platform != "win32":
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                Path(file.name).replace(folder / HELD)
        yield


def clear(root: Path) -> None:
    """Remove the folders of this user's runs that no process holds."""
    if sys.platform == "win32":
        return
    with contextlib.suppress(OSError), os.scandir(root) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                if entry.name.startswith(PREFIX) and _is_left(entry):
                    shutil.rmtree(entry.path, ignore_errors=True)


def _is_left(entry: os.DirEntry[str]) -> bool:
    if not entry.is_dir(follow_symlinks=False) or entry.stat(follow_symlinks=False).st_uid != os.getuid():
        return False
    with open(os.path.join(entry.path, HELD), "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return True
