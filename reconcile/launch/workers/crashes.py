"""Error messages about a worker process that died: its signal or exit status, its line of user code, and its last output."""

from __future__ import annotations

import os
import re
import shutil
import signal
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ...core.errors import Refused
from ...core.user_files import check_regular
from ...worker.import_path import is_user_file

END = 1 << 20
"""Bytes at the end of a log in which to look for how a process ended."""

PRINTED = 1 << 14
"""Bytes from the end of a refused model's log that are shown with the refusal."""

STACK = re.compile(r'^  File "(.+)", line (\d+) in ', re.MULTILINE)
"""A line of the stacks that Python writes when it crashes."""

LOGS: str | None = None
"""Folder in which the log of a refused model is kept; None for the system's folder for temporary files."""


def death_of(status: int) -> str:
    """How a worker's process of this status ended, as a predicate for a sentence: ``was killed (...)``."""
    if status == -signal.SIGKILL:
        return "was killed (signal 9: out of memory?)"
    if status < 0:
        names = [f" ({number.name})" for number in signal.Signals if number == -status]
        return f"died of signal {-status}{''.join(names)}"
    return f"ended with status {status} before it was done"


def refuse_model(sentence: str, folder: Path, declined: str = "") -> Refused:
    """The exception for a model that the user gave. What their code printed is kept for them. ``declined``: see Refused."""
    written = folder / "worker.log"
    printed = _read_end(written, PRINTED)
    if not printed:
        return Refused(sentence, declined)
    try:
        handle, log = tempfile.mkstemp(prefix="reconcile-", suffix=".log", dir=LOGS)
        os.close(handle)
        shutil.move(written, log)
    except OSError:  # without room for the log, the sentence must do
        return Refused(sentence, declined)
    return Refused(sentence, declined, printed, log)


def _read_end(path: Path, length: int) -> str:
    """The end of a log; '' if the model's own code has removed it, or put something else in its place."""
    try:
        start = max(0, check_regular(path) - length)
        with path.open("rb") as file:
            file.seek(start)
            return file.read(length).decode("utf-8", errors="replace")
    except OSError:
        return ""


@dataclass(frozen=True, slots=True)
class Log:
    """The end of a worker according to its log: `` (net.py, line 12)`` and ``; its last words: ...``, or ''."""

    location: str
    last_words: str

    @classmethod
    def read(cls, folder: Path, late: bool) -> Log:
        """Read a log. The thread that crashed writes its stack first; in a hang the main thread matters, which is last."""
        text = _read_end(folder / "worker.log", END)
        output, _, stacks = text.partition("Fatal Python error: ")
        threads = stacks.split("\n\n")
        frames = [f for t in (reversed(threads) if late else threads) for f in STACK.findall(t)]
        folder_of_user = os.getcwd()
        innermost = next(((f, n) for f, n in frames if is_user_file(f, folder_of_user)), None)
        lines = output.strip().splitlines()
        return cls(
            f" ({os.path.relpath(innermost[0], folder_of_user)}, line {innermost[1]})" if innermost else "",
            f"; its last words: {lines[-1][:200]}" if lines and not late else "",
        )
