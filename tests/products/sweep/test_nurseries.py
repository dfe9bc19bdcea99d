"""A sweep's cells fork their workers from one that has the framework and the library: what they find is the same."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from reconcile.core.registry import frameworks
from reconcile.launch.environments.definitions import load
from reconcile.launch.environments.interpreters import Interpreter
from reconcile.launch.workers import scratch
from reconcile.products import forked_workers
from reconcile.products.sweep import cell, nurseries
from reconcile.products.sweep.cells import Cell, Manner, request_of
from tests.workers import request as of_worker

pytestmark = [
    pytest.mark.skipif(not forked_workers.ABLE, reason="workers are forked on Linux, from Python 3.9 on"),
    pytest.mark.frameworks,
    pytest.mark.slow,
]
NET = """
import sys, torch

def make():
    return torch.nn.Linear(3, 5), torch.ones(2, 3)

def tells():
    sys.exit("colorsys is %sthere" % ("" if "colorsys" in sys.modules else "not "))
"""


@pytest.fixture
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "net.py").write_text(NET)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def request(function: str = "make", framework: str = "torch") -> dict[str, Any]:
    made = Cell("cell", factories={framework: f"net:{function}"})
    return request_of(made, Manner({"counters": ["flop_counter"]}, formats=()), ())


def run(function: str = "make") -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(cell.run_cell(json.dumps(request(function))))
    return answer


def processes() -> list[psutil.Process]:
    """The nurseries of this process."""
    return [p for p in psutil.Process().children() if scratch.TOOL in " ".join(p.cmdline())]


def test_a_cell_finds_what_it_finds_alone(net: Path) -> None:
    alone = run()
    with forked_workers.warm():
        first = run()
        (nursery,) = processes()
        assert run()["outcome"] == first["outcome"] == alone["outcome"]
        assert processes() == [nursery]
    assert alone["outcome"]["counters"][0]["residual"] == 0
    assert alone["outcome"]["traces"][0]["work"] == 2 * 2 * 3 * 5
    assert processes() == []


def test_a_nursery_that_dies_is_made_again_once(net: Path) -> None:
    with forked_workers.warm():
        for _ in range(forked_workers.TRIES):
            assert run()["outcome"]["exit_code"] == 0
            (nursery,) = processes()
            os.kill(nursery.pid, signal.SIGKILL)
            nursery.wait()
        assert nurseries.offer_nurseries(request()) == {}
        assert run()["outcome"]["exit_code"] == 0
        assert processes() == []


@pytest.mark.parametrize(("library", "said"), [("colorsys", "colorsys is there"), ("", "colorsys is not there")])
def test_a_library_is_imported_once(library: str, said: str, net: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nurseries, "_library", lambda *_: library)
    with forked_workers.warm():
        (reason,) = run("tells")["outcome"]["refused"].values()
    assert said in reason


def test_a_module_of_the_users_is_not_imported_before_the_worker(tmp_path: Path, net: Path) -> None:
    torch = frameworks()["torch"]
    library = nurseries._library
    assert library(torch, "timm.models:resnet50", []) == "timm.models"
    assert library(torch, "transformers:BertModel", []) == "transformers"
    assert library(torch, "net:make", []) == library(torch, "", []) == ""
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "timm.py").touch()
    assert library(torch, "timm.models:resnet50", [str(tmp_path / "beside")]) == ""
    (net / "transformers").mkdir()
    assert library(torch, "transformers:BertModel", []) == ""


def test_who_has_a_nursery() -> None:
    """No process outside ``warm()``, no framework with threads of its own, and no environment that may be too old."""
    assert nurseries.offer_nurseries(request()) == {}
    with forked_workers.warm():
        assert list(nurseries.offer_nurseries(request())) == ["torch"]
        assert nurseries.offer_nurseries(request(framework="jax")) == {}
        old = asdict(replace(load()["torch-1.10.1"], interpreter=None))
        old = {name: list(value) if isinstance(value, tuple) else value for name, value in old.items()}
        there = request()
        there["cell"] = {**there["cell"], "environment": {k: v for k, v in old.items() if k != "interpreter"}}
        assert nurseries.offer_nurseries(there) == {}
        asked = of_worker("jax", tasks=("xla@lowered",))
        assert forked_workers.nursery_of(asked, Interpreter()) is None
        assert forked_workers.nursery_of(of_worker("torch", tasks=("thop",)), Interpreter()) is not None
