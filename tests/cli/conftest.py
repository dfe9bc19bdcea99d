"""A command line whose runner is a stub: it hands back a sample, or raises, and remembers what it was asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from reconcile.cli import cli
from reconcile.core.results import RunResult
from reconcile.launch import runner
from reconcile.launch.request import RunRequest
from reconcile.launch.runner import Collect
from reconcile.launch.supervisor import Event
from tests.report import samples


@dataclass
class Stub:
    """``answer`` is what the runner returns, or the exception it raises."""

    folder: Path
    answer: RunResult | BaseException = field(default_factory=samples.clean)
    events: tuple[Event, ...] = ()
    requests: list[RunRequest] = field(default_factory=list)
    takes: list[Collect | None] = field(default_factory=list)

    def __call__(self, request: RunRequest, progress: Callable[[Event], None], take: Collect | None) -> RunResult:
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


@pytest.fixture
def stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stub:
    made = Stub(tmp_path / "reports")
    monkeypatch.setattr(runner, "run", made)
    return made
