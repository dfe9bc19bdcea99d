"""Runs the tasks of a framework in a worker process, which is confined if it loads an untrusted file. A crash, a time limit or an
out-of-memory kill fails one task, and a new process does the rest; a user's own model that causes it is refused."""

from __future__ import annotations

import contextlib
import importlib
import math
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.errors import UsageError
from ...core.framework import absolute
from ...core.protocol import TRACE, WorkerRequest, point_of, to_text
from ..environments.interpreters import Interpreter
from . import reaper, worker_files
from .crashes import Log, death_of, refuse_model
from .reaper import MARK
from .start import CALLED, end_afterwards, end_process, start_process
from .worker_files import Outcome

POLL = 0.02
GRACE = 3.0
"""Seconds that a worker gets after its time limit to write down where it was."""
CACHES = ("XDG_CACHE_HOME", "CUDA_CACHE_PATH", "TRITON_CACHE_DIR")
"""Variables for folders that frameworks write to, beside the one for temporary files. A confined worker gets its own."""
FORKS: list[Callable[[WorkerRequest, Interpreter], Any]] = []
"""What finds the process from whose ``fork`` a worker of a request may come, None for none: a product adds it. What ``fork``
returns has the methods of a Popen."""


@dataclass(frozen=True, slots=True)
class Event:
    """Progress. ``phase`` is loading, started, done or failed; or confined, and then ``task`` says how the worker is confined."""

    framework: str
    task: str
    phase: str


class Supervisor:
    """Runs tasks in a worker process, and starts another for the rest if one dies. ``meta`` is set once it is known.

    With a ``nursery``, which ``FORKS`` finds, the worker is forked from there.  ``variables`` are added to those of its
    environment.
    """

    def __init__(
        self,
        request: WorkerRequest,
        folder: Path,
        timeout: float,
        progress: Callable[[Event], None],
        tool: Path,
        python: Interpreter,
        nursery: Any = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self.framework = request.framework.name
        self.request = request
        self.tasks = list(request.tasks)
        self.folder = folder
        self.timeout = timeout
        self.progress = progress
        self.tool = tool
        self.python = python
        self.nursery = nursery
        self.variables = dict(variables or {})
        self.meta: dict[str, Any] | None = None
        self._is_factory = request.model is not None and request.file is None
        file = request.file
        confined = file is not None and file.confinement and not file.trusted
        self._confinement: Any = importlib.import_module(absolute(file.confinement)) if file and confined else None
        self._trial = ""  # "due" once a process has died with a user's own model in it, "done" after that
        self._succeeded = False
        self._died: tuple[str, ...] = ()  # how each process ended that traced: the next one traces in another way
        self._stopped = threading.Event()
        self._process: Any = None

    def stop(self) -> None:
        """End the worker and run nothing more."""
        self._stopped.set()
        self._kill()

    def run(self) -> dict[str, Outcome]:
        """Outcomes of all tasks. Raises UsageError if the pair cannot be used as asked."""
        done: dict[str, Outcome] = {}
        round_ = 0
        RUNNING.add(self)
        try:
            while len(done) < len(self.tasks) and not self._stopped.is_set():
                folder = self.folder / str(round_)
                folder.mkdir(parents=True)
                rest = [t for t in self.tasks if t not in done]
                done.update(self._round(folder, rest))
                self._succeeded = any(outcome.record is not None for outcome in done.values())
                round_ += 1
        finally:
            RUNNING.discard(self)
        return done

    def _round(self, folder: Path, tasks: list[str]) -> dict[str, Outcome]:
        """Run as many tasks as one process can. Returns at least one outcome, unless a plain call is due."""
        mark = uuid.uuid4().hex
        try:
            self._process = self._start(folder, tasks, mark)
            with end_afterwards(self._process):
                return self._watch(self._process, folder, tasks)
        finally:
            reaper.end_marked(mark)

    def _watch(self, process: Any, folder: Path, tasks: list[str]) -> dict[str, Outcome]:
        current, user_code, since = "", "", time.monotonic()
        events_read = 0
        # of a file's process; its events do not say when it is over, for what is in the file may write them
        latest = since + self._confinement.PATIENCE + self.timeout * len(tasks) if self._confinement else math.inf
        late, due = False, latest
        confinement_told = self._confinement is None
        while True:
            ended = process.poll() is not None
            events = worker_files.events(folder, events_read, tasks)
            events_read += len(events)
            for event in events:
                since = time.monotonic()
                user_code = event.get("theirs", "")
                if "phase" in event:
                    tracing = event["phase"] == "started" and point_of(event["task"])[0] == TRACE
                    due = min(since + self._confinement.PATIENCE, latest) if self._confinement and tracing else latest
                    current = event["task"] if event["phase"] == "started" else current
                    self.progress(Event(self.framework, event["task"], event["phase"]))
            confinement_told = confinement_told or self._read_confined(folder)
            self._read_meta(folder)
            if ended:
                self._read_refusal(folder)
                break
            if self._stopped.is_set():
                self._kill()
                break
            if time.monotonic() > due:
                self._kill()
                self._blame_file(self._confinement.describe_late())
            if self._confinement and self._confinement.is_full(folder):
                self._kill()
                self._blame_file(self._confinement.describe_full())
            if time.monotonic() - since > self.timeout:
                late = True
                self._ask_where(process)
                self._kill()
                break
            time.sleep(POLL)
        status = process.wait()
        if not self.tasks:
            return {}
        self._trial = "done" if self._trial else ""
        if status:
            worker_files.check_room(folder)
        done = {t: o for t in tasks if (o := worker_files.outcome(folder, t)) is not None}
        if status and not done and tasks[0] == TRACE and not self._stopped.is_set():
            self._blame_file(
                f"cannot be loaded: its process {f'ran into the time limit of {self.timeout:g} s' if late else death_of(status)}."
            )
        if len(done) < len(tasks) and not self._stopped.is_set():
            death = f"its process {f'ran into the time limit of {self.timeout:g} s' if late else death_of(status)}"
            log = Log.read(folder, late)
            if user_code and not (current and (self._succeeded or any(o.record is not None for o in done.values()))):
                longer = "; --timeout SECONDS gives it more time" if late else ""
                raise refuse_model(f"{user_code.rstrip(',')}: {death}{log.location}{longer}.", folder)
            self._trial = self._trial or ("due" if self._is_factory and not user_code else "")
            stuck = current if current and current not in done else next(t for t in tasks if t not in done)
            ways = (2 if self.request.device == "meta" else 1) if self.request.framework.retraced else 0
            if current == TRACE and len(self._died) < ways:
                self._died = (*self._died, death)
            else:
                done[stuck] = Outcome(None, f"{death}{log.location}{log.last_words}")
                self.progress(Event(self.framework, stuck, "failed"))
        return done

    def _start(self, folder: Path, tasks: list[str], mark: str) -> Any:
        request = folder / "request.json"
        temporary = folder / "tmp"
        temporary.mkdir()
        body = self.request._replace(tasks=tuple(tasks), out=str(folder), trial=self._trial == "due", died=self._died)
        request.write_text(to_text(body), encoding="utf-8")
        worker = [str(self.python.path), "-u", str(self.tool), str(request)]
        caches = {name: str(temporary) for name in CACHES} if self._confinement else {}
        own = {**caches, **self.variables, "TMPDIR": str(temporary), MARK: mark}
        with (folder / "worker.log").open("wb") as log:
            if self.nursery is not None:
                return self.nursery.fork(request, log, own)
            return start_process(
                worker,
                folder,
                self._confinement,
                self._list_readable(),
                self.request.device != "cpu",
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**self.python.environ(), **own},
            )

    def _list_readable(self) -> list[str]:
        """What a confined worker may read beside the system's files."""
        if not self._confinement or self.request.file is None:
            return []
        python = self.python
        found: list[str] = self._confinement.list_readable(
            python.path, python.environ(), self.request.file.path, str(self.tool)
        )
        return found

    def _read_confined(self, folder: Path) -> bool:
        """Report how the worker is confined, once that is known; a file whose worker cannot be confined is refused."""
        reasons = worker_files.read_object(folder, reaper.CONFINED, dict.fromkeys(self._confinement.LIMITS, str))
        if reasons is None:
            return False
        if not self._confinement.holds(reasons):
            self._blame_file(self._confinement.refusal(reasons))
        self.progress(Event(self.framework, self._confinement.sentence(reasons), "confined"))
        return True

    def _read_meta(self, folder: Path) -> None:
        meta = worker_files.read_meta(folder) if self.meta is None else None
        if meta is not None:
            if "error" in meta:
                self._kill()
                raise UsageError(meta["error"])
            self.meta = meta
            if self.framework not in meta["frameworks"]:
                self.tasks = []
                self._kill()

    def _read_refusal(self, folder: Path) -> None:
        """Raise UsageError if the user's own code cannot be used."""
        refusal = worker_files.refusal(folder)
        if refusal is not None:
            raise refuse_model(refusal["error"], folder, self.framework if refusal["declined"] else "")

    def _ask_where(self, process: Any) -> None:
        """Abort the worker, so that it writes down where it is."""
        with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
            process.send_signal(signal.SIGABRT)
            process.wait(GRACE)

    def _blame_file(self, said: str) -> None:
        """Raise UsageError if a worker died, or was ended, while it loaded a model file: its memory and time are limited."""
        model = self.request.model
        if model is not None and model.file is not None and not self._stopped.is_set():
            raise UsageError(f"{model.factory} {said}")

    def _kill(self) -> None:
        """Have the reaper end the worker and all processes that it has started."""
        if self._process is not None:
            end_process(self._process)


RUNNING: set[Supervisor] = set()
"""The supervisors that are at work in this process, in any thread."""


def abandon(pool: ThreadPoolExecutor, futures: Iterable[Future[Any]]) -> None:
    """Start no more of these futures, and end the processes of those that have started: their results are not needed."""
    pool.shutdown(wait=False, cancel_futures=True)
    while not all(future.done() for future in futures):
        for supervisor in tuple(RUNNING):
            supervisor.stop()
        for process in tuple(CALLED):
            end_process(process)
        time.sleep(POLL)
