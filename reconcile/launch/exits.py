"""How a worker's process ends: what is said of it, what its log tells, and what it leaves behind."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import Refused
from ..worker.import_path import is_theirs

MARK = "RECONCILE_WORKER"
"""Variable by whose value the processes that a worker has started are known, wherever they went."""

END = 1 << 20
"""Bytes at the end of a log in which to look for how a process ended."""

PRINTED = 1 << 14
"""Bytes at the end of a refused model's log that go with the refusal."""

STACK = re.compile(r'^  File "(.+)", line (\d+) in ', re.MULTILINE)
"""A line of the stacks that Python writes when it crashes."""

LOGS: str | None = None
"""Folder where the log of a refused model is kept; none means the system's folder for temporary files."""


def death_of(status: int) -> str:
    """How a worker's process ended without an answer."""
    if status == -signal.SIGKILL:
        return "was killed (signal 9: out of memory?)"
    if status < 0:
        names = [f" ({known.name})" for known in signal.Signals if known == -status]
        return f"died of signal {-status}{''.join(names)}"
    return f"ended with status {status} before it was done"


def refused(sentence: str, folder: Path, declined: str = "") -> Refused:
    """The error for what the user gave; what their code printed is kept for them. ``declined``: see Refused."""
    if not (folder / "worker.log").stat().st_size:
        return Refused(sentence, declined)
    try:
        handle, log = tempfile.mkstemp(prefix="reconcile-", suffix=".log", dir=LOGS)
        os.close(handle)
        shutil.copyfile(folder / "worker.log", log)
        printed = Path(log).read_bytes()[-PRINTED:].decode("utf-8", errors="replace")
    except OSError:  # the sentence stands where there is no room for the log
        return Refused(sentence, declined)
    return Refused(sentence, declined, printed, log)


@dataclass(frozen=True, slots=True)
class Log:
    """What a worker's log says of its end: `` (net.py, line 12)`` and ``; its last words: ...``, or nothing."""

    place: str
    last_words: str

    @classmethod
    def read(cls, folder: Path, late: bool) -> Log:
        """A crash has written the stack of its own thread first; the main thread, which a hang is about, comes last."""
        with (folder / "worker.log").open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - END))
            text = file.read().decode("utf-8", errors="replace")
        said, _, stacks = text.partition("Fatal Python error: ")
        threads = stacks.split("\n\n")
        frames = [f for t in (reversed(threads) if late else threads) for f in STACK.findall(t)]
        here = os.getcwd()
        mine = next(((f, n) for f, n in frames if is_theirs(f, here)), None)
        lines = said.strip().splitlines()
        return cls(
            f" ({os.path.relpath(mine[0], here)}, line {mine[1]})" if mine else "",
            f"; its last words: {lines[-1][:200]}" if lines and not late else "",
        )


def sweep(mark: str) -> None:
    """End what a worker's code has started and that has left its process group, where the system lists processes."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if f"{MARK}={mark}".encode() in path.read_bytes().split(b"\0"):
                os.kill(int(path.parent.name), signal.SIGKILL)
