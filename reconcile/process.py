"""One framework's worker process under supervision: time limits, crashes and memory kills fail a task, not the run."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import UsageError
from .interpreters import clean_environ
from .records import Ledger, Trace, from_json
from .worker import TRACE

FIRST = "import sys; sys.path[:] = [sys.argv[1]] + [p for p in sys.path if p]; "
"""Puts this very package first, whichever is installed there, and keeps the working directory off the import path: a
file named torch.py there must not become PyTorch."""

BOOT = FIRST + "from {package}.worker import main; sys.exit(main(sys.argv[2]))"

PRIVATE = "_reconcile_worker"
"""This package's name beside code of the user's, who may have a module ``reconcile`` of their own."""

POLL = 0.02

LOGS: str | None = None
"""Folder where the log of a refused model is kept; none means the system's folder for temporary files."""


@dataclass(frozen=True, slots=True)
class Event:
    """Progress: phase is loading, started, done or failed."""

    framework: str
    task: str
    phase: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one task: a record, or why there is none (and the package that is missing, if that is why)."""

    record: Trace | Ledger | None
    reason: str = ""
    missing: str = ""


class Supervisor:
    """Runs tasks in a worker process; starts another for the rest when one dies. ``meta`` is set once it is known."""

    def __init__(
        self,
        framework: str,
        request: dict[str, Any],
        tasks: Sequence[str],
        folder: Path,
        timeout: float,
        progress: Callable[[Event], None],
        python: str = sys.executable,
    ) -> None:
        self.framework = framework
        self.request = request
        self.tasks = list(tasks)
        self.folder = folder
        self.timeout = timeout
        self.progress = progress
        self.python = python
        self.meta: dict[str, Any] | None = None
        self._stopped = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None

    def stop(self) -> None:
        """End the worker and run nothing more."""
        self._stopped.set()
        self._kill()

    def run(self) -> dict[str, Outcome]:
        """Outcomes of all tasks. Raises UsageError if the pair cannot be used as asked."""
        done: dict[str, Outcome] = {}
        round_ = 0
        while len(done) < len(self.tasks) and not self._stopped.is_set():
            folder = self.folder / str(round_)
            folder.mkdir(parents=True)
            rest = [t for t in self.tasks if t not in done]
            done.update(self._round(folder, rest))
            round_ += 1
        return done

    def _round(self, folder: Path, tasks: list[str]) -> dict[str, Outcome]:
        """One process: as many tasks as it gets through. At least one outcome comes back."""
        with self._start(folder, tasks) as self._process:
            return self._watch(self._process, folder, tasks)

    def _watch(self, process: subprocess.Popen[bytes], folder: Path, tasks: list[str]) -> dict[str, Outcome]:
        current, since = "", time.monotonic()
        seen = 0
        reason = ""
        while True:
            ended = process.poll() is not None
            events = _events(folder, seen)
            seen += len(events)
            for event in events:
                current, since = (event.task if event.phase == "started" else current), time.monotonic()
                self.progress(Event(self.framework, event.task, event.phase))
            self._read_meta(folder)
            if ended:
                self._kill_rest(process)
                self._read_refusal(folder)
                break
            if self._stopped.is_set():
                self._kill()
                break
            if time.monotonic() - since > self.timeout:
                reason = f"ran into the time limit of {self.timeout:g} s"
                self._kill()
                break
            time.sleep(POLL)
        status = process.wait()
        if not self.tasks:
            return {}
        done = {t: o for t in tasks if (o := _outcome(folder, t)) is not None}
        if status and not done and tasks[0] == TRACE:
            self._blame_file(reason or _death(status, folder))
        if len(done) < len(tasks):
            stuck = current if current and current not in done else next(t for t in tasks if t not in done)
            done[stuck] = Outcome(None, reason or _death(status, folder))
            self.progress(Event(self.framework, stuck, "failed"))
        return done

    def _start(self, folder: Path, tasks: list[str]) -> subprocess.Popen[bytes]:
        package = Path(__file__).resolve().parent
        library = folder / "lib"
        library.mkdir()
        name = PRIVATE if "factories" in self.request else "reconcile"
        for link in {"reconcile", name}:
            (library / link).symlink_to(package, target_is_directory=True)
        request = folder / "request.json"
        request.write_text(json.dumps({**self.request, "tasks": tasks, "out": str(folder)}), encoding="utf-8")
        with (folder / "worker.log").open("wb") as log:
            return subprocess.Popen(
                [self.python, "-c", BOOT.format(package=name), str(library), str(request)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=None if self.python == sys.executable else clean_environ(),
            )

    def _read_meta(self, folder: Path) -> None:
        path = folder / "meta.json"
        if self.meta is None and path.exists():
            meta = json.loads(path.read_text(encoding="utf-8"))
            if "error" in meta:
                self._kill()
                raise UsageError(meta["error"])
            self.meta = meta
            if self.framework not in meta["frameworks"]:
                self.tasks = []
                self._kill()

    def _read_refusal(self, folder: Path) -> None:
        """Raise UsageError if the user's own code cannot be used, and keep what it printed."""
        path = folder / "refused.json"
        if path.exists():
            said = json.loads(path.read_text(encoding="utf-8"))["error"]
            handle, log = tempfile.mkstemp(prefix="reconcile-", suffix=".log", dir=LOGS)
            os.close(handle)
            shutil.copyfile(folder / "worker.log", log)
            raise UsageError(f"{said} The full log is in {log}.")

    def _blame_file(self, reason: str) -> None:
        """Raise UsageError where a worker died of the model file that it was to load: what it may use up is limited."""
        if self.framework in self.request.get("files", {}) and not self._stopped.is_set():
            raise UsageError(f"{self.request['factories'][self.framework]} cannot be loaded: {reason}.")

    def _kill_rest(self, process: subprocess.Popen[bytes]) -> None:
        """End what the worker's code has started and left running: it is in the worker's process group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)

    def _kill(self) -> None:
        process = self._process
        if process is not None and process.poll() is None:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                return
            process.wait()


def _events(folder: Path, seen: int) -> list[Event]:
    path = folder / "events.jsonl"
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    return [Event("", data["task"], data["phase"]) for data in map(json.loads, lines[seen:])]


def _outcome(folder: Path, task: str) -> Outcome | None:
    path = folder / f"{task}.json"
    if path.exists():
        return Outcome(from_json(path.read_text(encoding="utf-8")))
    failed = folder / f"{task}.error.json"
    if failed.exists():
        data = json.loads(failed.read_text(encoding="utf-8"))
        return Outcome(None, data["reason"], data["missing"])
    return None


def _death(status: int, folder: Path) -> str:
    """One sentence on how a worker ended without an answer, with its last line of output."""
    log = (folder / "worker.log").read_text(encoding="utf-8", errors="replace").strip().splitlines()
    last = f"; its last words: {log[-1][:200]}" if log else ""
    if status == -signal.SIGKILL:
        return f"its process was killed (signal 9: out of memory?){last}"
    if status < 0:
        return f"its process died of signal {-status} ({signal.Signals(-status).name}){last}"
    return f"its process ended with status {status} before it was done{last}"
