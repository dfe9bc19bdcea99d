"""A matrix that costs real environments is run once, also where pytest runs in several processes."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.matrix.llm_page import python
from tests.own.one_process import Commands, Done, started

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Callable[..., Path]:
    """``written(model, *args)``: the folder of the reports that ``reconcile matrix`` wrote, and its exit code in it."""
    base = tmp_path_factory.getbasetemp()
    shared = base if worker_id == "master" else base.parent

    def run(model: str, *args: str) -> Path:
        out = shared / ("matrix-" + "".join(c if c.isalnum() else "_" for c in " ".join((Path(model).stem, *args))))
        with Path(f"{out}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (out / "code").exists():
                command = [sys.executable, "-m", "reconcile", "matrix", "--model", model, "--out", str(out), *args]
                env = {**os.environ, "RECONCILE_FRESH": "1"}  # real runs, whatever is kept from earlier ones
                done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
                assert out.is_dir(), done.stdout + done.stderr
                (out / "screen").write_text(done.stdout + done.stderr)
                (out / "code").write_text(str(done.returncode))
        return out

    return run


@pytest.fixture(scope="session")
def llm() -> Iterator[Commands]:
    """``llm("llm", "config.json", "--seq", "16", folder=...)``: `reconcile llm` where transformers is, all in one process."""
    with started(python()) as commands:
        yield commands


@pytest.fixture
def count_llm(llm: Commands, tmp_path: Path) -> Callable[..., Done]:
    """``count_llm(configuration, *words)``: `reconcile llm` of a file that states this."""

    def run(configuration: dict[str, Any], *words: str) -> Done:
        file = tmp_path / f"{configuration.get('model_type', 'net')}.json"
        file.write_text(json.dumps(configuration))
        return llm("llm", str(file), *words)

    return run


@pytest.fixture
def llm_page(count_llm: Callable[..., Done]) -> Callable[..., dict[str, Any]]:
    """``llm_page(configuration, *words)``: the page that it prints as JSON."""

    def run(configuration: dict[str, Any], *words: str) -> dict[str, Any]:
        done = count_llm(configuration, *words, "--format", "json")
        assert done.returncode == 0, done.stderr
        page: dict[str, Any] = json.loads(done.stdout)
        return page

    return run
