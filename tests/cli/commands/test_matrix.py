"""``reconcile matrix`` without any environment: what it asks for, what it prints and writes, how it ends."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from reconcile.cli import cli
from reconcile.launch.environments.definitions import Environment, load
from reconcile.launch.request import RunRequest, run_request
from reconcile.launch.workers.supervisor import Event
from reconcile.matrix import run as matrix
from reconcile.matrix.run import MatrixResult
from tests.matrix import matrices as hand

NAMES = [name for name, environment in load().items() if environment.unasked]
MINE = """
["mine-1.0"]
title = "mine"
python = "3.8"
frameworks = ["tf"]
requirements = ["tensorflow==2.3.1"]
"""


@dataclass
class Stub:
    """Stands in for run_matrix; ``answer`` is what it returns, or the exception it raises."""

    folder: Path
    answer: MatrixResult | BaseException = field(default_factory=hand.clean)
    events: tuple[tuple[str, Event], ...] = ()
    says: tuple[str, ...] = ()
    request: RunRequest | None = None
    asked: list[str] = field(default_factory=list)
    environments: Sequence[Environment] = ()
    convention: str = ""

    def __call__(
        self,
        request: RunRequest,
        environments: Sequence[Environment],
        progress: Callable[[str, Event], None],
        say: Callable[[str], None],
    ) -> MatrixResult:
        self.request, self.environments, self.convention = request, environments, request.convention
        self.asked = [env.name for env in environments]
        for name, event in self.events:
            progress(name, event)
        for message in self.says:
            say(message)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    def run(self, *args: str) -> Result:
        command = ("matrix", "--model", "gru_demo", "--out", str(self.folder / "reports"), *args)
        return CliRunner().invoke(cli, command, prog_name="reconcile")


@pytest.fixture
def stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stub:
    made = Stub(tmp_path)
    monkeypatch.setattr(matrix, "run_matrix", made)
    return made


def test_all_shipped_environments_in_the_files_order(stub: Stub) -> None:
    assert stub.run().exit_code == 0
    assert stub.asked == NAMES
    assert NAMES[-1] == "current"
    assert stub.request == RunRequest("gru_demo", {})
    assert stub.convention == "matmul"


def test_environments_are_those_named_in_the_order_given(stub: Stub) -> None:
    stub.run("--environment", "current", "--environment", "tf-1.12", "--environment", "current")
    assert stub.asked == ["current", "tf-1.12"]


def test_a_file_of_ones_own_adds_to_them(stub: Stub, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(MINE)
    stub.run("--environments", str(file))
    assert stub.asked == [*NAMES, "mine-1.0"]
    stub.run("--environments", str(file), "--environment", "mine-1.0")
    assert stub.asked == ["mine-1.0"]


def test_with_makes_one_more(stub: Stub) -> None:
    stub.run("--environment", "current", "--with", "tensorflow==2.15.1", "--with", "numpy<2", "--python", "3.11")
    assert stub.asked[0] == "current"
    assert stub.environments[1].requirements == ("tensorflow==2.15.1", "numpy<2")
    assert stub.environments[1].python == "3.11"
    stub.run("--with", "torch==2.5.0")
    assert stub.asked[:-1] == NAMES
    assert stub.environments[-1].python == "current"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--environment", "tf-1.13"), "unknown environment 'tf-1.13'. Did you mean tf-1.12"),
        (("--python", "3.11"), "--python needs at least one --with"),
        (("--with", "tensor flow"), "is not a requirement"),
        (("--with", "torch==2.5.0", "--python", "three"), "--python must be a version"),
        (("--environments", "nowhere.toml"), "cannot read the environment file nowhere.toml"),
        (("--convention", "matmull"), "Did you mean matmul"),
        (("--format", "html"), "is not a list of"),
        (("--timeout", "0"), "--timeout"),
    ],
)
def test_bad_usage_is_one_sentence_and_runs_nothing(stub: Stub, args: tuple[str, ...], said: str) -> None:
    result = stub.run(*args)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())
    assert stub.request is None
    assert not (stub.folder / "reports").exists()


@pytest.mark.parametrize(
    ("made", "code"), [(hand.clean, 0), (hand.unexplained, 1), (hand.incomplete, 1), (hand.failed, 3)]
)
def test_exit_codes_and_files(stub: Stub, made: Callable[[], MatrixResult], code: int) -> None:
    stub.answer = made()
    result = stub.run()
    assert result.exit_code == code
    files = sorted(p.name for p in (stub.folder / "reports").iterdir())
    assert files == ["toy_matrix.csv", "toy_matrix.json", "toy_matrix.md"]
    assert [name for name in files if name not in "".join(result.stdout.split())] == []
    assert json.loads((stub.folder / "reports/toy_matrix.json").read_text())["exit_code"] == code


def test_format_quiet_and_the_command_that_gives_it_again(stub: Stub, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(MINE)
    args = ("--set", "units=4", "--environment", "mine-1.0", "--environments", str(file), "--convention", "all")
    result = stub.run(*args, "--with", "torch==2.5.0", "--format", "md", "--timeout", "30", "-q")
    assert len(result.stdout.splitlines()) < 3
    (text,) = [p.read_text() for p in (stub.folder / "reports").iterdir()]
    again = "reconcile matrix --model gru_demo --set units=4 --environment mine-1.0 --environments mine.toml"
    assert f"{again} --with torch==2.5.0 --convention all --timeout 30.0\n" in text
    assert stub.request == RunRequest("gru_demo", {"units": "4"}, convention="all", timeout=30)
    assert stub.convention == "all"


def test_progress_names_the_environment(stub: Stub) -> None:
    stub.events = (
        ("tf-1.12", Event("tf", "tf.profiler@session", "started")),
        ("current", Event("torch", "", "loading")),
    )
    stub.says = ("tf-1.12: making the environment with uv (5 requirements, once)",)
    lines = stub.run("-v").stderr.splitlines()
    assert "tf-1.12, TensorFlow: tf.profiler@session started" in lines
    assert "current, PyTorch: loading" in lines
    assert stub.says[0] in lines
    assert stub.run().stderr.splitlines() == list(stub.says)
    assert stub.run("-q").stderr == ""


def test_an_own_model_runs_where_its_framework_is(stub: Stub) -> None:
    command = ("matrix", "--torch", "net:Net", "--input", "1,3,8,8", "--out", str(stub.folder / "reports"))
    assert CliRunner().invoke(cli, command, prog_name="reconcile").exit_code == 0
    assert stub.request is not None
    assert dict(stub.request.factories) == {"torch": "net:Net"}
    frameworks = {name: load()[name].frameworks for name in NAMES}
    assert stub.asked == [name for name in NAMES if "torch" in frameworks[name]]
    assert len(stub.asked) < len(NAMES)


def test_each_environment_gets_the_models_of_its_frameworks() -> None:
    request = run_request(torch="net:Net", tf="net:make")
    assert dict(matrix._of_frameworks(request, ("tf",)).factories) == {"tf": "net:make"}
