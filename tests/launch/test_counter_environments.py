"""A counter with requirements of its own has an environment of its family's name, which runs only if it is named."""

from __future__ import annotations

import functools
import importlib

import pytest

from reconcile.core import registry
from reconcile.core.counter import Counter
from reconcile.core.records import FLOP, MAC
from reconcile.core.registry import known_counters
from reconcile.engine.reconcile import Missing
from reconcile.launch import request, runner
from reconcile.launch.environments import definitions as environments
from reconcile.launch.environments import runs
from reconcile.launch.request import RunRequest
from reconcile.launch.workers.supervisor import Outcome

OWN = Counter(
    name="own@flops",
    module="somewhere.own",
    framework="torch",
    unit=FLOP,
    package="own_package",
    distribution="own-package",
    versions_key="own",
    summary="a counter that cannot be installed beside the others",
    default=False,
    blind="sees the forward pass only",
    requirements=("own-package==1.0", "beside==2.0"),
)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    macs = OWN._replace(name="own@macs", unit=MAC, requirements=("own-package==1.0",))
    counters = {**known_counters(), OWN.name: OWN, macs.name: macs}
    for module in (environments, runner):
        monkeypatch.setattr(module, "known_counters", lambda: counters)


def test_the_family_has_an_environment() -> None:
    env = environments.load()["own"]
    assert env.requirements == ("own-package==1.0", "beside==2.0")
    assert env.counters == ("own@flops", "own@macs")
    assert (env.python, env.over, env.unasked) == ("current", "current", False)


def test_every_model_of_several_has_counters_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that the environment lists, and a framework's own where it lists none for that."""
    monkeypatch.setattr(runs, "known_counters", environments.known_counters)
    env = environments.load()["own"]
    assert runs.counters_of(env) == runs.counters_of(env, ["torch"]) == ("own@flops", "own@macs")
    default = tuple(name for name, c in known_counters().items() if c.framework == "tf" and c.default)
    jax = ("xla@lowered", "xla@compiled")  # a part of JAX, which has no default counters
    assert runs.counters_of(env, ["tf", "torch", "jax"]) == ("own@flops", "own@macs", *default, *jax)


def test_the_matrix_does_not_run_it_unasked() -> None:
    matrix = importlib.import_module("reconcile.cli.commands.matrix")
    assert "own" not in [env.name for env in matrix.environments((), None, (), None)]
    assert [env.name for env in matrix.environments(("own",), None, (), None)] == ["own"]


def test_all_counters_are_those_that_run_here(monkeypatch: pytest.MonkeyPatch) -> None:
    counters = known_counters()
    monkeypatch.setattr(registry, "known_counters", lambda: {**counters, OWN.name: OWN})
    named = request.run_request(model="gru_demo", counters=("all",)).counters
    assert OWN.name not in named
    assert [name for name, c in counters.items() if c.default and name not in named] == []


@pytest.mark.parametrize(
    ("requirements", "remedy"), [(("own-package==1.0",), "add --environment own"), ((), "install it there")]
)
def test_the_sentence_names_it(monkeypatch: pytest.MonkeyPatch, requirements: tuple[str, ...], remedy: str) -> None:
    counter = OWN._replace(requirements=requirements)
    monkeypatch.setattr(runner, "known_counters", functools.partial(dict, {OWN.name: counter}))
    outcome = Outcome(None, "no", missing="own_package")
    missing = runner._make_missing(OWN.name, "torch", outcome, RunRequest(model="gru_demo"))
    assert isinstance(missing, Missing)
    assert (
        missing.reason == f"own-package is not installed in this environment; {remedy}, or leave it out with --counter."
    )
