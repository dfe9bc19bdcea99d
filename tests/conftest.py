"""Fixtures that cost a run of the frameworks are made once, also where pytest runs in several processes."""

from __future__ import annotations

import fcntl
import gc
import multiprocessing
import os
import pickle
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import settings

from reconcile.core.protocol import WorkerRequest
from reconcile.engine.settle import Collected
from reconcile.launch.environments.interpreters import Interpreter
from reconcile.launch.request import RunRequest
from reconcile.launch.runner import collect
from reconcile.launch.workers.scratch import scratch
from reconcile.products import forked_workers

pytest.register_assert_rewrite("tests.adapters.counters.in_environment")
PAIRS = Path(__file__).parent / "pairs"

# A busy machine fails no test: hypothesis measures no time. `make removals` tries few examples of each property.
settings.register_profile("patient", parent=settings.default, deadline=None)
settings.register_profile("few", parent=settings.default, deadline=None, max_examples=5)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "patient"))

# As in a worker (adapters/tensorflow/model.py, quiet): tests that import TensorFlow themselves run the same kernels on every CPU.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")

# Networks of tests are so small that threads only wait for each other, the longer the more processes there are.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Workers leave no bytecode beside a user's files by themselves.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


# Imports make objects that stay: to look through them again and again takes a fifth of the time of collection.
gc.disable()

WITHOUT = re.compile(r"(?:(?:\w+|\(.*\)) and )?not (?:(\w+)|\(([\w ]+)\))")
MARKS_OF_FILE = re.compile(r"^pytestmark = (\[[^]]*\]|.*)", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file all of whose tests the markers leave out is not imported, nor what only such files import."""
    expression = WITHOUT.fullmatch(config.option.markexpr)
    if expression is None or collection_path.suffix != ".py":
        return None
    written = MARKS_OF_FILE.search(collection_path.read_text())
    marks = {*re.findall(r"mark\.(\w+)", written[0] if written else "")}
    if collection_path.parent.name == "browser":  # its conftest marks all of them
        marks.add("browser")
    return not marks.isdisjoint((expression[1] or expression[2]).split(" or ")) or None


def pytest_collection_finish() -> None:
    """A trace on meta looks at every object that the collector knows (adapters/pytorch/caches.py): not at the collected tests."""
    gc.enable()
    gc.collect()
    gc.freeze()


IGNORING = ("sh", "-c", 'trap "" INT HUP; exec "$@"', "sh")
"""Starts a program as a job in the background that outlives its terminal."""
SIGNALS = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM)


@contextmanager
def heeded() -> Iterator[None]:
    """Meanwhile every process that is started here takes signals as usual.

    What a process ignores (a job in the background, ``nohup``), the processes that it starts ignore, too; what it has a handler
    for, they do not. By a handler that does nothing, this process goes on as it was asked to.
    """
    ignored = [number for number in SIGNALS if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, lambda _number, _frame: None)
    try:
        yield
    finally:
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)


@pytest.fixture(scope="session", autouse=True)
def signals_heeded() -> Iterator[None]:
    """However these tests were started, the processes that they start take signals as usual."""
    with heeded():
        yield


@pytest.fixture(scope="session")
def semaphores() -> None:
    """For a test of a program that needs POSIX semaphores: it is skipped where the system refuses them."""
    try:
        multiprocessing.get_context("fork").Lock()
    except (ImportError, OSError) as error:
        pytest.skip(f"this system refuses POSIX semaphores: {error}")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class Warmer(forked_workers.Nurseries):
    """Nurseries that have imported what every trace of PyTorch's needs: it takes nine tenths of a small model's worker."""

    def of(
        self, request: WorkerRequest, python: Interpreter | None = None, library: str = ""
    ) -> forked_workers.Nursery | None:
        return super().of(request, python, library or ("torch._dynamo" if request.framework.name == "torch" else ""))


@pytest.fixture(scope="session")
def nurseries() -> Iterator[forked_workers.Nurseries]:
    """Processes that have a framework imported, which workers of this session may be forked from."""
    with scratch() as folder:
        made = Warmer(folder)
        yield made
        made.close()


@contextmanager
def _forked_from(nurseries: forked_workers.Nurseries) -> Iterator[None]:
    """Meanwhile workers are forked, where they can be."""
    if not forked_workers.ABLE:
        yield
        return
    forked_workers.OPEN.append(nurseries)
    try:
        yield
    finally:
        forked_workers.OPEN.pop()


@pytest.fixture(scope="module")
def warmed(nurseries: forked_workers.Nurseries) -> Iterator[None]:
    """The workers of this file's tests are forked from a process that has its framework imported."""
    with _forked_from(nurseries):
        yield


@pytest.fixture(scope="session")
def collecting(
    tmp_path_factory: pytest.TempPathFactory, worker_id: str, nurseries: forked_workers.Nurseries
) -> Callable[..., Collected]:
    """``collecting(model, **overrides)``: what real workers found for a pair, run once per session."""
    base = tmp_path_factory.getbasetemp()
    shared = base if worker_id == "master" else base.parent

    def collected(model: str, device: str = "cpu", **overrides: object) -> Collected:
        name = Path(model).stem + device + "".join(f"-{k}={v}" for k, v in sorted(overrides.items()))
        path = shared / f"{name}.pickle"
        with _locked(shared / f"{name}.lock"), _forked_from(nurseries):
            if not path.exists():
                request = RunRequest(model, {k: str(v) for k, v in overrides.items()}, device=device)
                path.write_bytes(pickle.dumps(collect(request)))
        found: Collected = pickle.loads(path.read_bytes())
        return found

    return collected
