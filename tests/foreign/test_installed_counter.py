"""Another author's counter as users have it: its wheel and this tool's, installed into a fresh environment.

Nothing there is of this repository. The conformance kit passes the counter, and fails it with each fault that is planted.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from reconcile.launch.environments.interpreters import clean_environ, uv_command
from tests.programs import build, build_wheel

from .conftest import packages, virtual

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

PACKAGE = Path(__file__).parent / "tiny_counter"
Install = Callable[..., Path]

WEIGHT = 'prod(op.attrs["weight"][1:])'
FAULTS = {
    "a rule that counts something else": ("rules.py", WEIGHT, f"({WEIGHT} + 1)", "residual 0"),
    "a rule for one batch size alone": (
        "rules.py",
        f"* {WEIGHT}",
        f"* 2 // op.inputs[0].shape[0] * {WEIGHT}",
        "family_dense[batch=4]: residual 0",
    ),
    "an entry without a rule": ("rules.py", "linear.Linear", "linear.Bilinear", "residual 0"),
    "a total that is not the sum": ("capture.py", "sum(counts.values())", "sum(counts.values()) + 1", "residual 0"),
    "amounts that no rule gives": (
        "rules.py",
        'bridge = partial(bridge_modules, hooks=Hooks("tiny", BOOK, hides=False))',
        "from dataclasses import replace\ndef bridge(view, trace):\n"
        '    made = bridge_modules(view, trace, Hooks("tiny", BOOK, hides=False))\n'
        "    return replace(made, items=tuple(replace(i, ran=i.ran + i.ran) for i in made.items))",
        "amounts follow from evidence",
    ),
    "a training step that it does not see": ("__init__.py", 'blind="sees the forward pass only"', 'blind=""', "training"),
}  # fmt: skip


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This tool's wheel."""
    return build_wheel(tmp_path_factory)


@pytest.fixture
def install(tool: Path, tmp_path: Path) -> Install:
    """``install(file, old, new)``: the interpreter of a fresh environment with both wheels, the counter changed there."""

    def made(*change: str) -> Path:
        source = Path(shutil.copytree(PACKAGE, tmp_path / "source", ignore=shutil.ignore_patterns("__pycache__")))
        if change:
            file, old, new = change
            text = (source / "reconcile_tiny" / file).read_text()
            assert text.count(old) == 1
            (source / "reconcile_tiny" / file).write_text(text.replace(old, new))
        wheel = build(source, tmp_path / "wheel", "wheel")
        python = virtual(tmp_path / "fresh")
        words = [*uv_command(), "pip", "install", "--quiet", "--no-deps", "--offline", "--python", str(python)]
        subprocess.run([*words, str(tool), str(wheel)], check=True, cwd=tmp_path, env=clean_environ())
        assert (packages(tmp_path / "fresh") / "reconcile_tiny" / "rules.py").is_file()
        return python

    return made


def reconcile(python: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The command that the wheel installed, in a folder of its own and with no path to this repository."""
    here = python.parents[2] / "here"
    here.mkdir(exist_ok=True)
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [str(python.with_name("reconcile")), *words], capture_output=True, text=True, check=False, cwd=here, env=env
    )


def test_it_explains_three_networks(install: Install) -> None:
    python = install()
    for model in ("gru_demo", "resnet50", "bert_base"):
        done = reconcile(
            python, "run", "--model", model, "--counter", "tiny", "--convention", "all", "--out", "out", "-q"
        )
        assert done.returncode == 0, done.stdout + done.stderr
        found = json.loads((python.parents[2] / "here" / "out" / f"{model}.json").read_text())
        assert [x["state"] for x in found["ledgers"] if x["counter"] == "tiny"] == ["explained"]
        assert [s["residual"] for s in found["statements"] if "tiny" in s["from"]] == [0]


def test_the_kit_passes_it(install: Install) -> None:
    done = reconcile(install(), "counter", "conform", "tiny")
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 failed" in done.stdout.splitlines()[-1]


@pytest.mark.parametrize("fault", [pytest.param(f, marks=[pytest.mark.heavy] * (n % 2)) for n, f in enumerate(FAULTS)])
def test_the_kit_fails_it_for_each_fault(install: Install, fault: str) -> None:
    *change, problem = FAULTS[fault]
    done = reconcile(install(*change), "counter", "conform", "tiny", "--case", "family_dense")
    assert done.returncode == 1, done.stdout + done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith("FAILED") and problem in line]
    assert "Traceback" not in done.stderr
