"""What ``run --model gru_demo`` enters at home: few files, and no product that it was not asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from importlib.util import resolve_name
from pathlib import Path
from typing import Any

import pytest

from reconcile.core.registry import products
from tests.programs import output_of

from .entered import hold

FILES = 98
"""The most files of the package that a run enters at home (tests/run/entered.py says how they are counted)."""
UNASKED = {"matrix", "drift", "api", "pages", "pytest_plugin"}
"""The rooms of the core of which a run needs nothing, or something for an option that was not given."""


def entering(folder: Path, *words: str) -> dict[str, Any]:
    """The run in a process of its own."""
    hold(folder)
    found: dict[str, Any] = json.loads(output_of("-m", "tests.run.entered", folder, *words).splitlines()[-1])
    assert found["code"] in (0, 1)
    return found


def declared() -> set[str]:
    """The modules of products that every run loads: their records, and what these name for ``run`` and its answer."""
    records = products().values()
    places = {(p.module, place) for p in records for place in (*p.options, *p.run_options, *p.answer_hooks)}
    return {resolve_name(place.partition(":")[0], module) for module, place in places} | {p.module for p in records}


def unasked(loaded: Iterable[str]) -> set[str]:
    """The products, and the rooms of the core, of which these modules are more than every run loads."""
    parts = [name.split(".") for name in set(loaded) - declared()]
    own = {p[2] for p in parts if p[:2] == ["reconcile", "products"] and len(p) > 2}
    return own | {p[1] for p in parts if len(p) > 1} & UNASKED


def strange(loaded: Iterable[str]) -> list[str]:
    """The formulas of frameworks, and the rules of counters, that are not of this run."""
    ran = {"tf_profiler", "thop", "fvcore", "flop_counter"}
    rules = re.compile(r"reconcile\.adapters\.counters\.(\w+)\.(?:rules|bridge)")
    formulas = re.compile(r"reconcile\.adapters\.(?:jax|onnx)\.formulas\b")
    return [m for m in loaded if formulas.match(m) or ((held := rules.match(m)) and held[1] not in ran)]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The run without an option."""
    return entering(tmp_path_factory.mktemp("plain"))


def test_a_run_enters_few_files(plain: dict[str, Any]) -> None:
    assert plain["code"] == 0
    entered = plain["entered"]
    assert len(entered) <= FILES, "\n".join(entered)
    both_ends = {
        "reconcile/cli/commands/run.py",
        "reconcile/launch/workers/supervisor.py",
        "reconcile/report/markdown.py",
    }
    assert both_ends <= set(entered)  # the workers' watch and the reports are among those that are counted


def test_a_run_loads_no_product_that_was_not_asked_for(plain: dict[str, Any]) -> None:
    assert unasked(plain["loaded"]) == set()


def test_a_run_loads_formulas_and_rules_of_what_runs_only(plain: dict[str, Any]) -> None:
    assert strange(plain["loaded"]) == []
    assert strange(["reconcile.adapters.jax.formulas.moves", "reconcile.adapters.counters.ptflops.rules"]) != []


def test_a_product_that_is_entered_is_seen() -> None:
    loaded = [*declared(), "reconcile.products.decode.search", "reconcile.drift.baselines"]
    assert unasked(loaded) == {"decode", "drift"}
