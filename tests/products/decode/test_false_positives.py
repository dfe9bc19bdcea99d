"""How often a figure that means nothing is explained: random ones of a model's magnitude, with 2, 3, 4 digits and exact.

The share that ``decode`` prints is computed; here it is compared with random figures, and the table of docs/decode.md with it."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from reconcile.core.number_format import probability
from reconcile.core.records import FLOP, MAC
from reconcile.products.decode import search as searching
from reconcile.products.decode.false_positives import by_chance
from reconcile.products.decode.grammar import Source
from reconcile.products.decode.printed_figure import figure
from reconcile.products.decode.readings import PART, WORK, Candidate
from reconcile.work import load
from tests.products.decode import data
from tests.products.decode.vit import Vit

DOC = (Path(__file__).parents[3] / "docs" / "decode.md").read_text()
DRAWS = 600
MODELS = ("gru_demo", "resnet50", "conv_only")
BOUNDS = {2: 0.06, 3: 0.02, 4: 0.005, 0: 0.0}
"""The share that may be explained, by the number of digits; 0 stands for exact figures."""


def printed(value: float, digits: int) -> str:
    return f"{value:.{digits - 1}e}" if digits else str(round(value))


def share(model: str, digits: int, sources: Sequence[Source], draws: int) -> float:
    """The explained share of figures between a tenth and ten times the multiply-adds."""
    (macs, *_) = (c.value for c in data.candidates(sources)[0] if c.plain)
    dice = random.Random(f"{model} {digits}")
    figures = [printed(macs * 10 ** dice.uniform(-1, 1), digits) for _ in range(draws)]
    return sum(bool(searching.search(model, figure(text), sources).matches) for text in figures) / draws


DIGITS = [pytest.param(digits, marks=() if digits in (0, 2) else pytest.mark.slow) for digits in BOUNDS]


@pytest.mark.parametrize("digits", DIGITS)
def test_false_positives(digits: int) -> None:
    total = 0.0
    for model in MODELS:
        sources = data.saved(model)
        total += share(model, digits, sources, DRAWS // len(MODELS)) / len(MODELS)
    assert total <= BOUNDS[digits]


@pytest.mark.parametrize("digits", DIGITS)
def test_false_positives_of_a_model_in_a_table(digits: int) -> None:
    """With fused attention, norms and a classifier: it has every reading that tables need."""
    load()
    sources = [data.source(Vit().trace())]
    assert {c.family for c in data.candidates(sources)[0]} == {"", "fvcore"}
    assert share("vit", digits, sources, DRAWS) <= BOUNDS[digits]


MACS = 4_089_184_256


def rounded(digits: int) -> str:
    return f"{10 ** (digits - 1)}e9"


def test_the_share_is_that_of_the_numbers_that_are_printed_so() -> None:
    """4,089,184,256 is printed as 4.09e9, as are the numbers from 4.085e9 to 4.095e9: of two decades."""
    plain, part = Candidate(MACS, WORK, MAC, ""), Candidate(4_090_000_000, PART, FLOP, "")
    far = Candidate(99 * MACS, PART, FLOP, "")
    decades = math.log10(4.095 / 4.075) / 2  # 4.08 is 4.089... with its digits cut off
    assert by_chance([plain], figure("4.09G")) == pytest.approx(decades)
    assert by_chance([plain, part, far], figure("4.09G")) == pytest.approx(decades)
    assert by_chance([plain], figure("4G")) == pytest.approx(math.log10(4.5 / 3.5) / 2)
    ten = Candidate(9_996_000_000, PART, FLOP, "")
    more = math.log10(10.05 / 9.995) / 2
    assert by_chance([plain, ten], figure("1.00G")) == pytest.approx(decades + more)


def test_what_has_no_share() -> None:
    assert by_chance([Candidate(MACS, WORK, MAC, "")], figure("4089184256")) is None
    assert by_chance([Candidate(MACS, WORK, FLOP, "")], figure("4.09G")) is None


@pytest.mark.parametrize(("model", "digits"), [("gru_demo", 2), ("gru_demo", 4), ("conv_only", 3)])
def test_random_figures_are_explained_as_often_as_it_says(model: str, digits: int) -> None:
    sources = data.saved(model)
    expected = searching.search(model, figure(rounded(digits)), sources).chance
    assert expected is not None
    drawn = share(model, digits, sources, DRAWS)
    assert drawn == pytest.approx(expected, abs=4 * math.sqrt(expected / DRAWS) + 1 / DRAWS)


def test_the_table_of_the_page_is_computed() -> None:
    for model in ("gru_demo", "resnet50", "conv_only", "matmul_init"):
        table, _ = data.candidates(data.saved(model))
        cells = []
        for wanted in (figure(rounded(digits)) for digits in (2, 3, 4)):
            strict, every = by_chance(searching.select_comparable(table, wanted), wanted), by_chance(table, wanted)
            assert strict is not None
            assert every is not None
            cells.append(f"{probability(strict)} ({probability(every)})")
        assert f"| {model} | {len(table)} | {' | '.join(cells)} |" in DOC
