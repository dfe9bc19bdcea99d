"""Users' programs as forks of one process that has PyTorch imported, which takes longer than all that most of them do.

``python -m tests.products.forked SOCKET`` is that process. A job is a message there, with what the fork has for its output.
"""

from __future__ import annotations

import importlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

import pytest

from reconcile.products import forked_workers
from reconcile.products.steps import foreground

ROOT = Path(__file__).parents[2]
LONGEST = 1 << 16
"""The most bytes of a message."""
IMPORTED = (
    "torch", "torch._dynamo", "torch.distributed.tensor.parallel", "torch.utils.flop_counter",
    "reconcile.adapters.pytorch.adapter", "reconcile.products.steps.pytorch.flop_counter",
    "reconcile.products.steps.watched_program", "reconcile.products.ranks.worker",
)  # fmt: skip


@pytest.fixture(scope="session")
def forking() -> Iterator[socket.socket | None]:
    """The socket of that process; None where processes are not forked."""
    if not forked_workers.ABLE:
        yield None
        return
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, "-m", "tests.products.forked", str(theirs.fileno())]
    with theirs:
        server = subprocess.Popen(command, pass_fds=[theirs.fileno()], cwd=ROOT)
    yield ours
    ours.close()
    server.kill()
    server.wait()


@pytest.fixture
def forked(forking: socket.socket | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs that this test watches or runs as ranks are forked."""

    def run_worker(
        asked: Mapping[str, object], folder: Path, module: str, python: str = "", variables: Mapping[str, str] = {}
    ) -> int:
        assert forking is not None
        if python:
            return started(asked, folder, module, python, variables)
        request = folder / "request.json"
        request.write_text(json.dumps(asked))
        job = {
            "request": str(request),
            "module": module,
            "folder": os.getcwd(),
            "environment": {**os.environ, **variables},
        }
        socket.send_fds(forking, [json.dumps(job).encode()], [1, 2])
        return int(forking.recv(LONGEST))

    started = foreground.run_worker
    if forking is not None:
        monkeypatch.setattr(foreground, "run_worker", run_worker)


class Again:
    """Finds modules as Python does, but PyTorch as it is here: a program that imports it is watched from then on."""

    def __init__(self, module: Any) -> None:
        self.module = module

    def find_spec(self, name: str, *where: Any) -> Any:
        """See importlib.machinery.PathFinder."""
        spec = PathFinder.find_spec(name, *where)
        if spec is not None and name == self.module.__name__:
            spec.loader = self  # type: ignore[assignment]
        return spec

    def create_module(self, _spec: Any) -> Any:
        """See importlib.abc.Loader."""
        return self.module

    def exec_module(self, _module: Any) -> None:
        """See importlib.abc.Loader."""


def _become(job: Mapping[str, Any], *files: int) -> int:
    """Run the program of a job in this process. Returns its status."""
    from reconcile.adapters.shared import imported

    for number, file in enumerate(files, 1):
        os.dup2(file, number)
    os.environ.clear()
    os.environ.update(job["environment"])
    os.chdir(job["folder"])
    sys.argv[:] = ["-c"]
    if job["module"] == ".products.steps.watched_program":
        imported.PathFinder = Again(sys.modules.pop("torch"))  # type: ignore[misc]
    status = importlib.import_module("reconcile" + job["module"]).main(job["request"])
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    return int(status)


def main(number: str) -> None:
    """Serve jobs until home closes its end."""
    for module in IMPORTED:
        importlib.import_module(module)
    with socket.socket(fileno=int(number)) as jobs:
        while True:
            message, files, _, _ = socket.recv_fds(jobs, LONGEST, 2)
            if not message:
                return
            if not (child := os.fork()):
                status = 70
                try:
                    jobs.close()
                    status = _become(json.loads(message), *files)
                finally:
                    os._exit(status)
            for file in files:
                os.close(file)
            jobs.send(b"%d" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


if __name__ == "__main__":
    main(sys.argv[1])
