"""Programs in a process of their own, with this repository on their path, and wheels in environments of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from reconcile.launch.environments.interpreters import clean_environ, uv_command

ROOT = Path(__file__).resolve().parents[1]
REST = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__", "tests", "docs")


def run_program(
    *words: str | Path,
    python: str | Path = sys.executable,
    folder: Path = ROOT,
    paths: Iterable[Path] = (),
    **variables: str,
) -> subprocess.CompletedProcess[str]:
    """Run a program. ``paths`` follow this repository on its path, ``variables`` are added to its environment."""
    path = os.pathsep.join(map(str, (ROOT, *paths)))
    environment = {**os.environ, "PYTHONPATH": path, **variables}
    command = [str(python), *map(str, words)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def output_of(*words: str | Path, **options: object) -> str:
    """What a program prints that has to exit with 0; ``options`` are those of ``run_program``."""
    done = run_program(*words, **options)  # type: ignore[arg-type]
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    return done.stdout


def left_out(folder: str, names: list[str]) -> set[str]:
    """What a build does not need: of the reports it needs the baselines alone."""
    reports = set(names) - {"baselines"} if Path(folder) == ROOT / "reports" else set()
    return {*REST(folder, names), *reports}


def build(source: Path, out: Path, kind: str) -> Path:
    """Build a `wheel`, `sdist` or `editable` of the tree at `source` with the project's backend, offline."""
    out.mkdir(parents=True, exist_ok=True)
    output_of(
        "-c", f"from setuptools import build_meta; build_meta.build_{kind}({str(out)!r})", folder=source, PYTHONPATH=""
    )
    (artefact,) = out.iterdir()
    return artefact


def copy_tree(made: pytest.TempPathFactory) -> Path:
    """A copy of this tree with its links, since setuptools builds in place."""
    return Path(shutil.copytree(ROOT, made.mktemp("tree") / "t", symlinks=True, ignore=left_out))


def build_wheel(made: pytest.TempPathFactory) -> Path:
    """This tool's wheel."""
    return build(copy_tree(made), made.mktemp("wheel") / "out", "wheel")


def install(requirement: str, folder: Path) -> Path:
    """The interpreter of an environment that is made here, with this and what it needs."""
    python = folder / "bin" / "python"
    words = ["pip", "install", "--quiet", "--python", str(python), requirement]
    for command in (["venv", "--quiet", str(folder)], words):
        subprocess.run([*uv_command(), *command], check=True, cwd=folder.parent, env=clean_environ())
    return python


def skip_unless_runs_as(user: int, python: str) -> None:
    """Skip where that user has no such interpreter, or may not read this checkout: one below a private folder, say."""
    command = [python, "-c", "import sys; sys.path.insert(0, sys.argv[1]); import reconcile.core.records", str(ROOT)]
    try:
        done = subprocess.run(command, user=user, cwd="/", capture_output=True)
    except OSError as error:
        pytest.skip(f"user {user} cannot start {python}: {error.strerror}")
    if done.returncode:
        pytest.skip(f"user {user} cannot import this checkout with {python}")
