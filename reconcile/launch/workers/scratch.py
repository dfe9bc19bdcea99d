"""Temporary folders of runs (``scratch``), and the tool packed into one file there, from which workers start (``pack``).

A folder that a run left because all its processes were killed is removed by the next run: a file lock, which the system frees
when the process that holds it ends, says whether a folder is in use.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
import tempfile
import uuid
import zipfile
from collections.abc import Iterator
from pathlib import Path

if sys.platform != "win32":
    import fcntl

PREFIX = "reconcile-"
HELD = ".held"
"""The file in a folder whose lock its process holds."""
TOOL = "reconcile.pyz"
MAIN = "worker/boot.py"
"""The module that becomes the packed file's ``__main__``."""


@contextlib.contextmanager
def scratch(prefix: str = PREFIX) -> Iterator[Path]:
    """A new temporary folder, removed at the end. Folders that killed runs have left are removed first."""
    clear(Path(tempfile.gettempdir()))
    made = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        with hold_folder(made):
            yield made
    finally:
        remove_folder(made)


@contextlib.contextmanager
def hold_folder(folder: Path) -> Iterator[None]:
    """Within this context, no other process removes the folder; if this process is killed first, the next run does."""
    with (folder / f"{HELD}.part").open("wb") as file:
        if sys.platform != "win32":
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                Path(file.name).replace(folder / HELD)
        yield


def clear(root: Path) -> None:
    """Remove the folders in ``root`` that this user's runs have left and no process holds."""
    if sys.platform == "win32":
        return
    with contextlib.suppress(OSError), os.scandir(root) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                if entry.name.startswith(PREFIX) and _is_left(entry):
                    remove_folder(entry.path)


def remove_folder(root: str | os.PathLike[str]) -> None:
    """Remove a folder that other people's code wrote to: it may be deeper than Python removes, and closed to its own user."""
    with contextlib.suppress(RecursionError):
        shutil.rmtree(root, ignore_errors=True)
    folders = [os.fspath(root)]
    for folder in folders:
        with contextlib.suppress(OSError):
            os.chmod(folder, stat.S_IRWXU)
            for entry in list(os.scandir(folder)):
                if entry.is_dir(follow_symlinks=False):
                    os.chmod(entry.path, stat.S_IRWXU)
                    folders.append(os.path.join(root, uuid.uuid4().hex))
                    os.rename(entry.path, folders[-1])
    shutil.rmtree(root, ignore_errors=True)


def _is_left(entry: os.DirEntry[str]) -> bool:
    if not entry.is_dir(follow_symlinks=False) or entry.stat(follow_symlinks=False).st_uid != os.getuid():
        return False
    with open(os.path.join(entry.path, HELD), "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return True


def pack(folder: Path) -> Path:
    """Write the tool into ``folder`` as one file that any Python can run, also where nothing may be installed.

    It has every module of the package, adapters and zoo included, as source, and the tables that modules read (.jsonl). It
    contains no bytecode, so it is the same for every version of Python.
    """
    package = Path(__file__).resolve().parents[2]
    path = folder / TOOL
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("__main__.py", (package / MAIN).read_bytes())
        for parent, folders, names in os.walk(package, followlinks=True):
            folders[:] = sorted(name for name in folders if name != "__pycache__")
            for name in sorted(names):
                if name.endswith((".py", ".jsonl")):
                    module = Path(parent, name)
                    file.writestr(f"reconcile/{module.relative_to(package).as_posix()}", module.read_bytes())
    return path
