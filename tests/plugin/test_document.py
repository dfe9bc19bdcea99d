"""docs/pytest.md: its files are written, its commands are typed, and what it shows is what pytest prints."""

from __future__ import annotations

import inspect
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from reconcile import pytest_plugin
from reconcile.core.registry import product_function, products
from tests.own.documents import consoles, files, not_printed

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "pytest.md").read_text()
WIDER = {"torch.nn.Linear(3, p.width)": "torch.nn.Linear(3, p.width + 1)", "(p.width, 5)": "(p.width + 1, 5)"}
"""The edit that the document describes: the hidden layer is wider by 1."""


def typed(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """``pytest ...``, typed in a folder; the plugin is that of this tree."""
    pytest_, *args = shlex.split(command)
    assert pytest_ == "pytest"
    plugins = ["no:cacheprovider", "no:xdist", "no:reconcile", "reconcile.pytest_plugin"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV"))}
    command = [sys.executable, "-m", "pytest", *(word for name in plugins for word in ("-p", name)), *args]
    environment |= {"PYTHONPATH": str(ROOT), "COLUMNS": "80"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.frameworks
@pytest.mark.slow
def test_what_it_shows_is_what_pytest_prints(tmp_path: Path) -> None:
    for name, text in files(TEXT).items():
        (tmp_path / name).write_text(text)
    (save, saved), (hold, moved), (accept, _) = consoles(TEXT)
    done = typed(save, tmp_path)
    assert (done.returncode, not_printed(saved, done.stdout)) == (0, []), done.stdout
    assert [path.name for path in tmp_path.glob("test_flops.flops/*")] == ["mlp.json"]
    model = (tmp_path / "mlp.py").read_text()
    for before, after in WIDER.items():
        assert model.count(before) == 1
        model = model.replace(before, after)
    (tmp_path / "mlp.py").write_text(model)
    done = typed(hold, tmp_path)
    assert (done.returncode, not_printed(moved, done.stdout)) == (1, []), done.stdout
    done = typed(accept, tmp_path)
    assert "1 failed, 1 passed" in done.stdout, done.stdout  # a budget is not raised
    assert "288 FLOPs in torch (convention matmul); the budget is 256" in done.stdout


def test_every_call_keyword_and_option_is_in_it() -> None:
    calls = {name: member for name, member in vars(pytest_plugin.Flops).items() if not name.startswith("_")}
    added = [name for product in products().values() for name, _ in product.fixture_functions]
    calls |= {name: product_function(name, "fixture_functions") for name in added}
    keywords = {
        name
        for member in calls.values()
        for name, parameter in inspect.signature(member).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    }
    spoken = [*(f"flops.{name}(" for name in calls), *keywords, pytest_plugin.UPDATE]
    assert {"flops.check(", "max_flops", "framework"} <= set(spoken)
    assert [words for words in spoken if words not in TEXT] == []
    assert set(re.findall(r"--[a-z][a-z-]+", TEXT)) == {pytest_plugin.UPDATE}
