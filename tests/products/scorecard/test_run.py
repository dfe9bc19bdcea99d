"""Only stale cells run again; a counter that stops at a family runs layer by layer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconcile.core.causes import State
from reconcile.core.errors import UsageError
from reconcile.core.registry import known_counters
from reconcile.engine.reconcile import Missing
from reconcile.engine.settle import Collected
from reconcile.launch.environments.definitions import CURRENT
from reconcile.launch.environments.interpreters import EnvironmentError_
from reconcile.model_zoo.loading import load_pair
from reconcile.products.authors.conform import families
from reconcile.products.scorecard import cells as score
from reconcile.products.scorecard import run as scoring
from reconcile.products.scorecard.cells import Card, Cell, Verdict
from reconcile.products.scorecard.run import Batch

PROFILER = "tf.profiler@function"


# Which cells run again.


def kept(**changes: Any) -> dict[str, Card]:
    """Cards of two counters and two families as they would be made now; ``changes`` are in thop's on family_dense."""
    cards = {}
    for family in ("family_dense", "family_norm"):
        for name in ("thop", "fvcore"):
            card = scoring._card(family, "forward", known_counters()[name], {}, {})
            cards[card.name] = replace(card, **changes) if (family, name) == ("family_dense", "thop") else card
    return cards


def batches(cards: dict[str, Card]) -> list[Batch]:
    return scoring.stale(("thop", "fvcore"), ("family_dense", "family_norm"), ("forward",), cards)


def test_what_is_made_is_not_made_again() -> None:
    assert batches(kept()) == []


@pytest.mark.parametrize("changed", ["source", "code", "version", "framework_version"])
def test_one_change_makes_one_card_again(changed: str) -> None:
    assert batches(kept(**{changed: "other"})) == [Batch("family_dense", "forward", CURRENT, ("thop",))]


def test_what_was_not_installed_is_tried_again() -> None:
    absent = {"dense": Cell(Verdict.ABSENT, reason="not here")}
    assert batches(kept(cells=absent)) == [Batch("family_dense", "forward", CURRENT, ("thop",))]


def test_all_counters_of_an_environment_run_together() -> None:
    two = ("thop", "fvcore")
    assert batches({}) == [Batch(family, "forward", CURRENT, two) for family in ("family_dense", "family_norm")]


def test_a_counter_with_requirements_or_recipe_runs_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    known = dict(known_counters())
    known["fvcore"] = known["fvcore"]._replace(requirements=("fvcore==9",))
    monkeypatch.setattr(scoring, "known_counters", lambda: known)
    made = scoring.stale(("thop", "fvcore", "tf.profiler@session", PROFILER), ("family_dense",), ("forward",), {})
    assert [(batch.environment, batch.counters) for batch in made] == [
        (CURRENT, ("thop", PROFILER)), ("fvcore", ("fvcore",)), (CURRENT, ("tf.profiler@session",)),
    ]  # fmt: skip


def test_the_code_of_a_counter_is_its_folder_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one_counter", "other_counter"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)

    def code() -> str:
        scoring.code_of.cache_clear()
        return scoring.code_of("one_counter")

    before = code()
    (tmp_path / "other_counter" / "rules.py").write_text("x = 1\n")
    assert code() == before
    (tmp_path / "one_counter" / "rules.py").write_text("x = 1\n")
    assert code() != before


# Runs.


def stopping(model: str, request: Any) -> Collected:
    """thop stops with an error at the whole family and at ``einsum_dense``; it is not installed at ``embedding``."""
    layer = Path(request.model).stem
    states = {"family_dense": (State.FAILED, "boom"), "einsum_dense": (State.FAILED, "an einsum"),
              "dense": (State.NOT_COMPARABLE, "a dense"), "embedding": (State.SKIPPED, "thop is not installed")}  # fmt: skip
    if layer not in states:
        raise UsageError(f"no {layer}")
    state, reason = states[layer]
    return Collected({"layers": []}, (), (Missing("thop", "torch", state, reason),))


def test_a_counter_that_stops_at_a_family_runs_layer_by_layer() -> None:
    (card,) = scoring.measure(Batch("family_dense", "forward", CURRENT, ("thop",)), stopping)
    seen = {layer: (cell.verdict, cell.reason) for layer, cell in card.cells.items()}
    assert list(seen) == list(scoring.layers_of("family_dense"))
    assert seen["einsum_dense"] == (Verdict.FAILS, "an einsum")
    assert seen["dense"] == (Verdict.BLIND, "a dense")
    assert seen["embedding"] == (Verdict.ABSENT, "thop is not installed")
    assert seen["dense_map"] == (Verdict.FAILS, "no dense_map")


def test_a_model_that_cannot_run_is_no_error_of_the_counter() -> None:
    """The Keras of an environment may lack a layer: then neither the trace nor the counter has a number, for one reason."""
    reason = "AttributeError: no attribute 'RMSNormalization'"
    absent = tuple(Missing(name, "tf", State.FAILED, reason) for name in ("trace@tf", "keras_flops"))
    cells = score.cells(Collected({"layers": []}, absent[:1], absent[1:]), "keras_flops", ("rms",))
    assert cells == {"rms": Cell(Verdict.BLIND, reason=f"the model cannot run there: {reason}")}
    other = replace(absent[1], reason="boom")
    cells = score.cells(Collected({"layers": []}, absent[:1], (other,)), "keras_flops", ("rms",))
    assert cells == {"rms": Cell(Verdict.FAILS, reason="boom")}


def test_without_its_environment_a_counter_runs_nowhere() -> None:
    runs = []

    def take(environment: str, _request: Any) -> Collected:
        runs.append(environment)
        raise EnvironmentError_("there is no uv")

    (card,) = scoring.measure(Batch("family_dense", "forward", "thop", ("thop",)), take)
    seen = {(cell.verdict, cell.counted, cell.reason) for cell in card.cells.values()}
    assert seen == {(Verdict.ABSENT, None, "its environment cannot be made: there is no uv")}
    assert runs == ["thop"]


def test_a_blind_counter_does_not_run() -> None:
    def take(_environment: str, _request: Any) -> Collected:
        raise AssertionError("it ran")

    (card,) = scoring.measure(Batch("family_dense", "training", CURRENT, ("thop",)), take)
    reasons = {(cell.verdict, cell.reason) for cell in card.cells.values()}
    assert reasons == {(Verdict.BLIND, "it sees the forward pass only")}


@pytest.mark.parametrize("family", families())
def test_a_layer_alone_is_a_pair(family: str, tmp_path: Path) -> None:
    for layer in scoring.layers_of(family):
        file = tmp_path / f"{layer}.py"
        file.write_text(scoring.ONE_LAYER.format(family=family, layer=layer))
        assert [row.name for row in load_pair(str(file)).layers] == [layer]
