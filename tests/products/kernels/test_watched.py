"""``reconcile watch`` beside a file of Nsight Compute: the script's own call or step is held to what the GPU counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from reconcile.cli import cli
from reconcile.products.kernels import ncu

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.frameworks, pytest.mark.usefixtures("forked")]

HERE = Path(__file__).parent
SCRIPT = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(32, 128, 3, padding=1)
        self.b = nn.Conv2d(128, 128, 3, stride=2, padding=1)
        self.c = nn.Conv2d(128, 256, 1)

    def forward(self, x):
        return self.c(self.b(self.a(x)))

net = Net()
with torch.no_grad():
    for rows in (1, 4):
        net(torch.ones(rows, 32, 28, 28))
"""
TRAINING = """
import torch
net = torch.nn.Linear(4, 2)
torch.optim.SGD(net.parameters(), lr=0.1)
net(torch.ones(3, 4)).sum().backward()
"""


def test_a_call_is_held_to_the_kernels(tmp_path: Path) -> None:
    (tmp_path / "infer.py").write_text(SCRIPT)
    counted = HERE / "convs32.csv"
    line = ["watch", "--ncu", str(counted), "--out", str(tmp_path), "--calls"]
    done = CliRunner().invoke(cli, [*line, "2", str(tmp_path / "infer.py")])
    assert done.exit_code == 0, done.output
    assert "every product, kernel by kernel" in " ".join(done.output.split())
    found = json.loads((tmp_path / "infer.kernels.json").read_text())
    (statement,) = found["statements"]
    work = 2 * 4 * (28 * 28 * 128 * 32 * 9 + 14 * 14 * 128 * 128 * 9 + 14 * 14 * 256 * 128)
    assert (statement["residual"], statement["to_total"]) == (0, work)
    assert found["launches"] == len(ncu.read_launches(counted))
    done = CliRunner().invoke(cli, [*line, "1", str(tmp_path / "infer.py")])  # the call of one sample
    assert done.exit_code != 0


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_without_a_gpu_nothing_is_marked(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    done = CliRunner().invoke(cli, ["watch", "--mark", "--calls", "1", str(tmp_path / "train.py")])
    assert done.exit_code == 2
    assert "--mark names the kernels of a GPU for Nsight Compute, and this PyTorch has none." in done.output


def test_one_run_is_marked_and_another_one_held_to_it() -> None:
    done = CliRunner().invoke(cli, ["watch", "--mark", "--ncu", str(HERE / "mixed.csv"), "train.py"])
    assert done.exit_code == 2
    assert "give one of them" in done.output
