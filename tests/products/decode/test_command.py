"""``reconcile decode`` as it is typed."""

from __future__ import annotations

import shlex
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from reconcile.cli import cli
from reconcile.core.errors import UsageError
from reconcile.core.records import LIVE
from reconcile.engine.settle import Collected
from reconcile.launch.environments.definitions import load
from reconcile.launch.request import RunRequest
from reconcile.products.decode import sources
from tests.products.decode import data


def typed(*args: str, baselines: Path | None = data.SAVED) -> Result:
    more = ["--no-run", "--baselines", str(baselines)] if baselines else []
    done = CliRunner().invoke(cli, ["decode", *more, *args], prog_name="reconcile")
    for line in done.output.splitlines():
        if line.startswith("reconcile "):
            check_suggestion(line, baselines)
    return done


def check_suggestion(line: str, baselines: Path | None) -> None:
    """The command itself takes it, and its environments are built in or saved."""
    _, name, *words = shlex.split(line)
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    asked = command.make_context(name, words).params
    places = asked.get("names", ()) or [asked["environment"]] if name == "run" else asked["names"]
    made = {*load(), *(path.stem.partition("@")[0] for path in (baselines or data.SAVED).glob("*/*.json"))}
    assert set(filter(None, places)) <= made, line


def sentences(done: Result) -> str:
    """The output without its line breaks."""
    return " ".join(done.output.split())


def test_quiet_is_one_line_with_the_simplest_reading() -> None:
    done = typed("--model", "gru_demo", "22,938,560", "-q")
    assert (done.exit_code, done.output) == (0, "22,938,560 for gru_demo is explained: thop × 2 (it counts MACs).\n")
    done = typed("--model", "gru_demo", "12345", "-q")
    assert (done.exit_code, done.output.count("\n")) == (1, 1)
    assert "12,345 for gru_demo is not explained: none of" in done.output


def test_explained() -> None:
    done = typed("--model", "gru_demo", "22,938,560")
    assert done.exit_code == 0, done.output
    assert [line.rstrip() for line in done.output.rstrip().splitlines()] == [
        "22,938,560 for gru_demo is explained:",
        "",
        "  22,938,560",
        "    thop × 2 (it counts MACs)",
        "      2 × 11,469,280 = 22,938,560",
        "      1 of the 3 layers that convolve or multiply matrices is not in it: gru.",
        "      torch-1.10.1-thop-2001 (saved; thop 0.0.31.post2001170342, torch 1.10.1)",
        "",
        "Of the releases of thop looked at, only those before 0.0.31.post2005241907 give",
        "it.",
        "",
        "To run it:",
        "",
        "reconcile run --model gru_demo --environment torch-1.10.1-thop-2001 --counter thop",
    ]


def test_another_version_of_the_network_has_it() -> None:
    """ResNet-50 with its stride in the 3x3 of a block: 4,089,184,256 multiply-adds, 3,857,973,248 with it in the 1x1."""
    there = "resnet50_v1_5, another version of this network, runs 4,089,184,256 MACs (torch)."
    done = typed("--model", "resnet50", "4.1 GFLOPs")
    assert done.exit_code == 1
    assert f"{there} Look there: reconcile decode --model resnet50_v1_5 '4.1 GFLOPs'" in sentences(done)
    assert there not in sentences(typed("--model", "resnet50", "4.3 GFLOPs"))
    assert there not in sentences(typed("--model", "gru_demo", "4.1 GFLOPs"))


def test_four_digits_may_be_ambiguous() -> None:
    done = typed("--model", "gru_demo", "250.3e6")
    assert done.exit_code == 0
    assert "250.3e6 for gru_demo is ambiguous: " in done.output
    assert "different numbers. The simplest first:" in sentences(done)
    longer = typed("--model", "gru_demo", "250.3e6", "--verbose")
    assert "more readings" not in longer.output
    assert "Nearest candidates that it is not:" in longer.output


def test_where_a_saved_total_is_looked_for() -> None:
    done = typed("--model", "gru_demo", "--environment", "current", "25150826")
    assert done.exit_code == 1
    assert "The saved data of tf-1.12 has it: tf.profiler@session, as reported. Look there:" in sentences(done)
    command = f"reconcile decode --model gru_demo --baselines {data.SAVED} --environment tf-1.12 25150826"
    assert done.output.rstrip().splitlines()[-1] == command


def test_an_older_baseline_is_looked_for_by_its_environment(tmp_path: Path) -> None:
    """It is kept as ``name@versions``, which names no environment."""
    (tmp_path / "gru_demo").mkdir()
    shutil.copy(data.SAVED / "gru_demo/current.json", tmp_path / "gru_demo/current.json")
    shutil.copy(data.SAVED / "gru_demo/tf-1.12.json", tmp_path / "gru_demo/mine@tensorflow-1.12.json")
    done = typed("--model", "gru_demo", "--environment", "current", "25150826", baselines=tmp_path)
    assert "--environment mine 25150826" in done.output.rstrip().splitlines()[-1]


def test_a_label_that_is_wrong_is_told() -> None:
    """124,904,960 multiply-adds, printed as FLOPs; and twice that, printed as MACs."""
    assert "label is wrong" in typed("--model", "gru_demo", "124,904,960 FLOPs").output
    assert "label is wrong" in typed("--model", "gru_demo", "249,809,920 MACs").output
    assert "label is wrong" not in typed("--model", "gru_demo", "249,809,920 FLOPs").output


def test_a_number_of_parameters() -> None:
    """A convolution of 1 channel to 32 at 4 x 4, three gates of 96 units with two biases, and a dense layer."""
    weights = (16 + 1) * 32 + 3 * 96 * (32 * 127 + 96 + 2) + (96 + 1) * 256
    texts = ((f"{weights} parameters", 0), ("1.22 M params", 0), ("1.24M params", 1), (f"{weights} FLOPs", 1))
    for text, code in texts:
        done = typed("--model", "gru_demo", text)
        assert done.exit_code == code, text
        assert ("the number of parameters" in done.output) == ("param" in text)


def test_the_command_makes_the_environment_of_this_call(tmp_path: Path) -> None:
    """Its name stands in no list of environments."""
    made = ["--with", "tensorflow-cpu==2.3.1", "--python", "3.8"]
    (tmp_path / "gru_demo").mkdir()
    shutil.copy(data.SAVED / "gru_demo/tf-2.3.1.json", tmp_path / "gru_demo/tensorflow-cpu-2.3.1-py3.8.json")
    done = typed("--model", "gru_demo", "--set", "units=96", *made, "22752165", baselines=tmp_path)
    assert done.output.rstrip().splitlines()[-1] == (
        f"reconcile run --model gru_demo --set units=96 {' '.join(made)} --counter tf.profiler@session"
    )
    other = typed("--model", "gru_demo", "--set", "units=97", *made, "22752165", baselines=tmp_path)
    assert "saved with units=96" in other.output
    assert "--set" not in other.output.rstrip().splitlines()[-1]


def test_environments_that_were_not_looked_at_are_named() -> None:
    done = typed("--model", "resnet50", "12345678")
    assert "Older versions of a counter may print it, and were not looked at. Run them:" in sentences(done)
    last = done.output.rstrip().splitlines()[-1]
    assert "--environment tf-1.12 " in last
    assert "--environment tf-2.3.1 " not in last


def test_outside_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = typed("--no-run", "--model", "resnet50", "51112224", baselines=None)
    assert done.exit_code == 0, done.output
    assert "tf.profiler@batch_none, as reported" in done.output


def test_an_installed_baseline_is_not_that_of_a_namesake(tmp_path: Path) -> None:
    assert sources.SHIPPED in sources.folders_of("resnet50")
    assert sources.SHIPPED not in sources.folders_of(str(tmp_path / "resnet50.py"))


def test_a_total_of_a_run_here_names_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps the other options of the call. `run` takes no model with arguments, and a saved release may not be here."""
    ledger = data.session("thop", [("a", "Conv2d", 35, LIVE)])
    here = data.source(ledger, name="current")
    for source, model, runs in ((here, "net:make", True), (here, "net:make(size=3)", False)):
        monkeypatch.setattr(sources, "gather", lambda *_, source=source, **__: ((source,), ()))
        net = ("--torch", model, "--input", "1,3", "--device", "cuda")
        done = typed(*net, "35", baselines=None)
        assert ("thop, as reported" in done.output, "To run it:" in done.output) == (True, runs), model
        last = done.output.rstrip().splitlines()[-1]
        assert (last == f"reconcile run {' '.join(net)} --counter thop") == runs, last
    monkeypatch.setattr(sources, "gather", lambda *_, **__: ((replace(here, remark="saved"),), ()))
    assert "To run it:" not in typed("--model", "gru_demo", "35", baselines=None).output


@pytest.mark.parametrize("text", ["22,938,560 MACs", "22.9M MACs", "22.938M MACs"])
def test_a_wrong_label_is_a_sentence_of_its_own(text: str) -> None:
    """Twice thop's total is a number of FLOPs. No sentence ends with a colon and goes on."""
    said = sentences(typed("--model", "gru_demo", "--counter", "thop", text))
    assert ". Its label is wrong: the number is FLOPs, not MACs. " in said
    assert ": Its" not in said


@pytest.fixture
def taking(monkeypatch: pytest.MonkeyPatch) -> list[RunRequest]:
    """The requests of decode's runs, which end there."""
    asked: list[RunRequest] = []

    def take(request: RunRequest, *_: Any) -> Collected:
        asked.append(request)
        raise UsageError("this run ends here.")

    monkeypatch.setitem(sources.gather.__kwdefaults__, "take_at", take)
    monkeypatch.setitem(sources.gather.__kwdefaults__, "take", take)
    return asked


def test_a_model_of_the_users_own(taking: list[RunRequest]) -> None:
    done = typed("--torch", "net:make", "--input", "1,3:int64", "--timeout", "5", "77", baselines=None)
    assert "this run ends here" in done.output
    traced, request = taking
    assert (traced.device, traced.factories, request.device) == ("meta", request.factories, "cpu")
    assert request.factories == {"torch": "net:make"}
    assert [(i.shape, i.dtype) for i in request.inputs] == [((1, 3), "int64")]
    assert request.timeout == 5


def test_a_model_with_arguments(taking: list[RunRequest]) -> None:
    """As a row of an audit names one."""
    typed("--torch", "net:make(size=3)", "--input", "1,3", "77", baselines=None)
    assert ([r.factories for r in taking], [r.arguments for r in taking]) == (
        [{"torch": "net:make"}] * 2,
        [{"size": 3}] * 2,
    )


def test_bad_usage() -> None:
    for args, sentence in (
        (("-v", "-5", "--model", "gru_demo"), "'-5' is negative, but a count is not. Leave out the sign."),
        (("5",), "name a model"),
        (("--model", "gru_demo", "--torch", "net:make", "5"), "give one or the other"),
        (("--torch", "net:make", "5"), "--no-run looks at saved baselines"),
        (("--model", "gru_demo", "--with", "torch==2.4", "--environment", "tf-1.12", "5"), "give one of them"),
    ):
        done = typed(*args)
        assert done.exit_code == 2, args
        assert sentence in done.stderr
