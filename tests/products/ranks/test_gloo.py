"""The proof of the fake worlds: two real processes, which pass their tensors over gloo, record the same products op by op."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from reconcile.launch.request import run_request
from reconcile.products.ranks import ranked

pytest.importorskip("torch")
from tests.products.ranks.gloo import products

pytestmark = pytest.mark.frameworks

MODELS = ("tp", "tp_again", "sequence", "fsdp", "ddp", "experts_apart", "vocabulary_shared")
STEPS = ("gpipe", "one_forward_one_backward", "interleaved")
ONE_OF_EACH = ("tp", "fsdp", "one_forward_one_backward", "experts_apart")
NAMES = [
    pytest.param(name, marks=pytest.mark.slow if name in ONE_OF_EACH else pytest.mark.heavy)
    for name in (*MODELS, *STEPS)
]
WORLD = 2


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("decoder.py", "experts.py", "gloo.py"):
        shutil.copy(Path(__file__).with_name(name), tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def really(name: str, folder: Path, program: str = "gloo.py") -> list[list[list[object]]]:
    """The products of each process that runs the program."""
    root = str(Path(__file__).parents[3])
    environment = {**os.environ, "PYTHONPATH": root, "OMP_NUM_THREADS": "1"}
    words = [
        [sys.executable, program, name, str(rank), str(WORLD), str(folder / "store"), f"{rank}.json"]
        for rank in range(WORLD)
    ]
    started = [subprocess.Popen(each, env=environment, stderr=subprocess.PIPE, text=True) for each in words]
    for process in started:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(WORLD)]


@pytest.mark.parametrize("name", NAMES)
def test_a_fake_rank_multiplies_what_a_real_one_does(folder: Path, name: str) -> None:
    where = f"experts:{name}" if name.startswith("experts") else f"decoder:{name}"
    request = run_request(torch=where, pass_="forward" if name in STEPS else "training")
    faked = ranked.run_ranks(request, WORLD, tuple(range(WORLD)))
    rows = [products(fold.trace) for fold in faked.folds]
    assert json.loads(json.dumps(rows)) == really(where, folder)
    assert min(map(len, rows)) > 0
