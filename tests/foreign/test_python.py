"""``--python``: the workers run in a user's own environment, where nothing is installed and nothing is written."""

from __future__ import annotations

import json
import shutil
import sys
from base64 import urlsafe_b64encode
from hashlib import sha256
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from reconcile.adapters.shared.distribution import OtherPackage, version_of
from reconcile.core.errors import UsageError
from reconcile.core.registry import known_counters
from reconcile.launch.environments import cache
from reconcile.launch.environments.definitions import CURRENT, adhoc, at
from reconcile.launch.request import RunRequest, run_request
from reconcile.launch.runner import _make_missing
from reconcile.launch.workers import lend as lending
from reconcile.launch.workers.lend import lend
from reconcile.launch.workers.worker_files import Outcome
from reconcile.matrix import run as matrix
from reconcile.worker.import_path import PACKAGE_WAS_LENT
from tests.foreign.conftest import Make, Repository, everything, packages

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]

TRAP = "raise ImportError('the wrong file was imported: ' + __file__)\n"

NET = """
    import json, os, sys, typing
    import numpy, torch
    from torch import nn
    import click, datasets, records, worker
    import reconcile
    from by_path import SIZE
    from spaces.inner import DEPTH
    from tests.helpers import WIDTH

    MEAN = torch.ones(DEPTH, 1, 1)  # made when this is imported, on a real device

    class Centred(nn.Module):
        def forward(self, x):
            return x - MEAN

    def make():
        ours = [name for name in sys.modules if name.startswith("reconcile")]
        assert ours == ["reconcile"] and reconcile.STALE, ours
        assert click.MINE and datasets.MINE and records.MINE and worker.MINE
        assert [module for module in (numpy, torch) if "site-packages" not in module.__file__] == []
        assert json.dumps and typing.Any and sys.modules["sitecustomize"].THERE
        assert sys.prefix.endswith("linked"), sys.prefix
        return nn.Sequential(Centred(), nn.Conv2d(DEPTH, WIDTH, SIZE), nn.ReLU()), torch.ones(1, DEPTH, 9, 8)
"""


def test_nothing_there_is_disturbed_or_disturbs(
    repository: Repository, environment: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Modules of theirs named like ours, like packages and like the standard library's; a package of theirs without an
    ``__init__``; an older version of this tool in their environment, which is a link; no fvcore, which is lent."""
    venv = environment("an environment é", without=("fvcore",)).parents[1]
    (packages(venv) / "reconcile").mkdir()
    (packages(venv) / "reconcile" / "__init__.py").write_text("STALE = True\n")
    (packages(venv) / "datasets.py").write_text(TRAP)
    (packages(venv) / "sitecustomize.py").write_text("THERE = True\n")  # imported at every start
    linked = venv.parent / "linked"
    linked.symlink_to(venv, target_is_directory=True)
    folder = repository.folder = repository.folder / "a folder ü"
    folder.mkdir()
    monkeypatch.chdir(folder)
    elsewhere = folder.parent / "lib"
    elsewhere.mkdir()
    (elsewhere / "by_path.py").write_text("SIZE = 3\n")
    monkeypatch.setenv("PYTHONPATH", str(elsewhere))
    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    traps = ("torch", "numpy", "json", "typing", "thop", "fvcore", "boot", "given", "sitecustomize", "conftest")
    repository.write(**dict.fromkeys(traps, TRAP))
    repository.write(**dict.fromkeys(("click", "datasets", "records", "worker"), "MINE = True\n"))
    repository.write(net=NET, adapters__of____init__=TRAP, model_zoo__of__pair=TRAP)
    repository.write(spaces__of__inner="DEPTH = 4\n", tests__of____init__="", tests__of__helpers="WIDTH = 5\n")
    (folder / ".env").write_text("PYTHONPATH=/nowhere\n")
    before = everything(folder), everything(venv)

    result = repository.run("--torch", "net:make", "--python", str(linked / "bin" / "python"), "--out", "../out")
    assert result.exit_code == 0, result.output
    assert (everything(folder), everything(venv)) == before
    data = json.loads((folder.parent / "out" / "net.make.json").read_text())
    work = 2 * (7 * 6 * 5) * (4 * 3 * 3)
    found = {ledger["counter"]: ledger["normalised_total"] for ledger in data["ledgers"]}
    assert found == {"thop": work, "fvcore": work, "flop_counter": work}
    assert {s["residual"] for s in data["statements"]} == {0}
    assert {ledger["counter"] for ledger in data["ledgers"] if ledger["notes"] == [PACKAGE_WAS_LENT]} == {"fvcore"}
    assert data["environment"]["fvcore"] == version("fvcore")


def test_an_environment_that_is_made_borrows_as_well(
    repository: Repository, environment: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """``matrix --with torch==2.13.0`` has PyTorch alone; and no release of a counter is kept that nothing pins."""
    python = environment(without=("thop", "fvcore"))
    monkeypatch.setattr(matrix, "ensure", lambda _env, _say: python)
    monkeypatch.setattr(cache, "cache_root", lambda: tmp_path / "kept" / "environments")
    found = matrix.run_matrix(run_request(model="conv1x1"), [adhoc(("torch==2.13.0",), CURRENT)])
    (cell,) = found.cells
    assert (found.exit_code, cell.reason, cell.result is not None) == (0, "", True)
    assert cell.result is not None
    notes = {ledger.counter: ledger.notes for ledger in cell.result.ledgers}
    assert notes == {"thop": (PACKAGE_WAS_LENT,), "fvcore": (PACKAGE_WAS_LENT,), "flop_counter": ()}
    assert not (tmp_path / "kept").exists()


def test_an_environment_without_the_framework_is_refused(repository: Repository, environment: Make) -> None:
    repository.write(net="def make():\n    pass\n", torch=TRAP)
    python = environment(without=("torch",))
    assert repository.refusal("--torch", "net:make", "--python", str(python)) == (
        f"PyTorch is not installed for {python}; install it there, or choose another Python with --python."
    )
    assert not list(repository.logs.iterdir())


def test_what_is_missing_there_is_named_with_what_to_do() -> None:
    request = RunRequest("", {}, python="/venv/bin/python", user_python=True)
    fvcore = _make_missing("fvcore", "torch", Outcome(None, "", "fvcore"), request)
    assert (fvcore.state.value, fvcore.reason) == (
        "skipped",
        "fvcore is not installed for /venv/bin/python; install it there, or leave it out with --counter.",
    )
    iopath = _make_missing("fvcore", "torch", Outcome(None, "the package iopath is not installed", "iopath"), request)
    assert (iopath.state.value, iopath.reason) == ("failed", "the package iopath is not installed")
    torch = _make_missing("thop", "torch", Outcome(None, "", "torch"), request)
    assert torch.reason.startswith("PyTorch is not installed for /venv/bin/python; install it there")
    request = RunRequest("", {}, python="/made/bin/python", python_version="3.11")
    torch = _make_missing("thop", "torch", Outcome(None, "", "torch"), request)
    assert torch.reason == "PyTorch is not installed in that environment; add torch to its requirements"


def test_a_failed_part_of_a_framework_is_not_taken_for_missing() -> None:
    """It has no package of its own, and a failure that misses no module has no name of one."""
    outcome = Outcome(None, "RuntimeError: it broke", "")
    assert known_counters()["flop_counter"].package == outcome.missing == ""
    failed = _make_missing("flop_counter", "torch", outcome, RunRequest("", {}))
    assert (failed.state.value, failed.reason) == ("failed", "RuntimeError: it broke")


def test_what_is_lent_is_python_alone_and_runs_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def distribution(name: str, *metadata: str, pure: bool = True) -> None:
        info = tmp_path / "site" / f"{name}-1.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("\n".join(["Metadata-Version: 2.1", f"Name: {name}", "Version: 1", *metadata]))
        (info / "WHEEL").write_text(f"Root-Is-Purelib: {str(pure).lower()}\n")
        (info / "RECORD").write_text(
            f"{name}.py,,\n{info.name}/METADATA,,\n../../../bin/{name},,\n__pycache__/x.pyc,,\n"
        )
        (info.parent / f"{name}.py").write_text("")

    needs = (
        "Requires-Dist: helper",
        "Requires-Dist: compiled",
        "Requires-Dist: helper",
        'Requires-Dist: x; extra == "y"',
    )
    distribution("thop", *needs)
    distribution("helper", "Requires-Python: >=3.9", "Requires-Dist: thop")
    distribution("compiled", pure=False)
    distribution("fvcore", "Requires-Python: >=3.12")
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.setattr(lending, "known_counters", lambda: {n: c for n, c in known_counters().items() if c.default})
    lent = {"thop.py", "thop-1.dist-info", "helper.py", "helper-1.dist-info"}
    assert {p.name for p in lend(tmp_path / "a", "3.11").iterdir()} == lent
    assert {p.name for p in lend(tmp_path / "b", "3.12").iterdir()} == {*lent, "fvcore.py", "fvcore-1.dist-info"}
    assert {p.name for p in lend(tmp_path / "c", "3.8").iterdir()} == set()


def test_what_is_no_interpreter_is_one_sentence(tmp_path: Path) -> None:
    def script(name: str, text: str) -> str:
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return str(path)

    (tmp_path / "plain").write_text("")
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    cases = {
        str(tmp_path / "nothing"): "nothing does not exist. Give an interpreter, such as .venv/bin/python.",
        str(tmp_path / "gone"): "gone is a link to a file that does not exist.",
        str(tmp_path): "bin/python does not exist.",
        str(tmp_path / "plain"): "plain cannot be started: Permission denied.",
        script("ls", "echo hello"): "ls is not a working Python interpreter.",
        script("shim", "echo 'pyenv: command not found' >&2; exit 127"): "(pyenv: command not found).",
        script("old", "echo noise; echo '2.7 /usr/bin/python2'"): "this is Python 2.7; a worker needs 3.6 or later.",
        script("older", "echo '3.5 /usr/bin/python3.5'"): "this is Python 3.5; a worker needs 3.6 or later.",
        "no-such-command": "no-such-command does not exist.",
    }
    for python, why in cases.items():
        with pytest.raises(UsageError) as refused:
            at(python)
        said = str(refused.value)
        assert said.startswith(f"--python {python}: ")
        assert why in said
        assert "\n" not in said


def test_an_interpreter_is_taken_by_path_folder_or_name(environment: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    python = environment("my venv", without={p.name for p in Path(sys.prefix).glob("lib/python*/site-packages/*")})
    monkeypatch.chdir(python.parents[1].parent)
    assert {at(text).interpreter for text in (str(python), "my venv", "my venv/bin/python")} == {python}
    assert at(str(python)).name == "python-my-venv"
    shutil.copy(python, python.with_name("my-python"), follow_symlinks=False)
    monkeypatch.setenv("PATH", str(python.parent))
    assert at("my-python").interpreter == python.with_name("my-python")


FORK = "ultralytics-thop 9.8.7"


def fork(where: Path) -> None:
    """A package thop of another distribution, as its installer leaves it: another formula, and its own list of files."""
    shutil.copytree(Path(find_spec("thop").origin).parent, where / "thop")  # type: ignore[union-attr, arg-type]
    table = where / "thop" / "profile.py"
    table.write_text(table.read_text().replace("nn.Linear: count_linear", "nn.Linear: zero_ops"))
    info = where / "ultralytics_thop-9.8.7.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ultralytics-thop\nVersion: 9.8.7\n")
    digest = urlsafe_b64encode(sha256(table.read_bytes()).digest()).rstrip(b"=").decode()
    (info / "RECORD").write_text(f"thop/profile.py,sha256={digest},{table.stat().st_size}\n")


def test_a_fork_of_a_counter_is_named_and_not_explained(repository: Repository, environment: Make) -> None:
    """thop itself is lent there, and with it its metadata; what is imported is the fork."""
    python = environment(without=("thop",))
    fork(packages(python.parents[1]))
    repository.write(net="import torch\ndef make():\n    return torch.nn.Linear(5, 4), torch.ones(3, 5)\n")
    result = repository.run("--torch", "net:make", "--python", str(python), "--counter", "thop", "--counter", "fvcore")
    assert result.exit_code == 3, result.output
    data = json.loads((repository.folder / "out" / "net.make.json").read_text())
    totals = {ledger["counter"]: ledger["normalised_total"] for ledger in data["ledgers"]}
    assert totals == {"thop": None, "fvcore": 2 * 3 * 5 * 4}
    (reason,) = [ledger["reason"] for ledger in data["ledgers"] if ledger["counter"] == "thop"]
    assert reason == (
        f"the module thop here belongs to {FORK}, which counts by its own rules, not by those of thop, so its "
        "totals cannot be explained; install thop in an environment without ultralytics-thop, or leave this counter out"
    )


def test_the_file_decides_where_two_distributions_claim_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are installed in one folder, where the last one's files are."""
    fork(tmp_path)
    (info,) = tmp_path.glob("*.dist-info")
    thop = tmp_path / "thop-0.1.dist-info"
    thop.mkdir()
    (thop / "METADATA").write_text("Metadata-Version: 2.1\nName: thop\nVersion: 0.1\n")
    record = thop / "RECORD"
    record.write_text("thop/profile.py,sha256=another,1\n")
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    table = SimpleNamespace(__name__="thop.profile", __file__=str(tmp_path / "thop" / "profile.py"))
    with pytest.raises(OtherPackage, match=f"^the module thop here belongs to {FORK}"):
        version_of("thop", table)
    elsewhere = tmp_path / "elsewhere" / thop.name  # its list has the digest, and its file is another
    elsewhere.mkdir(parents=True)
    (elsewhere / "METADATA").write_text((thop / "METADATA").read_text())
    (elsewhere / "RECORD").write_text((info / "RECORD").read_text())
    monkeypatch.setattr("sys.path", [str(elsewhere.parent), str(tmp_path)])
    with pytest.raises(OtherPackage, match=f"^the module thop here belongs to {FORK}"):
        version_of("thop", table)
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    fork_record, other = info / "RECORD", record.read_text()
    record.write_text(fork_record.read_text())
    fork_record.write_text(other)
    assert version_of("thop", table) == "0.1"
    record.write_text(other)
    with pytest.raises(OtherPackage, match=f"claimed by thop 0.1 and {FORK}, but its file matches none of them"):
        version_of("thop", table)
    fork_record.unlink()
    assert version_of("thop", table) == "0.1"  # mended by hand, and no other's
    record.unlink()
    assert version_of("thop", table) == "0.1"  # of a source tree
