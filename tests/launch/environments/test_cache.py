"""Results of pinned environments are kept under everything that they depend on, and never in place of an error."""

from __future__ import annotations

import pytest

from reconcile.core.causes import State
from reconcile.core.records import MAC, Entry, Ledger
from reconcile.engine.reconcile import Missing
from reconcile.engine.settle import Collected
from reconcile.launch.environments import cache as cached
from reconcile.launch.environments.definitions import load
from reconcile.launch.request import RunRequest

OLD = load()["torch-1.10.1"]
REQUEST = RunRequest("gru_demo", {"units": "3"}, counters=("thop",))
LEDGER = Ledger("thop", "torch", MAC, "cpu", {"thop": "1"}, 7, (Entry("a", "a", "Linear", 7, 1),), (), {}, ())
FOUND = Collected({"name": "gru_demo"}, (Missing("trace", "torch", State.FAILED, "too old"),), (LEDGER,))


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("RECONCILE_FRESH", raising=False)


def test_what_is_kept_comes_back_as_it_was():
    path = cached.path_of(REQUEST, OLD)
    assert cached.find(path) is None
    cached.keep(path, FOUND)
    assert cached.find(path) == FOUND


def test_every_setting_has_a_place_of_its_own():
    others = (
        RunRequest("gru_demo", {"units": "4"}, counters=("thop",)),
        RunRequest("gru_demo", {"units": "3"}, counters=("fvcore",)),
        RunRequest("gru_demo", {"units": "3"}, counters=("thop",), device="meta"),
        RunRequest("conv_only", {"units": "3"}, counters=("thop",)),
    )
    places = [cached.path_of(r, OLD) for r in (REQUEST, *others)] + [
        cached.path_of(REQUEST, load()["torch-1.10.1-thop-2001"])
    ]
    assert len(set(places)) == len(places)


def test_the_tools_own_source_is_part_of_the_place(monkeypatch):
    before = cached.path_of(REQUEST, OLD)
    monkeypatch.setattr(cached, "source_digest", lambda: "edited")
    assert cached.path_of(REQUEST, OLD) != before


def test_the_current_environment_and_foreign_pairs_are_not_kept():
    assert cached.path_of(REQUEST, load()["current"]) is None
    assert cached.path_of(RunRequest("./gru_demo.py", {}), OLD) is None
    cached.keep(None, FOUND)
    assert cached.find(None) is None


def test_a_failed_counter_is_run_again():
    path = cached.path_of(REQUEST, OLD)
    cached.keep(path, Collected(FOUND.meta, FOUND.traces, (Missing("thop", "torch", State.FAILED, "killed"),)))
    assert cached.find(path) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"meta": {}, "traces": ["{}"], "ledgers": []}', '{"meta": {}}'])
def test_a_damaged_file_is_as_good_as_none(text):
    path = cached.path_of(REQUEST, OLD)
    cached.keep(path, FOUND)
    path.write_text(text)
    assert cached.find(path) is None


def test_real_runs_can_be_asked_for(monkeypatch):
    path = cached.path_of(REQUEST, OLD)
    cached.keep(path, FOUND)
    monkeypatch.setenv("RECONCILE_FRESH", "1")
    assert cached.find(path) is None
