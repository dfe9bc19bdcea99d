"""What a case may not do: write outside its folder, start or connect to anything, run code that is in no module.

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
TOUCHES = {
    "os.chmod": ((0, 2),), "os.chown": ((0, 3),), "os.link": ((1, 3),), "os.mkdir": ((0, 2),), "os.remove": ((0, 1),),
    "os.rename": ((0, 2), (1, 3)), "os.rmdir": ((0, 1),), "os.symlink": ((1, 2),), "os.truncate": ((0, None),),
    "os.utime": ((0, 3),), "os.setxattr": ((0, None),), "os.removexattr": ((0, None),),
}  # fmt: skip
"""Events that change something: which of their arguments is a path, and which is the open folder that it begins in."""

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
DEVICES = (os.devnull, "/dev/tty")
MAKERS = ("dataclasses.py", "collections/__init__.py", "typing.py", "enum.py", "namedtuple", "attr/_make.py")
"""Modules that write code themselves: a dataclass' methods, a named tuple's."""


class Audit:
    """Hears everything from the first use on; notes what is forbidden while a case runs."""

    def __init__(self) -> None:
        self.folder: str | None = None
        self.heard: list[str] = []
        self.known = (str(ROOT), sys.prefix, *sysconfig.get_paths().values(), *site.getsitepackages())
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
            pairs = [(arguments[path], -1 if at is None else arguments[at]) for path, at in TOUCHES[event]]
            if any(self._outside(path, at) for path, at in pairs):
                self.heard.append(f"{event} {arguments!r}"[:200])
        elif event == "exec" and not self._ours(arguments[0]):
            self.heard.append(f"runs code of {arguments[0].co_filename!r}")

    def _outside(self, path: Any, folder: int = -1) -> bool:
        if isinstance(path, int) or path is None:
            return False
        try:
            base = os.readlink(f"/proc/self/fd/{folder}") if folder >= 0 else os.getcwd()
        except OSError:  # a folder that is gone, or a system without /proc
            base = str(self.folder)
        name = os.path.realpath(os.path.join(base, os.fsdecode(path)))
        return name not in DEVICES and not (name + os.sep).startswith(f"{self.folder}{os.sep}")

    def _ours(self, code: Any) -> bool:
        """Whether this is a module's code, made by a module that makes code, or a file in the case's own folder."""
        name = code.co_filename
        if name.startswith(("<frozen", *self.known, f"{self.folder}{os.sep}")):
            return True
        frame = sys._getframe(2)
        return frame.f_code.co_filename.endswith(MAKERS)
