"""How often a figure that means nothing is explained: random ones of a model's magnitude, with 2, 3, 4 digits and exact."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from reconcile.decode import search as searching
from reconcile.decode.figure import figure
from reconcile.decode.grammar import Source, candidates
from reconcile.work import load
from tests.decode import data
from tests.decode.vit import Vit

DRAWS = 1_200
MODELS = ("gru_demo", "resnet50", "conv_only")
BOUNDS = {2: 0.06, 3: 0.02, 4: 0.005, 0: 0.0}
"""The share that may be explained, by the number of digits; 0 stands for exact figures."""


def printed(value: float, digits: int) -> str:
    return f"{value:.{digits - 1}e}" if digits else str(round(value))


def share(model: str, digits: int, sources: Sequence[Source], draws: int) -> float:
    """Of figures between a tenth and ten times the multiply-adds, the part that is explained."""
    (macs, *_) = (c.value for c in candidates(sources)[0] if c.plain)
    dice = random.Random(f"{model} {digits}")
    figures = [printed(macs * 10 ** dice.uniform(-1, 1), digits) for _ in range(draws)]
    return sum(bool(searching.search(model, figure(text), sources).matches) for text in figures) / draws


@pytest.mark.parametrize("digits", BOUNDS)
def test_false_positives(digits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    total = 0.0
    for model in MODELS:
        sources = data.saved(model)
        table = candidates(sources)
        monkeypatch.setattr(searching, "candidates", lambda *_, table=table: table)
        total += share(model, digits, sources, DRAWS // len(MODELS)) / len(MODELS)
    assert total <= BOUNDS[digits]


@pytest.mark.parametrize("digits", BOUNDS)
def test_false_positives_of_a_model_in_a_table(digits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With fused attention, norms and a classifier: it has every reading that tables need."""
    load()
    sources = [data.source(Vit().trace())]
    table = candidates(sources)
    assert {c.family for c in table[0]} == {"", "fvcore"}
    monkeypatch.setattr(searching, "candidates", lambda *_, table=table: table)
    assert share("vit", digits, sources, DRAWS) <= BOUNDS[digits]
