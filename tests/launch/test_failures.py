"""A counter that raises, hangs, is killed or is not there fails alone, in one sentence; the others still report."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import psutil
import pytest

from reconcile.core.causes import State
from reconcile.core.errors import UsageError
from reconcile.core.registry import frameworks
from reconcile.launch.request import RunRequest, run_request
from reconcile.launch.runner import describe_lacking
from reconcile.workflow import run
from tests.conftest import PAIRS
from tests.launch.conftest import PATIENCE, until
from tests.programs import ROOT

pytestmark = pytest.mark.frameworks

PAIR = str(PAIRS / "misbehaves.py")


TORCH = ("thop", "fvcore", "flop_counter")
NET = """
import sys
sys.path.append({folder!r})
from types import SimpleNamespace
import misbehaves, torch

def make():
    params = SimpleNamespace(how={how!r}, under={under!r}, without="")
    return misbehaves.build_torch(params), torch.ones(3, 5)
"""
"""The pair's PyTorch side alone."""


def _run(timeout=300.0, counters=TORCH, **overrides):
    result = run(RunRequest(PAIR, overrides, timeout=timeout, counters=counters))
    return result, {led.counter: led for led in result.ledgers}


def check_failed_alone(result, under, said):
    ledgers = {ledger.counter: ledger for ledger in result.ledgers}
    assert result.exit_code == 3
    assert ledgers[under].state is State.FAILED
    assert said in ledgers[under].reason
    assert ledgers[under].total is None
    for name, ledger in ledgers.items():
        if name != under:
            assert ledger.state in (State.EQUAL, State.EXPLAINED), (name, ledger.reason)
    failed = [s for s in result.statements if under in (s.from_, s.to)]
    assert failed
    assert {s.state for s in failed} == {State.FAILED}
    assert {s.residual for s in result.statements if s not in failed} == {0}


FAILURES = [
    ("raise", "thop", 300.0, "RuntimeError: this model does not like to be counted"),
    ("hang", "fvcore", 25.0, "time limit of 25 s"),
    ("die", "thop", 300.0, "killed (signal 9"),
    ("exit", "fvcore", 300.0, "SystemExit: 4"),
    ("end", "fvcore", 300.0, "its process ended with status 4 before it was done"),
]
CHEAP = ("die",)


@pytest.mark.parametrize(
    ("package", "title", "framework"), [("tensorflow", "TensorFlow", "tf"), ("torch", "PyTorch", "torch")]
)
@pytest.mark.slow
def test_the_other_framework_still_reconciles(package, title, framework):
    result, ledgers = _run(counters=(), without=package)
    assert result.exit_code == 3
    for ledger in ledgers.values():
        if ledger.framework == framework:
            assert ledger.state is State.SKIPPED
            assert ledger.reason.startswith(f"{title} is not installed")
            assert f"flop-reconcile[{framework}]" in ledger.reason
        else:
            assert result.statement(ledger.counter, f"trace@{ledger.framework}").residual == 0


def test_a_framework_without_a_release_for_this_python_says_for_which_it_has_one():
    torch = frameworks()["torch"]
    request = RunRequest("gru_demo")
    assert "flop-reconcile[torch]" in describe_lacking(torch, request)
    assert "only up to 3.9" in describe_lacking(torch._replace(newest_python=(3, 9)), request)


def test_bad_override_is_a_usage_error():
    with pytest.raises(UsageError, match="has no parameter 'hwo'; its parameters are: how, under, without"):
        _run(hwo="raise")


def test_interruption_leaves_no_file_and_no_worker(tmp_path, start):
    command = [sys.executable, "-m", "reconcile", "run", "--model", PAIR, "--set", "how=hang", "--out", str(tmp_path)]
    process = start(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    workers: list[psutil.Process] = []

    def started() -> bool:
        workers[:] = psutil.Process(process.pid).children(recursive=True)
        return len(workers) >= 2

    assert until(started)
    os.kill(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert len(said.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []
    _, alive = psutil.wait_procs(workers, timeout=PATIENCE)
    assert alive == []


@pytest.mark.parametrize(
    ("how", "under", "timeout", "said"),
    [found if found[0] in CHEAP else pytest.param(*found, marks=pytest.mark.slow) for found in FAILURES],
)
def test_one_counter_fails_alone_in_a_forked_worker(tmp_path, monkeypatch, warmed, how, under, timeout, said):
    """In the end of this file: what is warm stays so, and the tests before start no framework."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(NET.format(folder=str(PAIRS), how=how, under=under))
    check_failed_alone(run(run_request(torch="net:make", counters=TORCH, timeout=timeout)), under, said)
