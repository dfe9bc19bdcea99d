"""``reconcile run --ncu``, from the command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from reconcile.cli import cli
from reconcile.cli.run_options import RunCall
from reconcile.core.conventions import MATMUL
from reconcile.core.errors import UsageError
from reconcile.engine.answer import Answer
from reconcile.launch.choose import choose_counters
from reconcile.launch.request import RunRequest
from reconcile.products.kernels.ncu import Counted
from reconcile.products.kernels.run_options import KERNELS, add_witnesses
from tests.products.kernels.recorded import model


def answer(name: str) -> Answer:
    return Answer(
        model=name, pass_="forward", convention=MATMUL, params={}, environment={}, description="", traces=(model(name)[0],),
        ledgers=(), layers=(), statements=(), exit_code=0, notes=(), inputs={}, alignment=(),
    )  # fmt: skip


def call(out: Path, counted: tuple[Counted, ...]) -> RunCall:
    context = click.Context(cli.get_command(click.Context(cli), "run"), info_name="run")
    given = {"ncu": Path("kernels.csv"), "counted": counted}
    return RunCall(context, RunRequest(), given, out, ("md", "json"), quiet=False, verbose=True)


@pytest.mark.parametrize(("name", "code"), [("mixed", 0), ("convs32-training", 1)])
def test_the_files_and_the_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, code: int) -> None:
    _, counted = model(name)
    assert KERNELS.follow(call(tmp_path, counted), answer(name), name) == code
    data = json.loads((tmp_path / f"{name}.kernels.json").read_text())
    assert data["exit_code"] == code
    (statement,) = data["statements"]
    booked = sum(line["amount"] for line in statement["adjustments"])
    assert statement["from_total"] + booked + statement["residual"] == statement["to_total"]
    assert data["witnessed"] == sum(each["trace"] for each in data["operators"] if not each["residual"])
    page = (tmp_path / f"{name}.kernels.md").read_text()
    assert data["summary"] in page
    assert " ".join(data["summary"].split()) in " ".join(capsys.readouterr().out.split())


def test_kernels_of_another_model(tmp_path: Path) -> None:
    _, counted = model("convs")
    with pytest.raises(UsageError, match="give the model that you recorded"):
        KERNELS.follow(call(tmp_path, counted), answer("blocks"), "blocks")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--ncu", "none.csv"], "cannot read the file of ncu none.csv"),
        (["--ncu", "none.csv", "--ranks", "2"], "--ranks takes no --ncu"),
    ],
)
def test_bad_input_is_one_sentence(words: list[str], said: str) -> None:
    done = CliRunner().invoke(cli, ["run", "--torch", "net:make", *words])
    assert done.exit_code == 2
    assert said in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("request_", "own"),
    [
        (RunRequest(factories={"torch": "net:make"}), ("cpu_libraries",)),
        (RunRequest(factories={"tf": "net:make"}), ("tf_libraries",)),
        (RunRequest(factories={"tf": "net:make", "torch": "net:make"}), ("cpu_libraries", "tf_libraries")),
        (RunRequest(factories={"torch": "net:make", "jax": "net:make"}), ("cpu_libraries",)),
        (RunRequest("gru_demo", {}), ("cpu_libraries", "tf_libraries")),
    ],
)
def test_the_witnesses_of_its_models_join_the_counters(request_: RunRequest, own: tuple[str, ...]) -> None:
    usual = choose_counters(request_)
    assert add_witnesses(request_).counters == (*usual, *own)
    assert add_witnesses(replace(request_, counters=usual[:1])).counters == (usual[0], *own)


def test_a_framework_without_a_log_is_refused_by_name() -> None:
    done = CliRunner().invoke(cli, ["run", "--jax", "net:make", "--witness"])
    assert done.exit_code == 2
    said = "JAX writes no log of its products on a CPU; --witness takes models of PyTorch and TensorFlow (docs/witness.md)."
    assert said in " ".join(done.output.split())
