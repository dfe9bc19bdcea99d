"""Temporary folders of runs (``scratch``), and the tool packed into one file there, from which workers start (``pack``).

A folder goes with its run, also if every process of the run is killed: a shell in a session of its own waits for that.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import uuid
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

PREFIX = "reconcile-"
TOOL = "reconcile.pyz"
MAIN = "worker/boot.py"
"""The module that becomes the packed file's ``__main__``."""
REMOVE = """
for again in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  rm -rf -- "$1" && exit
  chmod -R u+rwx -- "$1"
  sleep 0.2
done
"""
"""Removes a folder that other people's code wrote to: closed to its own user, or deeper than Python removes, or still in use."""
AFTER_THIS_PROCESS = "read -r end; sleep 0.2; "
"""Waits in a shell until the process that started it has ended, and its workers with it."""


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A new temporary folder, removed at the end, or by ``remove_if_killed``."""
    folder = Path(tempfile.gettempdir(), PREFIX + uuid.uuid4().hex[:12])
    with remove_if_killed(folder):
        folder.mkdir(0o700)
        try:
            yield folder
        finally:
            try:
                with _start_shell(REMOVE, folder):
                    pass
            except OSError:
                shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def remove_if_killed(folder: Path, pass_fds: Sequence[int] = ()) -> Iterator[None]:
    """Within this context the folder, which need not exist yet, is removed if this process is killed.

    Whoever removes it holds these open files until then, a lock for instance. Without a shell (Windows) the folder stays.
    """
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # no shell, or no further process
            shell = stack.enter_context(_start_shell(AFTER_THIS_PROCESS + REMOVE, folder, pass_fds))
            stack.callback(shell.kill)
        yield


def _start_shell(script: str, folder: Path, pass_fds: Sequence[int] = ()) -> subprocess.Popen[bytes]:
    """Start a shell that gets the folder as ``$1``, prints nothing, and reads what ends with this process."""
    return subprocess.Popen(
        ["/bin/sh", "-c", script, "sh", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        pass_fds=pass_fds,
        cwd="/",
    )


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
