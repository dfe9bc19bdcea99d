"""The ``flops`` fixture, in pytest runs of its own whose workers are a stub that hands out takes made by hand."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from reconcile.core.causes import State
from reconcile.core.records import Problem
from reconcile.drift import baselines
from reconcile.engine.reconcile import Missing
from reconcile.engine.settle import Collected
from reconcile.launch import runner
from reconcile.launch.request import RunRequest
from reconcile.work import load
from tests.drift.takes import DENSE, GRU, NEW, OLD, take, trace
from tests.programs import output_of

pytest_plugins = ["pytester"]
load()  # a run within this process forgets the modules that it was the first to import, but not the formulas that they registered

WORK = 2 * (32 * 97 * 127 * 16 + 97 * 3 * 96 * (4064 + 96) + DENSE)  # FLOPs: MACs of the three layers, twice
CHECK = "def test_it(flops):\n    flops.check('pair.py', units=96)\n"


@dataclass
class Inner:
    """A project whose tests are run: ``found`` is what workers find there, ``requests`` what they were asked."""

    pytester: pytest.Pytester
    found: Collected = field(default_factory=take)
    requests: list[RunRequest] = field(default_factory=list)

    def collect(self, request: RunRequest, progress: Callable[..., None]) -> Collected:
        self.requests.append(request)
        return self.found

    def test(self, body: str, *args: str) -> pytest.RunResult:
        self.pytester.makepyfile(test_model=body)
        return self.pytester.runpytest_inprocess("-p", "no:reconcile", "-p", "reconcile.pytest_plugin", *args)

    @property
    def baseline(self) -> Path:
        return self.pytester.path / "test_model.flops" / "pair+units=96.json"


@pytest.fixture
def inner(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Inner:
    made = Inner(pytester)
    monkeypatch.setattr(runner, "collect", made.collect)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # every run would load Hypothesis and others anew
    return made


def text(result: pytest.RunResult) -> str:
    return result.stdout.str()


def test_no_baseline_fails_with_what_to_do(inner: Inner) -> None:
    inner.pytester.makepyfile(pair="PAIR = None")
    result = inner.test(CHECK)
    result.assert_outcomes(failed=1)
    assert f"there is no baseline {inner.baseline}. Take one with: pytest --flops-update test_model.py" in text(result)
    assert inner.requests == []
    assert "pytest_plugin.py" not in text(result)  # the reader's own test, not our insides


def test_taken_then_held(inner: Inner) -> None:
    taken = inner.test(CHECK, "--flops-update")
    taken.assert_outcomes(passed=1)
    assert "FLOP baselines accepted" in text(taken)
    assert f"test_model.flops/pair+units=96.json: thop {NEW}, torch 2.0.0" in text(taken)
    assert baselines.load(inner.baseline).collected.ledgers == take().ledgers
    held = inner.test(CHECK)
    held.assert_outcomes(passed=1)
    assert "accepted" not in text(held)
    (first, second) = inner.requests
    assert first.model == str(inner.pytester.path / "pair.py")
    assert (first.overrides, first.counters, second.counters) == ({"units": "96"}, (), ("thop",))


def test_what_moved_is_named_by_layer_counter_and_cause(inner: Inner) -> None:
    inner.found = take(OLD)
    inner.test(CHECK, "--flops-update")
    inner.found = take(NEW)
    moved = inner.test(CHECK)
    moved.assert_outcomes(failed=1)
    for words in (
        "thop moved, at",
        f"thop {OLD} -> {NEW}",
        f"gru  torch.nn.modules.rnn.GRU: no entry -> {GRU:,}",
        f"dense  torch.nn.modules.linear.Linear: {2 * DENSE:,} -> {DENSE:,}",
        "op-not-counted",
        "accept it with: pytest --flops-update test_model.py",
    ):
        assert words in text(moved)
    accepted = inner.test(CHECK, "--flops-update")
    accepted.assert_outcomes(passed=1)
    assert f"no entry -> {GRU:,}" in text(accepted)
    assert f"kept: pair+units=96@thop-{OLD}+torch-2.0.0.json" in text(accepted)
    inner.test(CHECK).assert_outcomes(passed=1)


def test_a_damaged_baseline_and_a_failing_counter_fail_the_test(inner: Inner) -> None:
    inner.test(CHECK, "--flops-update")
    inner.found = Collected(take().meta, take().traces, (Missing("thop", "torch", State.FAILED, "it crashed"),))
    crashed = inner.test(CHECK)
    crashed.assert_outcomes(failed=1)
    assert "it crashed" in text(crashed)
    inner.baseline.write_text(inner.baseline.read_text()[:-99])
    damaged = inner.test(CHECK)
    damaged.assert_outcomes(failed=1)
    assert "is damaged" in text(damaged)


def test_other_parameters_are_another_baseline(inner: Inner) -> None:
    body = "def test_it(flops):\n    flops.check('pair.py')\n    flops.check('gru_demo', frames=50)\n"
    inner.test(body, "--flops-update").assert_outcomes(passed=1)
    folder = inner.pytester.path / "test_model.flops"
    assert sorted(p.name for p in folder.iterdir()) == ["gru_demo+frames=50.json", "pair.json"]
    assert inner.requests[1].model == "gru_demo"


def test_a_model_runs_once_for_several_assertions(inner: Inner) -> None:
    body = CHECK + f"\ndef test_budget(flops):\n    flops.budget('pair.py', max_flops={WORK}, units=96)\n"
    inner.test(body, "--flops-update").assert_outcomes(passed=2)
    assert len(inner.requests) == 1


def test_two_tests_of_one_model_share_a_run_if_they_ask_the_same(inner: Inner) -> None:
    inner.test(CHECK, "--flops-update")
    inner.requests.clear()
    inner.test(CHECK + CHECK.replace("test_it", "test_again")).assert_outcomes(passed=2)
    assert len(inner.requests) == 1
    inner.requests.clear()
    inner.test(CHECK + CHECK.replace("units=96", "counters=('thop',), units=96").replace("it(", "w("), "--flops-update")
    assert [r.counters for r in inner.requests] == [(), ("thop",)]


@pytest.mark.parametrize(("limit", "outcome"), [(WORK, "passed"), (WORK - 1, "failed")])
def test_a_budget_is_a_limit_to_the_unit(inner: Inner, limit: int, outcome: str) -> None:
    result = inner.test(
        f"def test_it(flops):\n    assert flops.budget('pair.py', max_flops={limit})['torch'] == {WORK}\n"
    )
    result.assert_outcomes(**{outcome: 1})
    if outcome == "failed":
        assert f"toy does {WORK:,} FLOPs in torch (convention matmul); the budget is {limit:,}: 1 too many" in text(
            result
        )
        layers = [line.split()[1].rstrip(":") for line in text(result).splitlines() if line.startswith("  ")]
        assert text(result).index("gru: ") < text(result).index("conv: ") < text(result).index("dense: "), layers


def test_a_budget_under_another_convention(inner: Inner) -> None:
    body = f"def test_it(flops):\n    flops.budget('pair.py', max_flops={WORK}, convention='all')\n"
    inner.test(body).assert_outcomes(failed=1)
    wrong = inner.test("def test_it(flops):\n    flops.budget('pair.py', max_flops=1, convention='al')\n")
    assert "unknown convention 'al'. Did you mean all" in text(wrong)


def test_unknown_work_is_within_no_budget(inner: Inner) -> None:
    body = "def test_it(flops):\n    flops.budget('pair.py', max_flops=10**18)\n"
    problem = Problem("gru", "aten.odd", "op9", "no work formula for aten.odd")
    inner.found = Collected(take().meta, (trace()._replace(problems=(problem,)),), take().ledgers)
    unknown = inner.test(body)
    unknown.assert_outcomes(failed=1)
    assert "no work formula for aten.odd" in text(unknown)
    gone = Missing("trace", "torch", State.SKIPPED, "PyTorch is not installed")
    inner.found = Collected(take().meta, (gone,), ())
    missing = inner.test(body)
    missing.assert_outcomes(failed=1)
    assert "PyTorch is not installed" in text(missing)
    other = inner.test("def test_it(flops):\n    flops.budget('pair.py', max_flops=1, framework='tf')\n")
    assert "unknown framework of this pair 'tf'" in text(other)


def test_a_project_that_does_not_use_it_loads_nothing_of_it() -> None:
    code = (
        "import sys, reconcile.pytest_plugin\n"
        "print(sorted(m for m in sys.modules if m.startswith('reconcile')), {'click', 'rich', 'numpy'} & set(sys.modules))"
    )
    assert output_of("-c", code).strip() == "['reconcile', 'reconcile.pytest_plugin'] set()"


LIVE = """
import os, torch

def net():
    return torch.nn.Sequential(torch.nn.Conv2d(3, 8, int(os.environ["KERNEL"])), torch.nn.ReLU())

def test_call(flops):
    drift = flops.check(net(), torch.ones(1, 3, 16, 16))
    assert drift is None or not drift.has_moved

def test_step(flops):
    flops.check(net(), "1,3,16,16", name="again", pass_="training", counters=("flop_counter",))

def test_budget(flops):
    assert flops.budget(net(), torch.ones(1, 3, 16, 16), max_flops=2 * 14**2 * 9 * 3 * 8) == {"torch": 84672}
"""


@pytest.mark.frameworks
@pytest.mark.slow
def test_a_model_at_hand(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted in the test's own process, with a baseline of its name; a changed kernel fails with what can be pasted."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    monkeypatch.setenv("KERNEL", "3")
    pytester.makepyfile(test_model=LIVE)

    def run(*words: str) -> pytest.RunResult:
        # in a process of its own, which ends with its PyTorch; without pytest's short summary, which repeats a message
        # whole where CI is set and a part of it elsewhere
        return pytester.runpytest_subprocess("-rN", "-p", "no:reconcile", "-p", "reconcile.pytest_plugin", *words)

    assert text(run()).count("Take one with: pytest --flops-update test_model.py") == 2
    assert run("--flops-update").ret == 0
    folder = pytester.path / "test_model.flops"
    assert sorted(path.name for path in folder.iterdir()) == ["Sequential.json", "again-training-sgd.json"]
    assert run().ret == 0
    monkeypatch.setenv("KERNEL", "5")
    moved = text(run())
    before, after = (side**2 * kernel**2 * 3 * 8 for side, kernel in ((14, 3), (12, 5)))
    assert f"0  {2 * before:,} -> {2 * after:,}" in moved
    assert f"0  {4 * before:,} -> {4 * after:,}" in moved  # the step: the input needs no gradient
    assert moved.count(": kernel 3x3 to 5x5\n") == 2
    assert "thop, fvcore, flop_counter: the same change, and no other" in moved
    over = f"Sequential does {2 * after:,} FLOPs in torch (convention matmul); the budget is {2 * before:,}"
    assert f"{over}: {2 * (after - before):,} too many\n  0: {2 * after:,}" in moved
    assert moved.count("accept it with: pytest --flops-update test_model.py") == 2


BOTH = """
import pytest
import tensorflow as tf
import torch

FLOPS = 2 * 2 * 3 * 4

@pytest.mark.parametrize("framework", ["", "torch"])
def test_torch(flops, framework):
    found = flops.budget(torch.nn.Linear(3, 4), torch.ones(2, 3), max_flops=FLOPS, framework=framework)
    assert found == {"torch": FLOPS}
    flops.check(torch.nn.Linear(3, 4), torch.ones(2, 3), framework=framework)

def test_keras(flops):
    net = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(4)])
    assert flops.budget(net, tf.ones((2, 3)), max_flops=FLOPS) == {"tf": FLOPS}
    flops.check(torch.nn.Sequential(torch.nn.Linear(3, 4)), torch.ones(2, 3))
    flops.check(net, tf.ones((2, 3)))

def test_a_function(flops):
    w = tf.ones((3, 4))
    assert flops.budget(tf.function(lambda x: x @ w), tf.ones((2, 3)), max_flops=FLOPS) == {"tf": FLOPS}

@pytest.mark.parametrize("call", [lambda f: f.budget(torch.nn.Linear(3, 4), max_flops=1, framework="tf"),
                                  lambda f: f.check(torch.nn.functional.relu, torch.ones(2))])
def test_what_is_refused(flops, call):
    with pytest.raises(pytest.fail.Exception, match="of PyTorch"):
        call(flops)
"""


@pytest.mark.frameworks
@pytest.mark.slow
def test_models_of_two_frameworks_in_one_session(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is counted in its own, though TensorFlow could call either."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    pytester.makepyfile(test_model=BOTH)
    words = ("-p", "no:reconcile", "-p", "reconcile.pytest_plugin")
    pytester.runpytest_subprocess(*words, "--flops-update").assert_outcomes(passed=6)
    pytester.runpytest_subprocess(*words).assert_outcomes(passed=6)
    kept = sorted(path.name for path in (pytester.path / "test_model.flops").iterdir())
    assert kept == ["Linear.json", "Sequential-tf.json", "Sequential.json"]


REFUSED = {
    "flops.check(5)": "flops was given int, which is no model of a framework that is imported here",
    "flops.budget(5, max_flops=1)": "flops was given int, which is no model of a framework that is imported here",
    "flops.budget('pair.py', 5, max_flops=1)": "inputs are for a model at hand",
    "flops.budget(object(), width=5, max_flops=1)": "width: a model at hand has no parameters",
    "flops.check('pair.py', 5)": "inputs and name= are for a model at hand",
    "flops.check('pair.py', framework='tf')": "framework= is for a model at hand",
    "flops.check('pair.py', name='x')": "inputs and name= are for a model at hand",
    "flops.check(object(), width=5)": "width: a model at hand has no parameters",
}


def test_what_is_no_model_at_hand(inner: Inner) -> None:
    result = inner.test("".join(f"def test_{n}(flops):\n    {call}\n" for n, call in enumerate(REFUSED)))
    result.assert_outcomes(failed=len(REFUSED))
    failures = re.split(r"_+ test_\d _+\n", text(result))[1:]
    assert [call for call, found in zip(REFUSED, failures, strict=True) if REFUSED[call] not in found] == []
    assert inner.requests == []


SNAPSHOT = "def test_it(flops):\n    assert flops.snapshot('pair.py', units=96) == {}"


@pytest.mark.parametrize("written", ["...", "12"])
def test_a_snapshot_is_written_and_held(inner: Inner, written: str) -> None:
    inner.test(SNAPSHOT.format(written)).assert_outcomes(failed=1)
    inner.test(SNAPSHOT.format(written), "--flops-update").assert_outcomes(passed=1)
    test = inner.pytester.path / "test_model.py"
    assert test.read_text() == SNAPSHOT.format(f"{WORK:_}")
    inner.test(test.read_text()).assert_outcomes(passed=1)
    inner.found = replace(take(), traces=(trace()._replace(ops=trace().ops[:-1]),))
    moved = inner.test(test.read_text())
    moved.assert_outcomes(failed=1)
    assert "dense" in text(moved)


@pytest.mark.parametrize(("convention", "outcome"), [("matmul", "passed"), ("all", "failed")])
def test_snapshots_of_two_models_are_compared_as_numbers(inner: Inner, convention: str, outcome: str) -> None:
    first, second = "flops.snapshot('pair.py')", f"flops.snapshot('pair.py', convention='{convention}')"
    ran = inner.test(f"def test_it(flops):\n    assert {first} == {second}")
    ran.assert_outcomes(**{outcome: 1})
    assert "Write this number" not in text(ran)


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        ("N = 7\ndef test_it(flops):\n    assert flops.snapshot('pair.py') == N", {"failed": 1}),
        (
            "import pytest\n@pytest.mark.parametrize('c', ['matmul', 'all'])\n"
            "def test_it(flops, c):\n    assert flops.snapshot('pair.py', convention=c) == 7",
            {"passed": 2},
        ),
    ],
)
def test_a_number_that_is_of_no_place_or_of_several_tests_is_not_written(
    inner: Inner, body: str, outcome: dict[str, int]
) -> None:
    inner.test(body, "--flops-update").assert_outcomes(**outcome)
    assert (inner.pytester.path / "test_model.py").read_text() == body
