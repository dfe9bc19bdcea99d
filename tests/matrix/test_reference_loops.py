"""``reconcile watch`` of a loop of the parts that timm trains with, on the newest PyTorch: the number of FlopCounterMode."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from reconcile.cli import cli
from reconcile.launch.environments.definitions import CURRENT, adhoc
from reconcile.launch.environments.provision import ensure

pytestmark = [pytest.mark.heavy, pytest.mark.frameworks, pytest.mark.timeout(1800)]

PACKAGES = ("torch==2.15.0", "torchvision==0.29.2", "timm==1.0.31", "pillow")
CLASSES = 6
ENTER = "from torch.utils.flop_counter import FlopCounterMode as _M; _m = _M(display=False); _m.__enter__()\n"
LEAVE = "_m.__exit__(None, None, None); print('BY HAND', _m.get_total_flops(), flush=True); import os; os._exit(0)\n"
OWN = f"""
import timm, torch
from timm.loss import LabelSmoothingCrossEntropy
from timm.optim import create_optimizer_v2
from timm.utils import ModelEmaV3, NativeScaler, dispatch_clip_grad

model = timm.create_model("resnet10t", num_classes={CLASSES}).train()
optimizer = create_optimizer_v2(model, opt="adamw", lr=0.001)
ema, loss_fn = ModelEmaV3(model, decay=0.9), LabelSmoothingCrossEntropy()
for number in range(2):
    image, label = torch.randn(2, 3, 32, 32), torch.zeros(2, dtype=torch.int64)
    # here
    loss = loss_fn(model(image), label)
    loss.backward()
    dispatch_clip_grad(model.parameters(), value=1.0)
    optimizer.step()
    optimizer.zero_grad()
    ema.update(model)
"""


@pytest.fixture(scope="module")
def python() -> Path:
    return ensure(adhoc(PACKAGES, CURRENT))


def test_the_step_of_a_loop_as_by_hand(python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """FlopCounterMode is entered where the step begins, and left after the step of the optimizer."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(OWN)
    by_hand = OWN.replace("    # here\n", f"    {ENTER}", 1).replace(
        "optimizer.step()\n", f"optimizer.step(); {LEAVE}", 1
    )
    done = subprocess.run([python, "-c", by_hand], capture_output=True, text=True, check=False)
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("BY HAND")] or [done.stderr]
    counters = ["--counter", "flop_counter", "--counter", "torch.profiler"]
    words = ["watch", "--quiet", "--format", "json", "--out", "out", "--python", str(python), *counters, "train.py"]
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 0, result.output
    report = json.loads((tmp_path / "out" / "train.json").read_text())
    (trace,) = report["traces"]
    assert f"BY HAND {trace['totals']['matmul']}" == line
    assert {s["from"]: s["residual"] for s in report["statements"]} == {"flop_counter": 0, "torch.profiler": 0}
    states = {ledger["counter"]: ledger["state"] for ledger in report["ledgers"]}
    assert states == {"flop_counter": "equal", "torch.profiler": "explained"}
