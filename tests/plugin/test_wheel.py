"""The plugin as a user has it: a project of its own, and nothing of this one but the built wheel."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.programs import build_wheel

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]

PAIR = '''"""One dense layer."""

from reconcile.model_zoo.pair import Input, Layer, Pair

PAIR = Pair(name="tiny", params={"width": 8}, layers=(Layer("dense", tf="dense", torch="dense"),))


def inputs(p):
    return [Input("x", (2, 3))]


def build_torch(p):
    import torch

    class Tiny(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.dense = torch.nn.Linear(3, p.width)

        def forward(self, x):
            return self.dense(x)

    return Tiny()
'''
TEST = """
def test_it(flops):
    flops.check("tiny.py")

def test_budget(flops):
    assert flops.budget("tiny.py", max_flops=2 * 2 * 8 * 3) == {"torch": 2 * 2 * 8 * 3}
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, unpacked where nothing else is."""
    place = tmp_path_factory.mktemp("site")
    zipfile.ZipFile(build_wheel(tmp_path_factory)).extractall(place)
    return place


def test_a_project_of_its_own(site: Path, tmp_path: Path) -> None:
    (tmp_path / "tiny.py").write_text(PAIR)
    (tmp_path / "test_tiny.py").write_text(TEST)

    def run(*args: str) -> tuple[int, str]:
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "COV"))}
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", *args],
            cwd=tmp_path, env={**environment, "PYTHONPATH": str(site)}, capture_output=True, text=True,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    code, said = run("test_tiny.py::test_it")
    assert (code, "Take one with: pytest --flops-update test_tiny.py" in said) == (1, True), said
    code, said = run("--flops-update")
    assert (code, "FLOP baselines accepted" in said) == (0, True), said
    assert [p.name for p in (tmp_path / "test_tiny.flops").iterdir()] == ["tiny.json"]
    held = (tmp_path / "test_tiny.flops" / "tiny.json").read_text()
    assert str(tmp_path) not in held
    code, said = run("-W", "error")
    assert (code, "2 passed" in said) == (0, True), said
    (tmp_path / "tiny.py").write_text(PAIR.replace('"width": 8', '"width": 9'))
    code, said = run()
    assert code == 1
    assert "was taken with width=8, this run has width=9" in said
    assert "accept the new ones with --flops-update" in said
    (tmp_path / "tiny.py").write_text(PAIR.replace("(3, p.width)", "(3, p.width + 1)"))
    code, said = run()
    assert code == 1
    for words in (
        "96 to 108 FLOPs, +12.5 %: dense, (3, 8) to (3, 9)",
        "dense  96 -> 108, +12.5 %",
        "thop, fvcore, flop_counter: the same change, and no other",
        "the pair file was edited in between",
        "tiny does 108 FLOPs in torch (convention matmul); the budget is 96: 12 too many",
    ):
        assert words in said, said
