"""``reconcile sweep`` on the command line: what it writes, what it says and how it exits; nothing real is run."""

from __future__ import annotations

import csv
import json
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from reconcile.products.sweep import cell
from reconcile.products.sweep.outcome import refused_outcome
from tests.products.sweep.conftest import Sweep
from tests.products.sweep.fakes import answer


def test_a_page_two_tables_and_a_report_each(sweep: Sweep, tmp_path: Path) -> None:
    done = sweep("torch=net:make", "gru_demo", "--convention", "all", "--jobs", "2")
    assert (done.exit_code, done.stdout) == (0, "2 of 2 models reconciled; wrote sweep/README.md\n")
    assert sorted(done.stderr.splitlines()) == ["gru_demo: reconciled", "net.make: reconciled"]
    page = (tmp_path / "sweep" / "README.md").read_text()
    assert "`reconcile sweep torch=net:make gru_demo --convention all`" in page
    rows = list(csv.DictReader((tmp_path / "sweep" / "sweep.csv").read_text().splitlines()))
    assert [row["model"] for row in rows] == ["net.make"] * 2 + ["gru_demo"] * 2
    assert (tmp_path / "sweep" / "net.make.md").read_text() == "# net.make\n"
    assert (tmp_path / "sweep" / "costs.csv").read_text() == "model,wall_s,peak_bytes\nnet.make,0.1,1\ngru_demo,0.1,1\n"
    again = sweep("torch=net:make", "gru_demo", "--convention", "all", "-q")
    assert again.stdout == "2 of 2 models reconciled, 2 of them before; wrote sweep/README.md\n"
    assert again.stderr == ""
    assert sorted((tmp_path / "log").read_text().split()) == ["gru_demo", "net.make"]


def test_one_definition_in_the_frameworks_of_the_command(sweep: Sweep, tmp_path: Path) -> None:
    assert sweep("net:make", "--frameworks", "torch, jax", "--jobs", "1").exit_code == 0
    page = (tmp_path / "sweep" / "README.md").read_text()
    assert "`reconcile sweep net:make --frameworks 'torch, jax'`" in page
    for wrong in ("tf,keras", "tf,", "onnx"):
        done = sweep("net:make", "--frameworks", wrong)
        assert (done.exit_code, done.stdout) == (2, "")
        assert done.stderr == f"Error: frameworks are some of tf, torch, jax, not '{', '.join(wrong.split(','))}'.\n"


def test_that_nobody_listens_any_more_ends_no_sweep(
    sweep: Sweep, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def gone(*_words: str) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(
        sys.modules["reconcile.products.sweep.executors"], "bar", lambda _total, _quiet: nullcontext((gone, gone))
    )
    assert sweep("torch=net:make").stdout.startswith("1 of 1 models reconciled")
    assert (tmp_path / "sweep" / "net.make.md").is_file()


def test_what_a_model_says_of_itself_is_shown_and_does_nothing(sweep: Sweep, monkeypatch: pytest.MonkeyPatch) -> None:
    def hostile(text: str) -> str:
        said = json.loads(answer(text))
        name = said["outcome"]["name"]
        return json.dumps(
            {**said, "outcome": {**refused_outcome(name, {"torch": "\x1b[2J\nall is well"}), "exit_code": 2}}
        )

    monkeypatch.setattr(cell, "run_cell", hostile)
    done = sweep("torch=net:make")
    assert (done.exit_code, done.stderr) == (2, "net.make: refused in PyTorch: \\x1b[2J\\nall is well\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["gru_dem"], "unknown model 'gru_dem'. Did you mean gru_demo"),
        (["gru_demo", "--counter", "thopp"], "unknown counter 'thopp'. Did you mean thop"),
        (["gru_demo", "--convention", "al"], "unknown convention 'al'"),
        (["gru_demo", "--environment", "tf-2.3"], "unknown environment 'tf-2.3'"),
        (["gru_demo", "--format", "svg"], "'svg' is not a list of md, csv, json, html."),
        (["gru_demo", "--input", "1"], "--input is for factories"),
        (["gone.toml"], "cannot read the list gone.toml: No such file"),
        (["gru_demo", "--formulas", "gone.py"], "cannot read the file gone.py: No such file"),
        (["gru_demo", "--jobs", "2", "--dask", "tcp://x:1"], "--jobs is for this machine"),
        (["gru_demo", "--dask", "tcp://x:1"], "pip install 'flop-reconcile[dask]'"),
        (["torch=net:make", "--pass", "decode"], "a decoding step needs the number of tokens in its cache"),
        (["torch=net:make", "--context", "8"], "a context applies only to a decoding step"),
        ([], "Missing argument 'WHAT...'"),
    ],
)
def test_bad_usage_in_a_sentence(
    sweep: Sweep, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: list[str], said: str
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    done = sweep(*words)
    assert done.exit_code == 2
    assert said in done.stderr.replace("\n", " ")
    assert not (tmp_path / "sweep").exists()
