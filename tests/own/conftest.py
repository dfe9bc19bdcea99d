"""The command line in a user's own folder, with a real runner."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from reconcile.cli import cli


@dataclass
class Repository:
    """A folder that is the working directory; logs that a refusal keeps go to ``logs``."""

    folder: Path
    logs: Path

    def write(self, **files: str) -> None:
        """Python files by their stem."""
        for stem, text in files.items():
            path = self.folder.joinpath(*stem.split("__of__")).with_suffix(".py")
            path.parent.mkdir(exist_ok=True, parents=True)
            path.write_text(textwrap.dedent(text))

    def run(self, *args: str) -> Result:
        """``reconcile run ARGS`` there."""
        return CliRunner().invoke(cli, ["run", "--out", "out", *args], prog_name="reconcile")

    def report(self, name: str, *args: str) -> dict[str, Any]:
        """The JSON report of a run that must reconcile."""
        result = self.run(*args)
        assert result.exit_code == 0, result.output
        data: dict[str, Any] = json.loads((self.folder / "out" / f"{name}.json").read_text())
        assert {s["residual"] for s in data["statements"]} == {0}
        return data

    def refusal(self, *args: str) -> str:
        """The one sentence of a run that is refused, without where the log is; the log must hold what it says."""
        result = self.run(*args)
        assert result.exit_code == 2, result.output
        assert result.stdout == ""
        assert len(result.stderr.splitlines()) == 1
        assert not (self.folder / "out").exists()
        sentence, _, log = result.stderr.strip().removeprefix("Error: ").partition(" The full log is in ")
        if log:
            assert Path(log[:-1]).parent == self.logs
        return sentence

    def log(self) -> str:
        """What the one refused run printed."""
        (path,) = self.logs.iterdir()
        return path.read_text()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    folder, logs = tmp_path / "repository", tmp_path / "logs"
    folder.mkdir()
    logs.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr("reconcile.launch.workers.crashes.LOGS", str(logs))
    return Repository(folder, logs)


TORCH = """
import contextlib
from . import nn

Tensor = dtype = type
device = lambda name: contextlib.nullcontext()
manual_seed = get_default_dtype = is_grad_enabled = lambda *given: None
"""


NN = """
class Module:
    pass

class Linear(Module):
    def __init__(self, inner, outer):
        pass

    def forward(self, x):
        pass

class Parameter:
    pass

class Sequential(Module):
    pass

class ModuleList(Module):
    pass
"""


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch that is imported in no time, as far as a factory needs one whose model is never run."""
    files = {
        "torch/__init__.py": TORCH,
        "torch/nn/__init__.py": NN,
        "torch/nn/modules/__init__.py": "",
        "torch/nn/modules/module.py": "",
        "torch/utils/__init__.py": "",
        "torch/utils/_python_dispatch.py": "class TorchDispatchMode:\n    pass\n",
        "torch/overrides.py": "class TorchFunctionMode:\n    pass\n",
    }
    for name, text in files.items():
        path = tmp_path / "stand-in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "stand-in"))


@pytest.fixture
def world() -> Iterator[None]:
    """The first of four processes, the others of which do not exist."""
    import torch
    from torch.testing._internal.distributed.fake_pg import FakeStore

    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=4)
    try:
        yield
    finally:
        torch.distributed.destroy_process_group()
