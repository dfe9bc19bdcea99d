"""Commands in this process, and the report that they write; programs in an environment of their own, and what they find."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from reconcile.cli import cli
from reconcile.launch.environments import definitions as environments
from reconcile.launch.environments.interpreters import clean_environ
from reconcile.launch.environments.provision import ensure
from tests.programs import output_of


def run_here(folder: Path, *words: str) -> tuple[Result, dict[str, Any]]:
    """``reconcile run`` in a folder, and its one report as JSON; no report if none was written."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        done = CliRunner().invoke(cli, ["run", *words, "--out", "out"], prog_name="reconcile")
        found = [json.loads(file.read_text()) for file in Path("out").glob("*.json")]
    finally:
        os.chdir(before)
    return done, found[0] if len(found) == 1 else {}


def report_of(folder: Path, *words: str) -> dict[str, Any]:
    """The report of a run that has to be in order."""
    done, report = run_here(folder, *words)
    assert done.exit_code == 0, done.output
    return report


def found_in(python: Path, program: Path, folder: Path) -> Any:
    """What a program that is called with a file's name writes there as JSON, without a GPU."""
    file = folder / "found.json"
    output_of(program, file, python=python, folder=folder, JAX_PLATFORMS="cpu")
    return json.loads(file.read_text())


def python_of(name: str, table: Path | None = None) -> Path:
    """The interpreter of a named environment, of those of a file or of our own."""
    return ensure(environments.load(table)[name])


def answer_of(python: Path, code: str, *arguments: str) -> Any:
    """What that interpreter prints last, as JSON; nothing of the running one is in its environment."""
    done = subprocess.run([str(python), "-c", code, *arguments], capture_output=True, text=True, env=clean_environ())
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
