"""What a case may not do: write outside its folder, start or connect to anything, run code that is nobody's module.

The interpreter's audit events (PEP 578) tell of each, whatever raised or swallowed an exception afterwards.  What a framework's
own C++ does has no such event: for that, the working folder of a case is an empty one, and has to stay so.
"""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

STARTS = (
    "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.startfile", "os.system", "subprocess.Popen",
    "pty.spawn", "socket.bind", "socket.connect", "socket.sendmsg", "socket.sendto", "ctypes.dlopen", "pickle.find_class",
)  # fmt: skip
TOUCHES = (
    "os.chmod", "os.chown", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.setxattr", "os.symlink",
    "os.truncate", "os.utime", "shutil.rmtree", "shutil.move", "shutil.copyfile", "tempfile.mkdtemp", "tempfile.mkstemp",
)  # fmt: skip
"""Events whose first argument, and for some the second, is a path."""

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
DEVICES = (os.devnull, "/dev/tty")
MAKERS = ("dataclasses.py", "collections/__init__.py", "typing.py", "enum.py", "namedtuple", "attr/_make.py")
"""Modules that write code themselves: a dataclass' methods, a named tuple's."""


class Audit:
    """Hears everything from the first use on; notes what is forbidden while a case runs."""

    def __init__(self) -> None:
        self.folder: str | None = None
        self.heard: list[str] = []
        self.known = tuple(
            str(path)
            for path in {ROOT, *map(Path, sysconfig.get_paths().values()), *map(Path, site.getsitepackages()), Path(sys.prefix)}
        )
        sys.addaudithook(self._hear)

    @contextmanager
    def watching(self, folder: Path) -> Iterator[None]:
        """Note what a case does that may write below ``folder`` alone."""
        self.heard, self.folder = [], os.path.realpath(folder)
        try:
            yield
        finally:
            self.folder = None

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.folder is None:
            return
        if event in STARTS:
            self.heard.append(f"{event} {arguments[:2]!r}"[:200])
        elif event == "open":
            path, mode, flags = arguments
            writes = (isinstance(mode, str) and set(mode) & set("wax+")) or (isinstance(flags, int) and flags & WRITES)
            if writes and not isinstance(path, int) and self._outside(path):
                self.heard.append(f"opens {path!r} to write")
        elif event in TOUCHES:
            paths = arguments[:2] if event in ("os.rename", "os.link", "os.symlink", "shutil.move") else arguments[:1]
            if any(self._outside(path) for path in paths):
                self.heard.append(f"{event} {arguments!r}"[:200])
        elif event == "exec" and not self._ours(arguments[0]):
            self.heard.append(f"runs code of {arguments[0].co_filename!r}")

    def _outside(self, path: Any) -> bool:
        if isinstance(path, int) or path is None:
            return False
        name = os.path.realpath(os.fsdecode(path))
        return name not in DEVICES and not (name + os.sep).startswith(f"{self.folder}{os.sep}")

    def _ours(self, code: Any) -> bool:
        """Whether this is a module's code, made by a module that makes code, or a file in the case's own folder."""
        name = code.co_filename
        if name.startswith(("<frozen", *self.known, f"{self.folder}{os.sep}")):
            return True
        frame = sys._getframe(2)
        return frame.f_code.co_filename.endswith(MAKERS)
