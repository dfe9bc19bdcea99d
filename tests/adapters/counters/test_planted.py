"""A counter is added with a folder and a word: in a copy of the package, run as a user runs it.

As it is told to begin, ``default=False``, it changes nothing that is committed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[3]
FORMATS = ("md", "csv", "json", "html")

STATEMENT = '''
"""thop under another name."""

from ..thop import COUNTERS as MODEL

COUNTERS = (MODEL[0]._replace(name="planted", module=__name__, title="", default={default}),)
'''
CAPTURE = """
from ..thop.capture import capture as taken


def capture(counter, model):
    return taken(counter, model)._replace(counter=counter)
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the package, which tests may write into."""
    for folder in ("reconcile", "adapters", "model_zoo"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, tmp_path / folder, symlinks=True, ignore=ignored)
    return tmp_path


def plant(tree: Path, default: bool) -> None:
    """A folder, and its name in the one list of folders."""
    folder = tree / "adapters" / "counters" / "planted"
    folder.mkdir()
    (folder / "__init__.py").write_text(STATEMENT.format(default=default))
    (folder / "capture.py").write_text(CAPTURE)
    (folder / "rules.py").write_text("from ..thop.rules import BOOK\n")
    (folder / "bridge.py").write_text("from ..thop.bridge import bridge\n")
    register = tree / "reconcile" / "core" / "registry.py"
    text = register.read_text()
    assert text.count('"flop_counter": (),') == 1
    register.write_text(text.replace('"flop_counter": (),', '"flop_counter": (), "planted": (),'))


def reports(tree: Path, *words: str, formats: str = ",".join(FORMATS)) -> dict[str, str]:
    """What ``reconcile run`` of that tree writes, by format."""
    command = [
        sys.executable,
        "-m",
        "reconcile",
        "run",
        *words,
        "--quiet",
        "--out",
        "out",
        "--format",
        formats,
    ]
    env = {**os.environ, "PYTHONPATH": str(tree)}
    done = subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    model = words[words.index("--model") + 1]
    return {end: (tree / "out" / f"{model}.{end}").read_text() for end in FORMATS}


def ledgers(text: str) -> dict[str, tuple[str, int]]:
    """State and total of every counter in a JSON report."""
    return {x["counter"]: (x["state"], x["total"]) for x in json.loads(text)["ledgers"]}


def test_one_that_is_no_default_changes_no_committed_report(tree: Path) -> None:
    plant(tree, default=False)
    written = reports(tree, "--model", "gru_demo", formats="md,csv,json,html,svg")
    held = {end: (ROOT / "reports" / f"gru_demo.{end}").read_text() for end in FORMATS}
    assert [end for end in FORMATS if written[end] != held[end]] == []


def test_one_that_does_not_run_unasked_runs_when_asked_for(tree: Path) -> None:
    """conv1x1 is one multiply-add, and thop counts it as one."""
    plant(tree, default=False)
    found = ledgers(reports(tree, "--model", "conv1x1", "--counter", "planted", "--counter", "thop")["json"])
    assert {name: total for name, (_, total) in found.items()} == {"thop": 1, "planted": 1}
    assert found["planted"] == found["thop"]


def test_a_default_is_seen_only_where_no_counter_is_named(tree: Path) -> None:
    plant(tree, default=True)
    everything = ledgers(reports(tree, "--model", "conv1x1")["json"])
    assert list(everything)[-1] == "planted"
    assert everything["planted"] == everything["thop"]
    assert list(ledgers(reports(tree, "--model", "conv1x1", "--counter", "fvcore")["json"])) == ["fvcore"]
