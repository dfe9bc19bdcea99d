"""A command line whose runner is a stub: it hands back a sample, or raises, and remembers what it was asked."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from reconcile import workflow
from reconcile.cli import cli
from reconcile.core.errors import EXIT_USAGE
from reconcile.engine.answer import Answer
from reconcile.launch.request import RunRequest
from reconcile.launch.runner import Collect
from reconcile.launch.workers.supervisor import Event
from tests.report import samples


@dataclass
class Stub:
    """``answer`` is what the runner returns, or the exception it raises."""

    folder: Path
    answer: Answer | BaseException = field(default_factory=samples.clean)
    events: tuple[Event, ...] = ()
    requests: list[RunRequest] = field(default_factory=list)
    takes: list[Collect | None] = field(default_factory=list)

    def __call__(self, request: RunRequest, progress: Callable[[Event], None], take: Collect | None) -> Answer:
        self.requests.append(request)
        self.takes.append(take)
        for event in self.events:
            progress(event)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    def run(self, *args: str) -> Result:
        """``reconcile run --model gru_demo --out FOLDER ARGS``."""
        return self.call("run", "--model", "gru_demo", "--out", str(self.folder), *args)

    def call(self, *args: str) -> Result:
        return CliRunner().invoke(cli, args, prog_name="reconcile")


class Terminal(io.StringIO):
    """A stream that says that it is one."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stub:
    made = Stub(tmp_path / "reports")
    monkeypatch.setattr(workflow, "run", made)
    return made


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files, so that no test leaves one elsewhere."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def sentence(result: Result) -> str:
    """The report of a user's or the system's fault: one line on stderr, exit code 2, nothing on stdout."""
    assert (result.exit_code, result.stdout) == (EXIT_USAGE, ""), result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: ")
    assert len(line) < 900
    return line


def shell(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    """Run a line of shell: {python}, {folder}. It writes no bytecode: under a limit on files, half a module would stay."""
    env = {**os.environ, "TMPDIR": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        ["/bin/sh", "-c", line.format(python=sys.executable, folder=folder)],
        capture_output=True, text=True, check=False, timeout=300, env=env,
    )  # fmt: skip
