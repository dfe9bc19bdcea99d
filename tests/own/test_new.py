"""``reconcile zoo new`` and ``reconcile counter new``: the template runs, proves equivalent, and takes the place of nothing."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from reconcile.cli import cli
from tests.own.conftest import Repository

ROOT = Path(__file__).parents[2]


def new(name: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["zoo", "new", name], prog_name="reconcile")
    return result.exit_code, result.output


@pytest.mark.frameworks
@pytest.mark.slow
def test_the_template_runs(repository: Repository) -> None:
    assert new("my_pair") == (0, "wrote my_pair.py. Run it with: reconcile run --model ./my_pair.py\n")
    data = repository.report("my_pair", "--model", "./my_pair.py", "--set", "batch=3")
    assert {trace["totals"]["matmul"] for trace in data["traces"]} == {2 * 3 * (32 * 64 + 64 * 10)}
    assert [row["layer"] for row in data["layers"]] == ["hidden", "classes"]


@pytest.mark.slow
@pytest.mark.frameworks
def test_its_two_models_compute_the_same(repository: Repository) -> None:
    new("my_pair")
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from reconcile.products.gallery.parity import main; main(sys.argv[1])"
    file = str(repository.folder / "my_pair.py")
    done = subprocess.run([sys.executable, "-c", code, file], capture_output=True, text=True, check=True)
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["error"] < 1e-4
    assert said["varies"]


def test_a_file_that_is_there_is_left_as_it_is(repository: Repository) -> None:
    repository.write(my_pair="mine = True\n")
    assert new("my_pair.py") == (2, "Error: my_pair.py already exists. Choose another name.\n")
    assert (repository.folder / "my_pair.py").read_text() == "mine = True\n"


def test_a_name_that_cannot_be_one(repository: Repository) -> None:
    assert new("my-pair")[1].startswith("Error: 'my-pair' cannot name a Python module")
    assert new("nowhere/my_pair") == (2, "Error: cannot write nowhere/my_pair.py: No such file or directory.\n")
    assert list(repository.folder.iterdir()) == []


@pytest.mark.parametrize("group", ["zoo", "counter"])
@pytest.mark.parametrize("name", ["", " ", ".", "/", "..", "a/..", "m\udcff"])
def test_what_is_no_name_is_one_sentence(repository: Repository, group: str, name: str) -> None:
    done = CliRunner().invoke(cli, [group, "new", name], prog_name="reconcile")
    assert done.exit_code == 2
    assert done.stderr.startswith("Error: ")
    assert len(done.stderr.splitlines()) == 1
    assert list(repository.folder.iterdir()) == []


def test_a_full_disk_leaves_no_file(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", refuse)
    assert new("my_pair") == (2, "Error: cannot write my_pair.py: No space left on device.\n")
    assert list(repository.folder.iterdir()) == []
