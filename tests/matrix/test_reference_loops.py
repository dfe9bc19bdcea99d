"""``reconcile watch`` of the loops that timm and torchvision train with, on the newest PyTorch: the number of FlopCounterMode.

A loop of our own, of the parts that timm's has, always runs. The scripts themselves are not in the packages. Set REFERENCE_LOOPS
to a folder that has timm's script as ``timm/train.py``, and ``references/classification`` of torchvision as ``vision``: then they
run unmodified as well, beside a copy that enters FlopCounterMode in its step.
"""

from __future__ import annotations

import json
import os
import random
import shlex
import subprocess
from pathlib import Path
from typing import Any

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
TIMM = (
    "--data-dir {data} --model resnet10t --device cpu -b 2 -vb 2 --img-size 32 --num-classes 6 -j 0 --epochs 1 --output {out} "
    "--opt adamw --clip-grad 1 --model-ema"
)
VISION = (
    "--data-path {data} --model squeezenet1_1 --device cpu -b 2 -j 0 --epochs 1 --train-crop-size 64 --val-resize-size 64 "
    "--val-crop-size 64 --model-ema --clip-grad-norm 1"
)
BEGINS = {"own": "    # here\n", "timm": "        def _forward():\n", "vision": "        with torch.cuda.amp.autocast("}
ARGUMENTS = {"own": "", "timm": TIMM, "vision": VISION}
SCRIPTS = Path(os.environ.get("REFERENCE_LOOPS", ""))
LOOPS = ["own", "timm", "vision"] if os.environ.get("REFERENCE_LOOPS") else ["own"]


@pytest.fixture(scope="module")
def python() -> Path:
    return ensure(adhoc(PACKAGES, CURRENT))


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """A folder of a few pictures of each class, as ImageFolder reads it: by content, whatever the name ends with."""
    numbers = random.Random(0)
    for split in ("train", "val"):
        for name in range(CLASSES):
            folder = tmp_path / "data" / split / str(name)
            folder.mkdir(parents=True)
            for i in range(2):
                (folder / f"{i}.png").write_bytes(b"P6 40 40 255\n" + numbers.randbytes(4800))
    return tmp_path / "data"


def by_hand(text: str, begins: str) -> str:
    """The script with FlopCounterMode entered where its step begins, left after the step of the optimizer."""
    assert text.count(begins) == 1
    indent = begins[: len(begins) - len(begins.lstrip())]
    before, after = text.split(begins)
    step, rest = after.split("optimizer.step()\n", 1)
    return f"{before}{indent}{ENTER}{begins}{step}optimizer.step(); {LEAVE}{rest}"


@pytest.mark.parametrize("loop", LOOPS)
def test_the_step_of_a_loop_as_by_hand(
    loop: str, python: Path, pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if loop == "own":
        (tmp_path / "train.py").write_text(OWN)
    folder = tmp_path if loop == "own" else SCRIPTS / loop
    monkeypatch.chdir(folder)
    copy = tmp_path / "by_hand.py"
    copy.write_text(by_hand((folder / "train.py").read_text(), BEGINS[loop]))
    arguments = shlex.split(ARGUMENTS[loop].format(data=pictures, out=tmp_path / "kept"))
    environ = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run([python, copy, *arguments], env=environ, capture_output=True, text=True, check=False)
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("BY HAND")] or [done.stderr]
    report = watched(python, tmp_path / "out", arguments)
    (trace,) = report["traces"]
    assert f"BY HAND {trace['totals']['matmul']}" == line
    assert {s["from"]: s["residual"] for s in report["statements"]} == {"flop_counter": 0, "torch.profiler": 0}
    states = {ledger["counter"]: ledger["state"] for ledger in report["ledgers"]}
    assert states == {"flop_counter": "equal", "torch.profiler": "explained"}


def watched(python: Path, out: Path, arguments: list[str]) -> Any:
    """The report of the script in this folder."""
    counters = ["--counter", "flop_counter", "--counter", "torch.profiler"]
    line = ["watch", "--quiet", "--format", "json", "--out", str(out), "--python", str(python), *counters, "train.py"]
    result = CliRunner().invoke(cli, [*line, *arguments])
    assert result.exit_code == 0, result.output
    return json.loads((out / "train.json").read_text())
