"""Input without a possible meaning gives one sentence with the place and the remedy: no framework starts, no file is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from reconcile.cli import cli
from reconcile.launch import runner

OWN = ("run", "--torch", "net:make", "--input", "1,4")
EMPTY = "is given without a value: give it one, or leave it out."


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, where nothing may start."""

    def started(*_: object, **__: object) -> None:
        raise AssertionError("a worker would start")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(runner, "start_workers", started)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("decode", "--model", "gru_demo", "1e999"), "'1e999' is too large for a count: the power of ten has at most two digits"),
        (("decode", "--model", "gru_demo", "4 x 10^123 MACs"), "'4 x 10^123 MACs' is too large for a count"),
        (("decode", "--model", "gru_demo", "4G", "-q", "-v"), "--quiet leaves out what --verbose asks for: give one of them."),
        (("run", "--torch", "net:make", "--input", f"{2**63},4"), f"'{2**63}' is too large for a size. Write [NAME=]SHAPE"),
        (("run", "--torch", "net:make", "--input", f"{'9' * 50},4"), "is too large for a size. Write [NAME=]SHAPE"),
        (("run", "--torch", "net:make", "--input", "-1,4"), "'-1' is not a size. Write [NAME=]SHAPE"),
        (("formula", "--torch", "net:make", "--input", "n,4", "--at", f"n=1..{2**63}"), f"'{2**63}' is too large for a size."),
        (("run", "--onnx", "/proc/cpuinfo"), "/proc/cpuinfo: the system makes it up while it is read"),
        (("run", "--tf", "/proc/self/mem"), "/proc/self/mem: it cannot be read: Input/output error."),
        (("decode", "--model", "gru_demo", "4.1", "GB"), "'4.1 GB' is not a number"),
        (("audit", ""), f"CLAIMS.csv {EMPTY}"),
        (("check", "", "b"), f"A.json {EMPTY}"),
        (("sweep", ""), "'' names no model: give a factory (net:make), a package (timm)"),
        (("sweep", "torch="), "'torch=' names no model: give a factory"),
        ((*OWN, "--signature", "x"), "--signature is for a SavedModel, a frozen graph or a .tflite file, and none is given"),
        ((*OWN, "--trust-file"), "--trust-file is for a model in a file, and none is given: leave it out."),
        (("run", "--model", "gru_demo", "--signature", "x"), "--signature is for a SavedModel, a frozen graph"),
        (("run", "--model", "gru_demo", "--trust-file"), "--trust-file is for a model in a file"),
        ((*OWN, "--python", ""), f"--python {EMPTY}"),
        ((*OWN, "--out", ""), f"--out {EMPTY}"),
        ((*OWN, "--out", " "), f"--out {EMPTY}"),
        ((*OWN, "--counter", ""), f"--counter {EMPTY}"),
        ((*OWN, "--formulas", ""), f"--formulas {EMPTY}"),
        (("run", "--model", ""), f"--model {EMPTY}"),
        (("run", "--torch", ""), f"--torch {EMPTY}"),
        ((*OWN, "-q", "-v"), "--quiet leaves out what --verbose asks for: give one of them."),
        ((*OWN, "--verbose", "--quiet"), "--quiet leaves out what --verbose asks for: give one of them."),
        ((*OWN, "--format", "md,,csv"), "--format: 'md,,csv' has an extra comma. Write md,csv."),
        ((*OWN, "--format", "json,"), "--format: 'json,' has an extra comma. Write json."),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, tuple) else "",
)  # fmt: skip
def test_it_is_one_sentence_and_exit_code_2(words: tuple[str, ...], says: str, here: Path) -> None:
    done = CliRunner().invoke(cli, list(words), prog_name="reconcile")
    assert (done.exit_code, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("Error: ")
    assert says in done.stderr
    assert len(done.stderr) < 400
    assert list(here.iterdir()) == []
