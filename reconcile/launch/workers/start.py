"""How home starts, ends and calls processes: each below a reaper, so that it ends with home, with all that it started."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from . import reaper

CLEARING = 2 * reaper.PATIENCE
"""Seconds that the reaper gets to end a process and all that it has started."""
PRINTED = 1 << 24
"""Bytes of what a program printed that are read, from the end."""
CALLED: set[subprocess.Popen[bytes]] = set()
"""The programs that ``call_program`` waits for in this process, in any thread."""


def start_process(
    command: Sequence[str],
    folder: Path | None = None,
    confinement: Any = None,
    readable: Sequence[str] = (),
    accelerators: bool = False,
    stdin: int | None = None,
    pass_fds: Sequence[int] = (),
    **how: Any,
) -> subprocess.Popen[bytes]:
    """Start a process; ``how`` is what Popen takes.

    ``stdin`` is the number of what it reads; without one it gets a pipe that ends with home. For the rest see ``reaper.command``.
    """
    line = reaper.command(command, folder, confinement, readable, accelerators, stdin)
    passed = [*pass_fds, *([] if stdin is None else [stdin])]
    return subprocess.Popen(line, stdin=subprocess.PIPE, start_new_session=True, pass_fds=passed, **how)


def end_process(process: Any) -> None:
    """Have its reaper end it and all that it has started: a Popen, or a forked worker, which behaves as one."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(CLEARING)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def end_afterwards(process: Any) -> Iterator[None]:
    """Within this context the process runs; afterwards it has ended, however the context was left."""
    with process:
        try:
            yield
        finally:
            end_process(process)


def call_program(
    command: Sequence[str], limit: float, *, env: Mapping[str, str], **how: Any
) -> subprocess.CompletedProcess[str]:
    """What a program that reads nothing printed, and its status. Raises subprocess.TimeoutExpired after ``limit`` seconds."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, open(os.devnull, "rb") as nothing:
        process = start_process(command, stdin=nothing.fileno(), stdout=out, stderr=err, env=env, **how)
        CALLED.add(process)
        try:
            with end_afterwards(process):
                status = process.wait(limit)
        finally:
            CALLED.discard(process)
        return subprocess.CompletedProcess(command, status, _read_end(out), _read_end(err))


def _read_end(file: IO[bytes]) -> str:
    file.seek(max(0, file.seek(0, os.SEEK_END) - PRINTED))
    return file.read().decode("utf-8", errors="replace")
