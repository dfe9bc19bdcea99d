"""A cell's process: what it says, what happens when a user ends it, and that it ends with the process that started it."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import tempfile
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from reconcile.core.errors import EXIT_CRASHED, EXIT_FAILED, EXIT_USAGE, UsageError
from reconcile.products.sweep import cell
from reconcile.products.sweep.cells import Cell, Manner, request_of
from reconcile.products.sweep.engine import Finished, exit_code
from tests.launch.conftest import PATIENCE, until
from tests.products.sweep.fakes import MARK, marked

ROOT = Path(__file__).resolve().parents[3]


def request(model: str, **more: Any) -> str:
    return json.dumps({**request_of(Cell("cell", model=model), Manner(), ()), **more})


@pytest.fixture
def hangs(tmp_path: Path) -> Path:
    """A pair file that never comes back from its import, in a worker without any framework; it says when it is there."""
    path = tmp_path / "hangs.py"
    path.write_text(
        f"import pathlib, time\npathlib.Path({str(tmp_path / 'there')!r}).touch()\ntime.sleep(600)\nPAIR = 0\n"
    )
    return path


def test_another_tool_or_packages_than_the_keys_are_refused(tmp_path: Path) -> None:
    asked = json.loads(request("gru_demo"))
    found = cell.answer({**asked, "tool": "another"}, tmp_path)["outcome"]
    assert "another version of reconcile" in found["refused"][""]
    assert found["exit_code"] == 2
    found = cell.answer({**asked, "meets": {**asked["meets"], "click": "0.0.1"}}, tmp_path)["outcome"]
    assert "has click not installed, the one that started the sweep has 0.0.1" in found["refused"][""]


def test_a_model_that_cannot_be_read_is_refused_in_a_sentence(tmp_path: Path) -> None:
    """What it prints at home does not get into the answer."""
    (tmp_path / "bad.py").write_text("PAIR = 3\n")
    formulas = {"0-loud.py": "print('{')"}
    manner = Manner(texts={"formulas": formulas})
    said = json.loads(cell.run_cell(json.dumps(request_of(Cell("bad", model=str(tmp_path / "bad.py")), manner, ()))))
    assert "bad.py cannot be used" in said["outcome"]["refused"][""]
    assert said["cost"]["wall_s"] > 0
    assert said["cost"]["peak_bytes"] > 1 << 20
    assert not said["interrupted"]


def test_a_process_that_is_killed_says_so_and_leaves_nothing(
    hangs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(cell.run_cell, request(str(hangs)))
        assert until((hangs.parent / "there").exists)
        (process,) = cell.RUNNING
        process.kill()
        said = json.loads(future.result(PATIENCE))
    assert said["died"] == "its process was killed (signal 9: out of memory?)"
    assert not cell.RUNNING
    assert not list(temporary.iterdir())


def test_everything_ends_with_whoever_started_it(hangs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sweep's own process is killed: the cell, its worker and their folders go, too."""
    mark = uuid.uuid4().hex
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    code = "import sys; from reconcile.products.sweep.cell import run_cell; run_cell(sys.argv[1])"
    environ = {**os.environ, "PYTHONPATH": str(ROOT), MARK: mark, "TMPDIR": str(temporary)}
    with subprocess.Popen([sys.executable, "-c", code, request(str(hangs))], env=environ) as process:
        assert until((tmp_path / "there").exists)
        assert len(marked(**{MARK: mark})) >= 3
        assert list(temporary.iterdir())
        process.send_signal(signal.SIGKILL)
    assert until(lambda: not marked(**{MARK: mark}))
    assert not list(temporary.iterdir())


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (
            RuntimeError("a bug"),
            EXIT_CRASHED,
            "a defect of reconcile: RuntimeError: a bug (reconcile/products/sweep/cell.py, line ",
        ),
        (OSError(errno.EIO, "Input/output error", "/x"), EXIT_FAILED, "/x cannot be used: Input/output error."),
        (UsageError("no."), EXIT_USAGE, "no."),
    ],
)
def test_whose_fault_it_is_that_a_cell_was_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int, said: str
) -> None:
    def fails(*_words: object) -> None:
        raise error

    monkeypatch.setattr(cell, "_either", fails)
    found = cell.answer(json.loads(request("gru_demo")), tmp_path)
    assert found["outcome"]["exit_code"] == code
    assert found["outcome"]["refused"][""].startswith(said)
    assert found["interrupted"] == ""


@pytest.mark.parametrize(("codes", "worst"), [((0, 3, 4, 1), 4), ((2, 3, 1), 1), ((2, 3), 3), ((0, 2), 2), ((0,), 0)])
def test_the_worst_of_a_sweep(codes: tuple[int, ...], worst: int) -> None:
    assert exit_code([Finished({"exit_code": code}, {}) for code in codes]) == worst
