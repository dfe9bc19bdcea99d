"""A user's folder with modules named like ours and like the frameworks disturbs nothing, and is not disturbed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.own.conftest import Repository
from tests.programs import run_program

pytestmark = pytest.mark.frameworks

ROOT = Path(__file__).parents[2]

TRAP = "raise ImportError('the file in the working directory was imported')\n"

LIBRARY = ("random", "typing", "logging", "zipfile", "platform", "resource")
"""Modules of the standard library that frameworks import as they start."""

NET = """
    import adapters
    import model_zoo.sizes
    import reconcile
    from package import worker
    from reconcile import WIDTH
    import torch

    def make():
        assert adapters.MINE and worker.MINE and reconcile.MINE
        assert "reconcile.adapters" not in __import__("sys").modules
        return torch.nn.Linear(model_zoo.sizes.DEPTH, WIDTH), torch.ones(3, model_zoo.sizes.DEPTH)
"""


def test_a_repository_full_of_our_names(repository: Repository) -> None:
    """As the console script does: the folder of the script, not the working directory, starts the import path."""
    traps = (
        "torch",
        "tensorflow",
        "keras",
        "numpy",
        "thop",
        "fvcore",
        "click",
        "rich",
        "json",
        "records",
        "worker",
        *LIBRARY,
    )
    for name in traps:
        repository.write(**{name: TRAP})
    repository.write(
        net=NET,
        reconcile="MINE = True\nWIDTH = 2\n",
        adapters__of____init__="MINE = True\n",
        adapters__of__trace_torch=TRAP,
        model_zoo__of__sizes="DEPTH = 5\n",
        model_zoo__of__pair=TRAP,
        package__of__worker="MINE = True\n",
        given=TRAP,
    )
    script = repository.folder.parent / "bin" / "reconcile"
    script.parent.mkdir()
    start = f"import sys\nsys.path.insert(0, {str(ROOT)!r})\nfrom reconcile.cli import main\nmain()\n"
    script.write_text(start)
    command = [sys.executable, str(script), "run", "--torch", "net:make", "--counter", "thop", "--out", "out"]
    done = subprocess.run(command, cwd=repository.folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    data = json.loads((repository.folder / "out" / "net.make.json").read_text())
    assert {ledger["normalised_total"] for ledger in data["ledgers"]} == {2 * 3 * 5 * 2}


def test_python_m_takes_from_the_folder_only_its_namesake(tmp_path: Path) -> None:
    """Python itself decides what ``-m reconcile`` is, and looks in the folder first; after that, nothing is taken from there."""
    for name in ("click", "json", "numpy", "random", "torch", "zipfile"):
        (tmp_path / f"{name}.py").write_text(TRAP)
    command = ("-m", "reconcile", "explain", "counters")
    done = run_program(*command, folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    (tmp_path / "reconcile").mkdir()
    (tmp_path / "reconcile" / "__init__.py").write_text(TRAP)
    assert "the file in the working directory was imported" in run_program(*command, folder=tmp_path).stderr


@pytest.mark.slow
def test_what_a_module_of_the_tool_imports_is_still_the_tool(repository: Repository) -> None:
    """Without a module of that name in the folder, `reconcile` is this tool to the user's code as well."""
    repository.write(
        net="""
            from reconcile.model_zoo import conv_only
            from reconcile.model_zoo.pair import Params

            def make():
                params = Params(conv_only.PAIR.params)
                return conv_only.build_torch(params), __import__("torch").ones(conv_only.inputs(params)[0].shape)
        """
    )
    repository.report("net.make", "--torch", "net:make", "--counter", "thop")
