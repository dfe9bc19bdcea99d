"""``reconcile run``: what it asks of the runner, what it writes and shows, and how it ends."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import reconcile.cli
from reconcile.cli.statement_ends import ends
from reconcile.core import registry
from reconcile.core.errors import UsageError, unknown
from reconcile.engine.settle import NOT_INSTALLED_NOTE
from reconcile.launch.request import RunRequest
from tests.cli.conftest import Stub
from tests.outside import NUMPY
from tests.report import samples


def test_a_reconciled_run_writes_its_files_and_exits_0(stub: Stub) -> None:
    result = stub.run()
    assert result.exit_code == 0
    assert sorted(p.name for p in stub.folder.iterdir()) == ["toy.csv", "toy.html", "toy.json", "toy.md"]
    assert json.loads((stub.folder / "toy.json").read_text())["model"] == "toy"
    assert "From tf.profiler@frozen to thop" in result.stdout
    assert "wrote " in result.stdout
    assert result.stderr == ""


def test_what_the_user_said_reaches_the_runner(stub: Stub, tmp_path: Path) -> None:
    stub.run(
        "--set", "units=64", "--set", "text=a=b", "--convention", "all", "--convention-file", "c.toml",
        "--counter", "thop", "--counter", "fvcore", "--device", "cuda", "--timeout", "5", "--formulas", "f.py",
    )  # fmt: skip
    (request,) = stub.requests
    assert request == RunRequest(
        model="gru_demo",
        overrides={"units": "64", "text": "a=b"},
        convention="all",
        convention_files=(Path("c.toml"),),
        counters=("thop", "fvcore"),
        device="cuda",
        timeout=5.0,
        formulas=(Path("f.py"),),
        every_convention=True,
    )


@pytest.fixture
def numpy_registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A command has the options of the frameworks that are registered when its file is loaded: once with NumPy."""
    monkeypatch.setitem(registry.frameworks(), "numpy", NUMPY)
    monkeypatch.delitem(sys.modules, "reconcile.cli.commands.run", raising=False)
    yield
    sys.modules.pop("reconcile.cli.commands.run", None)
    vars(reconcile.cli).pop("run", None)


@pytest.mark.usefixtures("numpy_registered")
def test_a_registered_framework_has_an_option(stub: Stub) -> None:
    shown = stub.call("run", "--help").stdout.partition("Model:")[2]
    assert (
        shown.index("--torch MODULE") < shown.index("--tf MODULE") < shown.index("--onnx") < shown.index("--numpy MOD")
    )
    assert stub.call("run", "--numpy", "a:b", "--torch", "c:d", "--out", str(stub.folder)).exit_code == 0
    assert dict(stub.requests[0].factories) == {"torch": "c:d", "numpy": "a:b"}
    assert "reconcile run --torch c:d --numpy a:b\n" in (stub.folder / "toy.md").read_text()
    three = ("--numpy", "a:b", "--torch", "c:d", "--tf", "e:f")
    assert stub.call("run", *three, "--out", str(stub.folder)).exit_code == 0
    assert dict(stub.requests[1].factories) == {"tf": "e:f", "torch": "c:d", "numpy": "a:b"}


@pytest.mark.parametrize(
    ("counters", "models", "from_", "to", "found"),
    [
        ((), (), "trace@tf", None, ("trace@tf", "thop")),
        (("fvcore",), (), "trace@torch", None, ("trace@torch", "trace@tf")),
        (("fvcore",), (), "trace@tf", None, ("trace@tf", "trace@torch")),
        (("fvcore",), ("torch",), None, "fvcore", ("trace@torch", "fvcore")),
        (("fvcore",), ("torch", "numpy"), "trace@torch", None, ("trace@torch", "trace@numpy")),
        (("fvcore",), ("torch", "numpy"), None, "trace@numpy", ("trace@torch", "trace@numpy")),
        ((), ("onnx", "numpy"), "trace@numpy", None, ("trace@numpy", "trace@onnx")),
        (("tf.profiler@frozen",), ("tf", "onnx"), "trace@tf", None, ("trace@tf", "trace@onnx")),
    ],
)
def test_an_end_that_is_not_named_is_the_work_of_the_other_model(
    monkeypatch: pytest.MonkeyPatch,
    counters: tuple[str, ...],
    models: tuple[str, ...],
    from_: str | None,
    to: str | None,
    found: tuple[str, str],
) -> None:
    monkeypatch.setitem(registry.frameworks(), "numpy", NUMPY)
    assert ends(counters, from_, to, models) == found


def test_a_training_step_is_asked_for_with_its_optimizer(stub: Stub) -> None:
    stub.run()
    stub.run("--pass", "training")
    stub.run("--pass", "training", "--optimizer", "adam")
    assert [request.training for request in stub.requests] == ["", "sgd", "adam"]
    assert "--pass training --optimizer adam" in (stub.folder / "toy-training.md").read_text()
    assert "--pass" not in (stub.folder / "toy.md").read_text()  # the report of a call stays what it was
    refused = stub.run("--optimizer", "adam")
    assert refused.exit_code == 2
    assert "add --pass training" in refused.stderr


@pytest.mark.parametrize(
    ("sample", "code"),
    [(samples.clean, 0), (samples.unexplained, 1), (samples.incomplete, 1), (samples.full, 3), (samples.empty, 3)],
)
def test_the_exit_code_is_the_runs_own(stub: Stub, sample: object, code: int) -> None:
    stub.answer = sample()  # type: ignore[operator]
    assert stub.run().exit_code == code
    assert stub.run("-q").exit_code == code
    assert (stub.folder / "toy.json").exists()


def test_formats(stub: Stub) -> None:
    assert stub.run("--format", "json,md", "--format", "json").exit_code == 0
    assert sorted(p.suffix for p in stub.folder.iterdir()) == [".json", ".md"]
    assert not stub.requests[0].every_convention  # only the page shows more than one


def test_reports_name_no_folder_of_this_machine(stub: Stub, tmp_path: Path) -> None:
    formulas = tmp_path / "f.py"
    stub.run("--formulas", str(formulas))
    text = (stub.folder / "toy.md").read_text()
    assert "reconcile run --model gru_demo --formulas f.py\n" in text
    for file in stub.folder.iterdir():
        assert str(tmp_path) not in file.read_text()


def test_the_command_of_a_run_leaves_defaults_out_and_quotes(stub: Stub) -> None:
    stub.run("--set", "title=a b", "--convention", "all", "--from", "thop", "--timeout", "600", "--format", "md", "-v")
    text = (stub.folder / "toy.md").read_text()
    assert "\nreconcile run --model gru_demo --set 'title=a b' --convention all --from thop\n" in text


@pytest.mark.parametrize(
    ("args", "ends"),
    [
        ((), "tf.profiler@frozen to thop"),
        (("--from", "tf.profiler@frozen"), "tf.profiler@frozen to thop"),
        (("--to", "flop_counter"), "tf.profiler@frozen to flop_counter"),
        (("--from", "thop"), "thop to trace@torch"),
        (("--from", "flop_counter", "--to", "tf.profiler@frozen"), "flop_counter to tf.profiler@frozen"),
        (("--from", "thop", "--to", "fvcore"), "thop to fvcore"),
        (("--from", "trace@torch", "--to", "trace@tf"), "trace@torch to trace@tf"),
        (("--counter", "thop", "--from", "trace@tf", "--to", "trace@torch"), "trace@tf to trace@torch"),
    ],
)
def test_any_two_ends(stub: Stub, args: tuple[str, ...], ends: str) -> None:
    result = stub.run(*args)
    assert result.exit_code == 0, result.output
    assert f"From {ends}\n" in result.stdout
    assert f"## From {ends}\n" in (stub.folder / "toy.md").read_text()


def test_pictures_are_files_beside_the_report_which_shows_them(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconcile.report.pictures.charts.require", lambda: None)
    monkeypatch.setattr(
        "reconcile.report.pictures.charts.draw", lambda *_: {"waterfall.svg": "<svg/>", "waterfall.png": b"png"}
    )
    assert stub.run("--format", "md,svg,png").exit_code == 0
    assert sorted(p.name for p in stub.folder.iterdir()) == ["toy.md", "toy.waterfall.png", "toy.waterfall.svg"]
    assert (stub.folder / "toy.waterfall.png").read_bytes() == b"png"
    assert "](toy.waterfall.svg)" in (stub.folder / "toy.md").read_text()
    assert stub.call("matrix", "--model", "gru_demo", "--format", "svg").exit_code == 2


def usage(stub: Stub, *args: str) -> str:
    result = stub.run(*args)
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    assert not stub.folder.exists()
    return result.stderr


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--from", "tohp"), "Error: unknown counter for --from 'tohp'. Did you mean thop"),
        (("--to", "fv_core"), "Error: unknown counter for --to 'fv_core'. Did you mean fvcore"),
        (("--counter", "fvcore", "--to", "thop"), "Error: unknown counter for --to 'thop'."),
        (("--from", "thop", "--to", "thop"), "Error: --from and --to are both thop; a statement needs two"),
    ],
)
def test_a_name_that_is_not_there_is_said_before_anything_runs(stub: Stub, args: tuple[str, ...], said: str) -> None:
    assert usage(stub, *args).startswith(said)
    assert stub.requests == []


@pytest.mark.parametrize(
    "args",
    [("--set", "units"), ("--set", "=3"), ("--format", "pdf"), ("--format", ","), ("--timeout", "0"), ("--nope",)],
)
def test_options_that_make_no_sense(stub: Stub, args: tuple[str, ...]) -> None:
    assert "Error: " in usage(stub, *args)
    assert stub.requests == []


def test_a_folder_that_takes_nothing_is_known_before_the_run(stub: Stub) -> None:
    stub.folder.parent.joinpath("file").write_text("")
    result = stub.call("run", "--model", "gru_demo", "--out", str(stub.folder.parent / "file" / "reports"))
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: cannot write reports to ")
    assert len(result.stderr.splitlines()) == 1
    assert stub.requests == []


def test_what_the_runner_refuses_is_one_sentence(stub: Stub) -> None:
    stub.answer = unknown("model", "gru_dmo", ["gru_demo"])
    assert usage(stub) == "Error: unknown model 'gru_dmo'. Did you mean gru_demo?\n"
    stub.answer = UsageError("the pair file could not be read.")
    assert usage(stub) == "Error: the pair file could not be read.\n"


def test_an_end_that_this_model_does_not_have(stub: Stub) -> None:
    result = stub.run("--from", "tf.profiler@runmeta", "--to", "thop")
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: unknown counter for this model 'tf.profiler@runmeta'.")


def test_an_end_that_is_not_installed(stub: Stub) -> None:
    """It is known, and of a framework that ran: no misspelt name."""
    noted = tuple(replace(trace, notes=(NOT_INSTALLED_NOTE % "torchinfo, ptflops",)) for trace in stub.answer.traces)
    stub.answer = replace(stub.answer, traces=noted)
    result = stub.run("--from", "ptflops@aten", "--to", "thop")
    assert (result.exit_code, result.stderr.partition(" in ")[0]) == (2, "Error: ptflops is not installed")


def test_an_interruption_is_one_sentence_and_keeps_old_files(stub: Stub) -> None:
    stub.run()
    before = {p.name: p.read_bytes() for p in stub.folder.iterdir()}
    stub.answer = KeyboardInterrupt()
    result = stub.run()
    assert result.exit_code == 130
    assert result.stderr.strip() == "Interrupted; no file was left half-written."
    assert {p.name: p.read_bytes() for p in stub.folder.iterdir()} == before


def test_another_environment_is_another_way_to_run(stub: Stub, tmp_path: Path) -> None:
    stub.run("--environment", "tf-2.3.1", "--counter", "tf.profiler@session")
    stub.run()
    assert stub.takes[0] is not None
    assert stub.takes[1] is None
    stub.run("--environment", "tf-2.3.1")
    assert "reconcile run --model gru_demo --environment tf-2.3.1\n" in (stub.folder / "toy.md").read_text()
    unknown = stub.run("--environment", "tf-2.3")
    assert (unknown.exit_code, len(stub.requests)) == (2, 3)
    assert "unknown environment 'tf-2.3'. Did you mean tf-2.3.1" in unknown.stderr
    both = stub.run("--environment", "tf-2.3.1", "--with", "torch==2.5.0")
    assert both.exit_code == 2
    assert "give one of them" in both.stderr
