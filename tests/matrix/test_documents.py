"""Every command that a page of docs/ tells you to type is typed, section by section, beside the files that it speaks of.

Other tests type those of the README, corrections.md, formula.md, llm.md, olmoearth.md and pytest.md, and compare what they print.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.matrix.mfu_files import files
from tests.own.documents import commands
from tests.own.one_process import Commands, Done, started

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
OTHER_TESTS = ("cli.md", "corrections.md", "formula.md", "llm.md", "olmoearth.md", "pytest.md", "README.md")
PAGES = {path.name: path.read_text() for path in sorted((ROOT / "docs").glob("*.md")) if path.name not in OTHER_TESTS}
ELSEWHERE = {
    r"reconcile sweep transformers( --pass training)?$": "transformers",
    r"reconcile run --torch transformers:": "transformers", r"reconcile sweep diffusers$": "diffusers",
    r"reconcile sweep keras\.applications$": "keras",
    r"reconcile sweep keras\.applications --frameworks tf,torch,jax ": "keras-backends",
    r"reconcile sweep keras\.applications --dask ": "sweep", r"reconcile sweep (timm|torchvision) ": "libraries",
    r"reconcile zoo gallery$": "gallery", r"reconcile zoo scorecard$": "scorecard",
    r"reconcile matrix --model gru_demo$": "matrix", r"pip install 'flop-reconcile\[\w+\]'$": "demo",
    r"pip install -e \./reconcile-mine$": "test", r"reconcile counter (conform|draft) mine$": "test",
    r"reconcile run --jax ": "matrix", r"reconcile run --torch (titan|olmo):": "fresh", r"reconcile llm config\.json ": "llm",
    r"reconcile mfu .*--config config\.json": "llm",
}  # fmt: skip
"""What takes half an hour, or has to install something: the target of the Makefile that does so, or does the same."""

TORCH = "from torch import nn\n\n\n"
CLAIMS = 'model,input,figure,claim,source\ntorchvision:resnet18,"1,3,224,224",1.814,GFLOPS,its weights\n'
LAYERS = "[keras.layers.Permute((2, 3, 1)), keras.layers.Conv2D(8, 3)]"
TF = f"import keras\n\n\ndef make_tf():\n    return keras.Sequential({LAYERS})\n"
NET_TF = (
    "import keras\nimport numpy as np\n\n\ndef make():\n"
    f"    return keras.Sequential({LAYERS}), (np.ones((1, 3, 32, 32), 'float32'),)\n"
)
LAST = "nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10)"
IMAGES = TORCH + f"def make():\n    return nn.Sequential(nn.Conv2d(3, 8, 3), {LAST})\n"
BILLIONS = TORCH + "def make():\n    return nn.Conv2d(3, 62, 21, padding=10)\n"
PLAIN = TORCH + "def make_torch():\n    return nn.Conv2d(3, 8, 3)\n"
WITH_INPUT = (
    "import torch\nfrom torch import nn\n\n\ndef make():\n    return nn.Conv2d(3, 8, 3), (torch.ones(1, 3, 32, 32),)\n"
)
BOTH = "import torch\nfrom torch import nn\n\n\ndef make():\n    return nn.Linear(3, 4), (torch.ones(2, 3),)\n"
TOKENS = (
    TORCH
    + """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(100, 8), nn.Linear(8, 4)

    def forward(self, ids):
        return self.head(self.table(ids))


def make():
    return Net()
"""
)
NET = (
    TORCH
    + "class Net(nn.Sequential):\n    def __init__(self):\n        super().__init__(nn.Conv2d(1, 4, 3), nn.ReLU())\n"
)
ENCODER = """import torch
from torch import nn


def make():
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    return nn.TransformerEncoder(layer, 2), (torch.ones(1, 8, 64),)
"""
DECODER = """import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.keys, self.head = nn.Embedding(50, 8), nn.Linear(8, 8), nn.Linear(8, 50)

    def forward(self, input_ids, past_key_values=None, use_cache=False):
        x = self.embed(input_ids)
        k = self.keys(x)
        if past_key_values is not None:
            k = torch.cat([past_key_values[0][0], k], 1)
        y = torch.softmax(x @ k.transpose(1, 2), -1) @ k
        return {"logits": self.head(y), **({"past_key_values": ((k, k),)} if use_cache else {})}


def make():
    return Decoder()
"""
TRAIN = """import sys

import torch
from torch import nn

batch = int(sys.argv[1]) if len(sys.argv) > 1 else 4
model = nn.Linear(3, 4)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    model(torch.ones(batch, 3)).square().mean().backward()
    optimizer.step()
"""
COMPILED = """import keras


def compiled():
    model = keras.Sequential([keras.layers.Input((4,), batch_size=2), keras.layers.Dense(3)])
    model.compile("adamw", "mse")
    return model
"""
TOGETHER = """import torch
from torch import distributed, nn

distributed.init_process_group("gloo")
model = nn.parallel.DistributedDataParallel(nn.Linear(3, 4))
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    model(torch.ones(2, 3)).square().mean().backward()
    optimizer.step()
"""
COUNTED = (ROOT / "tests" / "products" / "kernels" / "mixed.csv").read_text()
"""What an H100 counted in a call of docs/kernels.md's model."""
RING, THREADS = ((ROOT / "docs" / "ranks" / name).read_text() for name in ("ring.py", "threads.py"))
PAIR = (ROOT / "model_zoo" / "conv1x1.py").read_text()
FILES = {
    r"--torch net:Net ": {"net.py": NET}, r"--torch net:make --input (ids=|input_ids=)": {"net.py": TOKENS},
    r"--pass (prefill|decode)": {"net.py": DECODER}, r"--torch net:make$": {"net.py": BOTH},
    r"--torch net:make --input (1,3,|8,3,)": {"net.py": IMAGES},
    r"--tf net_tf:make": {"net.py": WITH_INPUT, "net_tf.py": NET_TF}, r"--tf mine:": {"mine.py": f"{TF}\n\n{PLAIN}"},
    r"--torch package\.module:make": {"package/__init__.py": "", "package/module.py": TOKENS},
    r"--torch mynet:make": {"mynet.py": BILLIONS}, r"--torch encoder:make": {"encoder.py": ENCODER},
    r"--model \./net\.py": {"net.py": PAIR}, r"reconcile audit claims\.csv": {"claims.csv": CLAIMS},
    r"--tf net:compiled ": {"net.py": COMPILED}, r"--torch shared:": files(PAGES["ranks.md"]),
    r"--torch ring:": {"ring.py": RING}, r"--torch threads:": {"threads.py": THREADS},
    r"torchrun .*train\.py": {"train.py": TOGETHER},
    r"reconcile watch .*(train|infer)\.py": {"train.py": TRAIN, "infer.py": TRAIN},
    r"--ncu net\.csv": {"net.py": (ROOT / "docs" / "kernels" / "net.py").read_text(), "net.csv": COUNTED},
    r"reconcile mfu ": files(PAGES["mfu.md"]), r"--torch deployed:make": files(PAGES["decode.md"]),
    r"--torch (lenet|readme):": {path.name: path.read_text() for path in (ROOT / "docs" / "decode").glob("*.*")},
}  # fmt: skip
"""What a reader of these commands has."""
MADE = {
    r"net\.pt2": """
import torch, keras
model = torch.nn.Conv2d(3, 8, 3).eval()
torch.export.save(torch.export.export(model, (torch.ones(1, 3, 32, 32),)), "net.pt2")
keras.Sequential([keras.layers.Input((32, 32, 3), batch_size=1), keras.layers.Conv2D(8, 3)]).save("net.keras")
""",
    r"net\.onnx": """
import torch
import sys
sys.path.insert(0, ".")
from net import make
torch.onnx.export(make().eval(), (torch.ones(1, 3, 224, 224),), "net.onnx", dynamo=False)
""",
    r"\.\./venv/bin/python": """
import sys
from pathlib import Path
Path("../venv/bin").mkdir(parents=True, exist_ok=True)
Path("../venv/bin/python").write_text(f'#!/bin/sh\\nexec {sys.executable} "$@"\\n')
Path("../venv/bin/python").chmod(0o755)
""",
    r"--format github --quiet": """
import subprocess, sys
words = ["--torch", "net:Net", "--input", "1,1,32,32", "--update"]
subprocess.run([sys.executable, "-m", "reconcile", "check", *words], check=True)
""",
    r"reconcile check A\.json": """
import shutil
for name in "AB":
    shutil.copy(f"{ROOT}/reports/baselines/gru_demo/current.json", f"{name}.json")
""",
}
"""Programs that make files that are not written by hand."""


def sections() -> list[tuple[str, str, list[str]]]:
    """Page, heading and commands."""
    found = []
    for page, text in PAGES.items():
        for part in re.split(r"^## ", text, flags=re.MULTILINE):
            joined = part.replace("\\\n", " ")
            if typed := commands(joined):
                found.append((page, part.partition("\n")[0], typed))
    return found


def elsewhere(command: str) -> str:
    """The target that runs it; ''."""
    return next((target for pattern, target in ELSEWHERE.items() if re.search(pattern, command)), "")


def run(program: str, folder: Path, environment: dict[str, str]) -> None:
    words = [sys.executable, "-W", "ignore", "-c", program.replace("{ROOT}", str(ROOT))]
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def shell(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A folder to type in, and the environment of its shell, which knows ``reconcile``."""
    programs, folder = tmp_path / "bin", tmp_path / "here"
    programs.mkdir()
    folder.mkdir()
    for name, module in (("reconcile", "reconcile"), ("torchrun", "torch.distributed.run")):
        (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable} -m {module} "$@"\n')
        (programs / name).chmod(0o755)
    path = os.pathsep.join((str(programs), os.environ["PATH"]))
    return folder, {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}


SECTIONS = sections()


MINUTES = (
    "Count a model of your own", "A script as it is", "Report a bug of a counter", "Count all sizes at once",
    "Upgrade a framework, or check a published figure", "A figure that a counter prints in its README",
    "The same network at other sizes and settings", "Use the zoo", "Correct the alignment",
    "A disclosure of training operations", "What your modules see", "One command", "Real processes", "Threads with such numbers",
)  # fmt: skip
"""Headings of sections that take up to a minute each: other tests run these commands on smaller models."""


def section(page: str, heading: str, typed: list[str]) -> Any:
    mark = pytest.mark.heavy if heading in MINUTES else pytest.mark.matrix
    return pytest.param(page, heading, typed, marks=mark, id=f"{page}: {heading}")


@pytest.fixture(scope="module")
def commands_here() -> Iterator[Commands]:
    with started(sys.executable, "warm") as commands:
        yield commands


PLAIN_WORDS = re.compile(r"reconcile (run|check|decode|audit) (?!.*--formulas)[^|&;<>$]+")
"""Commands that need no shell, and after which nothing is left in the process that ran them."""


def typed_in(command: str, folder: Path, environment: dict[str, str], here: Commands) -> Done:
    if PLAIN_WORDS.fullmatch(command):
        return here(*shlex.split(command, comments=True)[1:], folder=folder)
    words = ["bash", "-c", command]
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(("page", "heading", "typed"), [section(*each) for each in SECTIONS])
def test_every_command_runs(
    page: str, heading: str, typed: list[str], shell: tuple[Path, dict[str, str]], commands_here: Commands
) -> None:
    folder, environment = shell
    failed = {}
    for command in typed:
        if elsewhere(command):
            continue
        for pattern, texts in FILES.items():
            for name, text in texts.items() if re.search(pattern, command) else ():
                (folder / name).parent.mkdir(exist_ok=True)
                (folder / name).write_text(text)
        for pattern, program in MADE.items():
            if re.search(pattern, command):
                run(program, folder, environment)
        done = typed_in(command, folder, environment, commands_here)
        if done.returncode or "Traceback" in done.stderr:
            failed[command] = f"exit code {done.returncode}: {done.stdout[-1500:]}{done.stderr[-1500:]}"
    assert failed == {}


@pytest.mark.matrix
def test_the_sections_that_take_minutes_are_there() -> None:
    assert set(MINUTES) <= {heading for _, heading, _ in SECTIONS}


@pytest.mark.matrix
def test_what_is_left_to_others_is_typed_and_has_its_target() -> None:
    every = [command for _, _, typed in SECTIONS for command in typed]
    assert [pattern for pattern in ELSEWHERE if not any(re.search(pattern, command) for command in every)] == []
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(ELSEWHERE.values()) - targets == set()
    assert len([command for command in every if not elsewhere(command)]) > 40
