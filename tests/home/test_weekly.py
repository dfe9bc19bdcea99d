"""The weekly workflow: newest frameworks, every committed baseline, and its shell runs as it stands."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.text
TEXT = (ROOT / ".github/workflows/weekly.yml").read_text()


def script(step: str) -> str:
    """The shell of a step, by its name."""
    head = rf"- name: {step}\n(?:        if: .*\n)?(?:        env:\n(?: {{10}}.*\n)+)?"
    found = re.search(head + r"        run: \|\n((?: {10}.*\n)+)", TEXT)
    assert found, step
    return re.sub(r"^ {10}", "", found[1], flags=re.M)


def test_what_a_workflow_uses_is_named_by_its_commit() -> None:
    """A tag can be moved to other code, which the workflow would run."""
    texts = [path.read_text() for path in (ROOT / ".github/workflows").glob("*.yml")]
    used = [line for text in texts for line in text.splitlines() if "uses: " in line]
    assert used
    assert [line for line in used if not re.search(r"uses: [\w./-]+@[0-9a-f]{40} # v\d", line)] == []


def test_one_drift_fails_the_job_and_the_others_are_checked(tmp_path: Path) -> None:
    """The shell of the step, with a ``reconcile`` that finds one model moved."""
    for model in ("a", "b", "c", "pinned"):
        folder = tmp_path / "reports/baselines" / model
        folder.mkdir(parents=True)
        (folder / ("tf-2.3.1.json" if model == "pinned" else "current.json")).touch()  # nothing moves in a pinned one
    stub = tmp_path / "bin" / "reconcile"
    stub.parent.mkdir()
    stub.write_text('#!/bin/sh\necho "$3: checked"\n[ "$3" != b ]\n')
    stub.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{stub.parent}:{os.environ['PATH']}",
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
    }

    def run(step: str) -> subprocess.CompletedProcess[str]:
        command = ["bash", "-e", "-o", "pipefail", "-c", script(step)]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)

    done = run("Hold every model against its baseline")
    assert done.returncode == 1, done.stderr
    assert "::error title=b::b: checked" in done.stdout
    assert (tmp_path / "summary").read_text().split() == ["a:", "checked", "b:", "checked", "c:", "checked"]
    assert run("Take the baselines that would accept it").returncode == 0
    stub.write_text('#!/bin/sh\necho "$3: checked"\n')
    assert run("Hold every model against its baseline").returncode == 0


def test_what_a_release_moves_becomes_an_issue_once(tmp_path: Path) -> None:
    """The shell of the step, with a ``reconcile`` that finds a layer moved, and a ``gh`` that knows the issues that it made."""
    stubs = {
        "reconcile": 'echo "gru: 1 -> 2"\necho "1 of 2 moved from here to $3==2.0rc1"\nexit ${CODE:-1}\n',
        "gh": 'case "$2" in list) cat issues ;; create) echo "$4" >> issues ; cp "$6" body ;; esac\n',
    }
    for name, text in stubs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "issues").touch()

    def run(code: str) -> int:
        environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PACKAGE": "torch", "CODE": code}
        environment["GITHUB_STEP_SUMMARY"] = str(tmp_path / "summary")
        command = ["bash", "-e", "-o", "pipefail", "-c", script("Look at the layers under both releases")]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True).returncode

    assert (run("0"), (tmp_path / "issues").read_text()) == (0, "")
    assert [run("1"), run("1")] == [1, 1]
    assert (tmp_path / "issues").read_text() == "1 of 2 moved from here to torch==2.0rc1\n"
    assert "gru: 1 -> 2" in (tmp_path / "body").read_text()
    assert (tmp_path / "summary").read_text().splitlines() == ["1 of 2 moved from here to torch==2.0rc1"] * 3
