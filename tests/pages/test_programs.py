"""The pages' programs print the numbers that stand beside them, and the tool books the page's cause for their models."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reconcile.launch.environments.named import load
from reconcile.launch.environments.provision import ensure
from reconcile.pages import names, page
from tests.pages.reading import SLOW, THERE, framework, numbers, programs

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent

NO_MODEL = {
    "initializer": "a v1 graph: tests/matrix/test_seed_s4.py books it",
    "duplicate-graph": "a v1 graph: tests/matrix/test_seed_s4.py books it",
    "shape-unknown": "an open batch, while a run has inputs: tests/run/test_gru_demo.py books it in a loop",
    "weight-differs": "a convention of one's own: tests/pages/test_pages.py books it",
    "run-stats-truncated": "2^20 records take a minute: test_truncated.py of tf_profiler books it in make fresh",
    "extrapolated": "no model is left: tests/adapters/counters/test_ultralytics.py books it",
    "float32-rounding": "an old release of thop: tests/adapters/counters/test_rounding.py books it",
    "averaged-over-batch": "no counter that runs unasked: tests/adapters/counters/test_ptflops.py books it",
    "real-work-differs": "two models: tests/own/test_frameworks.py books it",
    "implementation-differs": "two models: tests/run/test_gru_demo.py books it",
    **dict.fromkeys(
        (
            "global-shape",
            "local-parameters",
            "own-batch",
            "replicated",
            "recomputed",
            "padded-shard",
            "expert-capacity",
            "added-between-ranks",
            "micro-batches",
            "attention-in-blocks",
        ),
        "ranks: tests/products/ranks books it",
    ),
    **dict.fromkeys(
        ("tile-padding", "scores-again", "split-precision", "blocks-skipped"),
        "kernels of a GPU: tests/products/kernels books it",
    ),
    **dict.fromkeys(("padding-not-counted", "compiler-rewrote"), "a counter of JAX: tests/matrix/test_jax.py books it"),
    **dict.fromkeys(
        (
            "lookup-as-product",
            "parameters-as-products",
            "parameters-not-read",
            "attention-left-out",
            "attention-halved",
            "attention-windowed",
            "attention-sparse",
            "indexer-left-out",
            "balance-assumed",
            "prediction-layers-counted",
            "tokens-assumed",
            "vision-left-out",
            "attention-across-documents",
            "head-left-out",
            "width-assumed",
            "all-experts-counted",
            "backward-assumed",
            "recomputation-assumed",
            "frozen-not-discounted",
        ),
        "a formula: tests/adapters/counters/test_formulas.py books it",
    ),
}
"""Causes whose program leaves no single model to run, with what books them instead."""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Every program's outcome by its page; those of a framework share a process."""
    folder = tmp_path_factory.mktemp("programs")
    groups: dict[str, dict[str, str]] = {}
    for name in names():
        for code in programs(page(name).text):
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
@pytest.mark.parametrize("name", [n for n in names() if programs(page(n).text)])
def test_a_program_prints_the_numbers_beside_it(ran: dict[str, dict[str, Any]], name: str) -> None:
    assert "failed" not in ran[name], ran[name]
    (code,) = programs(page(name).text)
    assert ran[name]["printed"] == [str(number) for number, _ in numbers(code)]


@pytest.mark.frameworks
@pytest.mark.parametrize("name", [n for n, kind in names().items() if kind == "causes"])
def test_the_tool_books_the_cause_for_the_programs_model(ran: dict[str, dict[str, Any]], name: str) -> None:
    found = ran.get(name, {})
    assert ("causes" not in found) == (name in NO_MODEL)
    if "causes" in found:
        assert name in found["causes"]
        assert set(found["residuals"]) == {0}


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in names() if programs(page(n).text, SLOW)])
def test_a_slow_program_prints_the_numbers_beside_it(name: str, tmp_path: Path) -> None:
    (code,) = programs(page(name).text, SLOW)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.stdout.split() == [str(number) for number, _ in numbers(code)], done.stderr[-2000:]


@pytest.mark.matrix
@pytest.mark.parametrize("name", [n for n in names() if programs(page(n).text, THERE)])
def test_a_program_for_an_environment_prints_its_numbers(name: str, tmp_path: Path) -> None:
    (code,) = programs(page(name).text, THERE)
    python = ensure(load()[name.partition("@")[0]])
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    printed = [line for line in done.stdout.splitlines() if line.isdigit()]  # some counters print reports
    assert printed == [str(number) for number, _ in numbers(code)], done.stderr[-2000:]
