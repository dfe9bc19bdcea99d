"""The loop: inputs of a target, one after another, until the time is up; what is wrong is kept, with what replays it.

hypothesis draws the inputs and makes them smaller where they have parts; a target says what may come of one.
"""

from __future__ import annotations

import contextlib
import faulthandler
import hashlib
import itertools
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis import strategies as st

from .audit import ROOT, Audit

BATCH = 50
MOST = 25
"""Different findings after which a target has said enough."""
SEEDS = Path(__file__).with_name("seeds")
FOUND = Path(__file__).with_name("found")


class Wrong(Exception):
    """An input had an outcome that it must not have; like findings have the same first line."""


class Slow(BaseException):
    """An input took too long."""


@dataclass(frozen=True)
class Target:
    """``inputs`` are drawn as bytes; ``check`` gets one and an empty folder, and raises whatever may not come of it; ``ready``
    imports what it needs. ``seconds`` are those of one input, ``memory`` bytes beyond the start; ``smaller`` says whether
    hypothesis can make an input smaller; ``watched`` says whether it may be hostile, so that the audit hears what it does;
    ``needs`` is the framework that has to be there, '' for none."""

    name: str
    inputs: Callable[[], st.SearchStrategy[bytes]]
    check: Callable[[bytes, Path], None]
    ready: Callable[[], None] = lambda: None
    seconds: float = 10.0
    memory: int = 3 << 30
    smaller: bool = False
    watched: bool = True
    needs: str = ""


@dataclass(frozen=True)
class Finding:
    """What is wrong with an input: where, in one line, and the whole of it."""

    target: str
    where: str
    why: str
    data: bytes

    @property
    def file(self) -> str:
        """A name for the input, the same for the same bytes."""
        return f"{self.target}-{hashlib.sha256(self.data).hexdigest()[:12]}"


def drawn(make: Callable[[Any], bytes]) -> st.SearchStrategy[bytes]:
    """The inputs of a function of a ``random.Random``."""
    import random

    return st.integers(0, 2**64 - 1).map(lambda seed: make(random.Random(seed)))


class Bench:
    """This process as a place for cases: a folder that each may write to, one that stays empty, limits, and the audit."""

    def __init__(self, work: Path) -> None:
        self.work, self.folder, self.outside = work, work / "case", work / "outside"
        for folder in (self.folder, self.outside):
            folder.mkdir(parents=True, exist_ok=True)
        sys.dont_write_bytecode = True
        for name in ("HOME", "XDG_CACHE_HOME"):
            os.environ[name] = str(self.outside)
        os.environ["TMPDIR"] = tempfile.tempdir = str(self.folder)
        os.chdir(self.outside)
        self.audit = Audit()
        signal.signal(signal.SIGALRM, _late)

    def take(self, target: Target) -> None:
        """Make ready for the inputs of this target."""
        self.target = target
        target.ready()
        self._clear()
        _limit_memory(target.memory)

    def one(self, data: bytes) -> Finding | None:
        """What is wrong with this input, if anything is."""
        shutil.rmtree(self.folder)
        self.folder.mkdir()
        (self.work / "current").write_bytes(data)
        faulthandler.dump_traceback_later(3 * self.target.seconds, exit=True)
        signal.setitimer(signal.ITIMER_REAL, self.target.seconds)
        where = why = ""
        try:
            with self.audit.watching(self.folder) if self.target.watched else contextlib.nullcontext():
                self.target.check(data, self.folder)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            where, why = _where(error), f"{type(error).__name__}: {_line(error)}"
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            faulthandler.cancel_dump_traceback_later()
        left = sorted(os.listdir(self.outside))
        if self.audit.heard or left:
            said = self.audit.heard or [f"leaves {left}"]
            where, why = "outside its folder: " + said[0].split(" ")[0], "; ".join(said[:3])
            self._clear()
        return Finding(self.target.name, where, why, data) if where else None

    def _clear(self) -> None:
        os.chdir(self.work)
        shutil.rmtree(self.outside)
        self.outside.mkdir()
        os.chdir(self.outside)

    def fuzz(self, seed: int, seconds: float) -> tuple[int, list[Finding]]:
        """How many inputs were tried until then, and the smallest for each thing that is wrong."""
        inputs, tried, found = self.target.inputs(), 0, dict[str, Finding]()
        self._clear()
        end = time.monotonic() + seconds
        for batch in itertools.count(seed):
            tried += self._batch(inputs, batch, end, found)
            if time.monotonic() > end or len(found) >= MOST:
                break
        return tried, list(found.values())

    def _batch(self, inputs: st.SearchStrategy[bytes], seed: int, end: float, found: dict[str, Finding]) -> int:
        """Try some inputs, up to the first thing that is wrong and was not known; how many."""
        phases = [Phase.generate, *([Phase.shrink] if self.target.smaller else [])]
        known, new, tried = set(found), "", 0

        @hypothesis.seed(seed)
        @settings(
            max_examples=BATCH, phases=phases, deadline=None, database=None, verbosity=Verbosity.quiet,
            suppress_health_check=list(HealthCheck), report_multiple_bugs=False, print_blob=False,
        )  # fmt: skip
        @hypothesis.given(inputs)
        def attempt(data: bytes) -> None:
            nonlocal new, tried
            if time.monotonic() > end:
                return
            tried += 1
            made = self.one(data)
            if made is None or made.where in known or new not in ("", made.where):
                return
            if not new or len(data) <= len(found[new].data):
                found[made.where] = made
            new = made.where
            raise Wrong(new)

        with warnings.catch_warnings(), contextlib.suppress(Wrong, hypothesis.errors.Flaky):  # it is in ``found``
            warnings.simplefilter("ignore", hypothesis.errors.HypothesisWarning)  # inputs are long
            attempt()
        return tried


def _late(_signal: int, _frame: object) -> None:
    raise Slow("it takes too long")


def _limit_memory(more: int) -> None:
    if not sys.platform.startswith("linux"):
        return
    with open("/proc/self/status") as status:
        data = next(int(line.split()[1]) << 10 for line in status if line.startswith("VmData"))
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    allowed = data + more if hard == resource.RLIM_INFINITY else min(data + more, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (allowed, hard))


def _line(error: BaseException) -> str:
    """What an error says, on one line and printable."""
    try:
        said = str(error)
    except Exception as second:
        said = f"({type(second).__name__} as it is printed)"
    return " ".join(said[:500].encode("utf-8", "backslashreplace").decode().split())


def _where(error: BaseException) -> str:
    """The kind of an error and the innermost place of ours that it passed: two inputs with the same are one finding."""
    if isinstance(error, Wrong):
        return str(error).partition("\n")[0][:100]
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.name != _late.__name__]
    ours = [f for f in frames if f.filename.startswith(str(ROOT)) and f"{os.sep}tests{os.sep}" not in f.filename]
    place = (ours or frames)[-1]
    return f"{type(error).__name__} in {os.path.relpath(place.filename, ROOT)}:{place.name}"


def kept(found: Finding, folder: Path) -> dict[str, str]:
    """Keep an input, and return what is wrong with it and the command that replays it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / found.file
    path.write_bytes(found.data)
    shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    return {"where": found.where, "why": found.why, "replay": f"python -m tests.fuzz --replay {shown}"}
