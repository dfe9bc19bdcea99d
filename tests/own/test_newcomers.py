"""Five newcomers, from an installed wheel in an empty folder: at most three commands and two pages to the answer.

Each page is named by the README, and each command stands in the README or on one of the pages, but for the model's own name.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from reconcile.launch.environments.interpreters import clean_environ, uv_command
from tests.home.test_packaging import ROOT, build, left_out

pytestmark = [pytest.mark.frameworks, pytest.mark.matrix, pytest.mark.timeout(600)]

NET = """
from torch import nn

class Net(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(1, 8, {kernel}), nn.Flatten(), nn.LazyLinear(10))
"""
KERAS = """
import keras

def make():
    return keras.Sequential([keras.layers.Input((16,), batch_size=2), keras.layers.Dense(4)])
"""
FWD = """
import jax.numpy as jnp

def fwd(ids):
    return jnp.ones((2, 3)).T @ ids
"""
LLAMA = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100,
}  # fmt: skip
PACKAGES = {"engineer": ("transformers==5.24.0",), "jax_user": ("jax==0.10.2", "jaxlib==0.10.2")}
"""What pip installs besides."""


class Shell:
    """An empty folder, and a shell in it that has the wheel and nothing else of this tree."""

    def __init__(self, folder: Path, python: Path) -> None:
        self.folder, self.python = folder, python
        self.typed: list[str] = []

    def __call__(self, command: str, code: int = 0) -> str:
        """What the command prints, on both streams."""
        self.typed.append(command)
        program, *words = command.split()
        assert program == "reconcile"
        environ = {**clean_environ(), "COLUMNS": "80", "JAX_PLATFORMS": "cpu"}
        line = [str(self.python), "-W", "ignore", "-m", program, *words]
        done = subprocess.run(line, cwd=self.folder, capture_output=True, text=True, env=environ, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return " ".join((done.stdout + done.stderr).split())

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tree = Path(shutil.copytree(ROOT, tmp_path_factory.mktemp("tree") / "t", symlinks=True, ignore=left_out))
    return build(tree, tmp_path_factory.mktemp("wheel") / "out", "wheel")


@pytest.fixture
def shell(request: pytest.FixtureRequest, tmp_path: Path, wheel: Path) -> Shell:
    """The wheel as pip installs it, over the frameworks and counters that run this; JAX and transformers come from the index."""
    python = tmp_path / "env" / "bin" / "python"
    packages = PACKAGES.get(request.param.__name__, ())
    for words in (
        ["venv", "--quiet", str(tmp_path / "env")],
        ["pip", "install", "--quiet", "--python", str(python), str(wheel), *packages],
    ):
        subprocess.run([*uv_command(), *words], check=True, cwd=tmp_path, env=clean_environ())
    (site,) = (tmp_path / "env" / "lib").glob("python*/site-packages")
    (site / "frameworks.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    folder = tmp_path / "empty"
    folder.mkdir()
    return Shell(folder, python)


def told(options: str, *pages: str) -> None:
    """Assert that the README or one of at most two of its pages shows a command with these options."""
    assert len(pages) <= 2
    readme = (ROOT / "README.md").read_text()
    assert [page for page in pages if f"]({page})" not in readme] == []
    texts = [readme, *((ROOT / page).read_text() for page in pages)]
    for option in options.split():
        assert [text for text in texts if option in text], f"{option} stands on none of README, {', '.join(pages)}"


def engineer(shell: Shell) -> None:
    """A language model's training step: the numbers for MFU and HFU, and which formula is right."""
    told("llm --seq", "docs/counters/formula.md")
    shell.write("config.json", json.dumps(LLAMA))
    said = shell("reconcile llm config.json --seq 32")
    assert re.search(r"MFU: [\d,.]+ FLOPs per token \([\d,]+ per step\)", said)
    assert "Right for this model" in said


def reviewer(shell: Shell) -> None:
    """A number in a paper: was it counted by thop? It is thop's, in MACs."""
    told("decode --counter --torch --input", "docs/decode.md")
    shell.write("net.py", NET.format(kernel=3).replace("nn.LazyLinear(10)", "nn.Linear(8 * 30 * 30, 10)"))
    macs = 8 * 30 * 30 * 9 + 8 * 30 * 30 * 10
    said = shell(f"reconcile decode --counter thop --torch net:Net --input 1,1,32,32 {macs}")
    assert "thop" in said


def keras_user(shell: Shell) -> None:
    """tf.profiler's number of a Keras model, and a training step with AdamW."""
    told("run --tf --pass --optimizer", "docs/usage.md")
    shell.write("net.py", KERAS)
    said = shell("reconcile run --tf net:make --out out")
    assert "From tf.profiler@frozen to trace@tf" in said
    assert "@frozen: tf.profiler on the frozen function's graph" in said
    assert f"{2 * 2 * 16 * 4} FLOPs" in said
    step = shell("reconcile run --tf net:make --pass training --optimizer adamw --out out")
    assert f"for MFU and HFU: {2 * 2 * 2 * 16 * 4} FLOPs per step" in step  # the input needs no gradient


def jax_user(shell: Shell) -> None:
    """A function of arrays, and cost_analysis's number of it."""
    told("run --jax", "docs/jax.md")
    shell.write("net.py", FWD)
    said = shell("reconcile run --jax net:fwd --input 2,8 --out out")
    assert f"xla@lowered {2 * 2 * 3 * 8} FLOP" in said
    assert "Reconciled: 2 counters, 2 exact." in said


def maintainer(shell: Shell) -> None:
    """A baseline of one's own model, and a change that is told once."""
    told("check --torch --input --update", "docs/pull-requests.md")
    net = NET.replace("nn.LazyLinear(10)", "nn.ReLU()")
    shell.write("net.py", net.format(kernel=3))
    shell(re.findall(r"Take one with: (.*)", shell("reconcile check --torch net:Net --input 1,1,32,32", 2))[0])
    shell.write("net.py", net.format(kernel=5))
    moved = shell("reconcile check --torch net:Net --input 1,1,32,32", 1)
    before, after = (2 * 8 * (33 - kernel) ** 2 * kernel**2 for kernel in (3, 5))
    assert f"0 {before:,} -> {after:,}, +142.0 %: kernel 3x3 to 5x5" in moved
    assert round(1000 * (after - before) / before) == 1420


@pytest.mark.parametrize("shell", [engineer, reviewer, keras_user, jax_user, maintainer], indirect=True)
def test_the_way_to_the_answer(request: pytest.FixtureRequest, shell: Shell) -> None:
    newcomer = request.node.callspec.params["shell"]
    newcomer(shell)
    assert 1 <= len(shell.typed) <= 3, shell.typed
