"""Fixtures that cost a run of the frameworks are made once, also where pytest runs in several processes."""

from __future__ import annotations

import fcntl
import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import pytest

from reconcile.core.protocol import WorkerRequest
from reconcile.engine.settle import Collected
from reconcile.launch.environments.interpreters import Interpreter
from reconcile.launch.request import RunRequest
from reconcile.launch.runner import collect
from reconcile.launch.workers import scratch, warm

PAIRS = Path(__file__).parent / "pairs"

# As in a worker (adapters/tensorflow/model.py, quiet): tests that import TensorFlow themselves run the same kernels on every CPU.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")

# Workers leave no bytecode beside a user's files by themselves.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that start frameworks come first: short ones are left for the end, where no process waits long for the others."""
    long = {item.path for item in items if item.get_closest_marker("frameworks")}
    items.sort(key=lambda item: item.path not in long)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


SLOW = {"torch": "torch._dynamo"}
"""What every call of a framework imports sooner or later, and slowly: two seconds."""


class Shared(warm.Nurseries):
    """The nurseries of a session: where a test changes the environment's variables, a worker is started as always."""

    variables: ClassVar[dict[str, str]]

    def of(self, request: WorkerRequest, python: Interpreter | None = None, library: str = "") -> warm.Nursery | None:
        library = library or SLOW.get(request.framework.name, "")
        return super().of(request, python, library) if variables() == self.variables else None

    def close(self) -> None:
        super().close()
        self._made.clear()


def variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    Shared.variables = variables()


@pytest.fixture(scope="session", autouse=True)
def _forked() -> Iterator[None]:
    """Workers are forked from a process that has their framework: each finds what one that started finds (test_warm.py)."""
    with scratch.scratch() as folder:
        shared = Shared(folder)
        warm._OPEN[:] = [shared] if warm.ABLE else []
        yield
        warm._OPEN.clear()
        shared.close()


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of that, workers start as a user's do, and no process is here that forks them."""
    for shared in warm._OPEN:
        shared.close()
    monkeypatch.setattr(warm, "_OPEN", [])


@pytest.fixture(scope="session")
def collecting(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Callable[..., Collected]:
    """``collecting(model, **overrides)``: what real workers found for a pair, run once per session."""
    base = tmp_path_factory.getbasetemp()
    shared = base if worker_id == "master" else base.parent

    def collected(model: str, device: str = "cpu", **overrides: object) -> Collected:
        name = Path(model).stem + device + "".join(f"-{k}={v}" for k, v in sorted(overrides.items()))
        path = shared / f"{name}.pickle"
        with _locked(shared / f"{name}.lock"):
            if not path.exists():
                request = RunRequest(model, {k: str(v) for k, v in overrides.items()}, device=device)
                path.write_bytes(pickle.dumps(collect(request)))
        found: Collected = pickle.loads(path.read_bytes())
        return found

    return collected
