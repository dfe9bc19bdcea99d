"""Growth of the engine and the reports, in calls rather than in seconds: four times the ops, four times the work."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.bare.growth import made
from reconcile.adapters.counters.bridge import Bridge, View
from reconcile.adapters.counters.flop_counter.rules import bridge
from reconcile.core import atomic
from reconcile.core.conventions import BUILT_IN, Conventions
from reconcile.core.option import FORMATS
from reconcile.core.records import Trace
from reconcile.engine import ledger as ledgers
from reconcile.engine.answer import Answer
from reconcile.engine.settle import Collected, settle, settle_each
from reconcile.report import reports
from reconcile.report.json import to_dict, to_json
from reconcile.report.json_text import OWN_VALUE, Form, LateRows, layout
from tests.report import samples

META: dict[str, Any] = {"layers": [], "name": "growth", "params": {}, "doc": "", "notes": []}


def settled(count: int) -> Answer:
    trace, ledger = made(count)
    return settle(Collected(META, (trace,), (ledger,)), Conventions(BUILT_IN["all"]))


def calls(function: Callable[[], object]) -> int:
    """How many Python functions and built-in ones it calls."""
    count = 0

    def note(_frame: object, event: str, _given: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count


MOST = {"engine": 130, "md": 90, "csv": 40, "json": 100, "html": 140}
"""Calls per op: equal ops share one work and one booking, and equal rows of a report one text."""


@pytest.mark.parametrize("what", MOST)
def test_four_times_the_ops_take_four_times_the_calls(what: str) -> None:
    results: dict[int, Answer] = {}

    def run(count: int) -> object:
        return settled(count) if what == "engine" else reports.render(results[count], (what,))

    results[200] = settled(200)
    run(200)  # templates and formulas are loaded once
    results |= {count: settled(count) for count in (200, 800)}  # an answer keeps its tables: neither was asked for them
    small, large = calls(lambda: run(200)), calls(lambda: run(800))
    assert large < 4.4 * small
    assert large - small < 600 * MOST[what]


def test_four_times_the_layers_take_four_times_the_calls() -> None:
    few, many = samples.grown(60), samples.grown(240)
    reports.render(few, FORMATS)
    few = samples.grown(60)
    small, large = (calls(lambda result=result: reports.render(result, FORMATS)) for result in (few, many))
    assert large < 4.4 * small


def test_rows_that_are_made_late_are_the_same_rows() -> None:
    for count in (3, 500):
        result = settled(count)
        assert json.loads(to_json(result)) == to_dict(result)


def test_what_no_convention_changes_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made_of: list[str] = []

    def build(seen: View, trace: Trace) -> Bridge:
        made_of.append(seen.counter)
        return bridge(seen, trace)

    monkeypatch.setattr(ledgers, "build_bridge", build)
    trace, ledger = made(40)
    answer = settle_each(Collected(META, (trace,), (ledger,)), Conventions(BUILT_IN["all"]))
    assert len(answer.others) == len(BUILT_IN) - 1
    assert made_of == [ledger.counter]
    assert [other for other in answer.others if other.traces[0].rows is not answer.traces[0].rows] == []


NAMES = ["a", "b" * 150, "line\nbreak", 'quo"te']


@pytest.mark.parametrize("depth", [1, 3])
def test_rows_of_a_form_are_laid_out_as_their_data(depth: int) -> None:
    inner: Form[str] = Form(
        lambda name: ((len(name),), (name,)), lambda size: {"name": OWN_VALUE, "size": size, "none": None}
    )
    form: Form[tuple[str, int]] = Form(
        lambda one: ((one[1],), (one[0], LateRows(inner, NAMES[: one[1]]), {}, {"k": [one[0]]})),
        lambda count: {
            "id": OWN_VALUE,
            "long": "x" * 40 * count,
            "in": OWN_VALUE,
            "mid": [count],
            "no": OWN_VALUE,
            "of": OWN_VALUE,
        },
    )
    records = [(name, count) for name in NAMES for count in range(4)] * 60  # more than fit on a line
    late: Any = LateRows(form, records)
    plain: Any = [form(record) for record in records]
    for _ in range(depth):
        late, plain = {"in": late}, {"in": plain}
    assert layout(late) == layout(plain)
    assert json.loads(layout(late)) == plain


def test_a_page_that_no_browser_shows_is_left_out_aloud(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    result = settled(12)
    ops = len(result.traces[0].rows)
    assert ops == 9
    assert not reports.explain_missing_page(result, ("html",))
    monkeypatch.setattr(reports, "PAGE_OPS", ops - 1)
    assert reports.explain_missing_page(result, ("md", "html")).startswith(f"There is no HTML page for {ops:,} ops")
    assert set(reports.render(result, ("md", "html"))) == {"md"}
    assert not reports.explain_missing_page(result, ("md",))


def test_long_texts_are_written_in_parts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(atomic, "PART", 3)
    atomic.write(tmp_path, "x", {"md": "aé\ud800bcdefg", "png": b"1234567"})
    assert (tmp_path / "x.md").read_bytes() == "aé\\ud800bcdefg".encode()
    assert (tmp_path / "x.png").read_bytes() == b"1234567"
