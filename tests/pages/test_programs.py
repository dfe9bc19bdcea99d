"""The pages' programs print the numbers that stand beside them, and the tool books the page's cause for their models."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reconcile.core.causes import Cause, Setting
from reconcile.launch.environments.definitions import load
from reconcile.launch.environments.provision import ensure
from reconcile.pages import names, page
from tests.pages.reading import SLOW, THERE, framework, numbers, programs

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent

NO_MODEL = {c.value for c in Cause if c.record.setting is not Setting.MODEL or c.record.not_shown}
"""Causes whose program leaves no single model to run; a test elsewhere books each."""


COMPILED = {"inductor"}
"""Pages whose program has PyTorch compile a model: as slow as those that say so."""
TOLD = [name for name in names() if programs(page(name).text) and name not in COMPILED]
SLOWLY = [name for name in names() if programs(page(name).text, SLOW) or name in COMPILED]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Every program's outcome by its page; those of a framework share a process."""
    folder = tmp_path_factory.mktemp("programs")
    groups: dict[str, dict[str, str]] = {}
    for name in TOLD:
        (code,) = programs(page(name).text)
        file = folder / f"{name.replace('@', '_at_')}.py"
        file.write_text(code)
        groups.setdefault(framework(code), {})[name] = str(file)
    started = []
    for kind, files in groups.items():
        request, result = folder / f"{kind}.request", folder / f"{kind}.result"
        request.write_text(json.dumps(files))
        words = [sys.executable, str(HERE / "programs.py"), str(request), str(result)]
        env = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
        started.append((subprocess.Popen(words, env=env, stderr=subprocess.PIPE, text=True), result))
    found: dict[str, dict[str, Any]] = {}
    for process, result in started:
        _, errors = process.communicate()
        assert process.returncode == 0, errors
        found |= json.loads(result.read_text())
    return found


@pytest.mark.frameworks
def test_a_program_prints_the_numbers_beside_it(ran: dict[str, dict[str, Any]]) -> None:
    assert {name: found["failed"] for name, found in ran.items() if "failed" in found} == {}
    for name in TOLD:
        (code,) = programs(page(name).text)
        assert ran[name]["printed"] == [str(number) for number, _ in numbers(code)], name


@pytest.mark.frameworks
def test_the_tool_books_the_cause_for_the_programs_model(ran: dict[str, dict[str, Any]]) -> None:
    causes = [name for name, kind in names().items() if kind == "causes"]
    assert {name for name in causes if "causes" not in ran.get(name, {})} == NO_MODEL
    for name in set(causes) - NO_MODEL:
        assert name in ran[name]["causes"]
        assert set(ran[name]["residuals"]) == {0}, name


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOWLY)
def test_a_slow_program_prints_the_numbers_beside_it(name: str, tmp_path: Path) -> None:
    (code,) = programs(page(name).text) + programs(page(name).text, SLOW)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.stdout.split() == [str(number) for number, _ in numbers(code)], done.stderr[-2000:]


LONG_THERE = ("wandb", "keras_flops")
"""Half a minute each; tests/adapters/counters holds what these count."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=pytest.mark.heavy if n in LONG_THERE else pytest.mark.matrix)
        for n in names()
        if programs(page(n).text, THERE)
    ],
)
def test_a_program_for_an_environment_prints_its_numbers(name: str, tmp_path: Path) -> None:
    (code,) = programs(page(name).text, THERE)
    python = ensure(load()[name.partition("@")[0]])
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    printed = [line for line in done.stdout.splitlines() if line.isdigit()]  # some counters print reports
    assert printed == [str(number) for number, _ in numbers(code)], done.stderr[-2000:]
