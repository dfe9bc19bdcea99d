"""The registry of counters: what each folder states of its own, and what it takes to add one."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from reconcile.core.counter import Counter
from reconcile.core.records import FLOP, MAC
from reconcile.core.registry import COUNTER_FOLDERS, built_in_counters, frameworks, known_counters
from reconcile.launch import choose as choosing
from reconcile.launch import user_models
from reconcile.launch.choose import choose_counters
from reconcile.launch.environments import runs
from reconcile.launch.environments.definitions import load
from reconcile.launch.request import RunRequest
from tests.workers import model_file

ROOT = Path(__file__).resolve().parents[3]
HERE = ROOT / "adapters" / "counters"

UNASKED = {
    "tf": ("tf.profiler@function", "tf.profiler@frozen", "tf.profiler@runmeta"),
    "torch": ("thop", "fvcore", "flop_counter"),
}
"""The counters that the README, the committed reports and sweeps are about, in their order."""


def planted(**fields: object) -> Counter:
    stands = known_counters()["thop"]._replace(name="planted", module="reconcile.adapters.counters.planted")
    return stands._replace(**fields)


def unasked() -> dict[str, tuple[str, ...]]:
    """The counters of a run that names none, by how its model is given."""
    environment = load()["current"]
    return {
        "pair": choose_counters(RunRequest("gru_demo", {})),
        "factory": user_models.counters_of({"tf": "net:make", "torch": "net:make"}, ()),
        "environment": runs.counters_of(environment),
        "factory in an environment": runs.counters_of(environment, {"tf", "torch"}),
    }


def test_every_folder_with_rules_is_listed() -> None:
    assert sorted(COUNTER_FOLDERS) == sorted(path.parent.name for path in HERE.glob("*/rules.py"))


def test_every_counter_is_stated_by_its_own_folder() -> None:
    assert [c.module for c in built_in_counters().values() if c.module.rpartition(".")[2] not in COUNTER_FOLDERS] == []
    for folder in COUNTER_FOLDERS:
        package = importlib.import_module(f"reconcile.adapters.counters.{folder}")
        assert {c.module for c in package.COUNTERS} <= {package.__name__}  # a folder of shared parts states none
        assert len({c.family for c in package.COUNTERS}) <= 1


def test_every_field_says_something_that_can_be() -> None:
    for name, counter in known_counters().items():
        assert counter.framework in frameworks(), name
        assert counter.unit in (MAC, FLOP), name
        assert bool(counter.package) == bool(counter.distribution), name
        assert not (counter.default and counter.recipe), name
        assert counter.summary == counter.summary.rstrip(".") != "", name
        book = importlib.import_module(f"{counter.module}.rules").BOOK
        assert (book.name, book.package) == (counter.family, counter.versions_key)


def test_unasked_run_those_that_the_committed_reports_are_about() -> None:
    everything = (*UNASKED["tf"], *UNASKED["torch"])
    assert unasked() == dict.fromkeys(unasked(), everything)


def test_a_new_counter_that_is_no_default_runs_only_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    before = unasked()
    monkeypatch.setitem(known_counters(), "planted", planted(default=False))
    assert unasked() == before
    asked = ("thop", "planted")
    assert choose_counters(RunRequest("gru_demo", {}, counters=asked)) == asked
    assert user_models.counters_of({"torch": "net:make"}, asked) == asked


def test_a_new_counter_that_is_a_default_runs_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    before = unasked()
    monkeypatch.setitem(known_counters(), "planted", planted(default=True))
    assert unasked() == {how: (*names, "planted") for how, names in before.items()}
    named = (*UNASKED["tf"], *UNASKED["torch"])
    assert choose_counters(RunRequest("gru_demo", {}, counters=named)) == named


def test_a_frozen_graph_in_a_file_is_read_by_its_recipe_unasked() -> None:
    held = {"tf": model_file("net.pb", "graph_def")}
    assert user_models.counters_of({"tf": "net.pb"}, (), held) == (*UNASKED["tf"], "tf.profiler@frozen_pb")


def test_a_framework_without_defaults_runs_what_is_its_own() -> None:
    """XLA's analysis is a part of JAX; what needs a package of its own runs if it is named."""
    assert user_models.counters_of({"jax": "m:f"}, ()) == ("xla@lowered", "xla@compiled")
    assert user_models.counters_of({"onnx": "net.onnx"}, ()) == ()
    assert user_models.counters_of({"jax": "m:f"}, ("xla@compiled",)) == ("xla@compiled",)


def test_jax_joins_a_pair_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    for there in (False, True):
        monkeypatch.setattr(choosing, "_is_installed", lambda name, there=there: there)
        names = choose_counters(RunRequest("gru_demo"))
        assert ("xla@lowered" in names, "xla@compiled" in names) == (there, there)
        elsewhere = choose_counters(RunRequest("gru_demo", python="/other/python"))
        assert "xla@lowered" not in elsewhere
