"""Polynomials of models in plain PyTorch are those that algebra gives, and what is none is named with its range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import pytest
import torch
from torch import nn

from reconcile.core.causes import State
from reconcile.core.errors import UsageError
from reconcile.engine.answer import Answer
from reconcile.engine.settle import Collected
from reconcile.launch.request import Point
from reconcile.products.formula.formula import Formula, formula
from reconcile.products.formula.variables import Template, read_variables
from tests.products.formula.live import found, taking

WIDTH, HIDDEN, WORDS, BLOCKS = 8, 32, 11, 1


class Block(nn.Module):
    """Attention and a feed-forward network, without norms and biases."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.up = nn.Linear(WIDTH, HIDDEN, bias=False)
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        x = x + self.out((q @ k.transpose(1, 2)).softmax(-1) @ v)
        return x + self.down(torch.relu(self.up(x)))


def decoder() -> nn.Module:
    blocks = [Block() for _ in range(BLOCKS)]
    return nn.Sequential(nn.Embedding(WORDS, WIDTH), *blocks, nn.Linear(WIDTH, WORDS, bias=False))


def terms(counts: Formula, name: str, layer: str | None = None) -> dict[tuple[int, ...], Fraction]:
    counted = counts.polynomials[name]
    polynomial = counted.total if layer is None else counted.layers[layer]
    assert polynomial is not None
    return dict(polynomial.terms)


WEIGHTS = BLOCKS * (4 * WIDTH**2 + 2 * WIDTH * HIDDEN) + WIDTH * WORDS
ATTENTION = BLOCKS * 2 * WIDTH
"""Multiply-adds per token and token: queries with keys, and scores with values."""


def test_a_decoder_has_its_closed_form() -> None:
    counts = found(decoder, "3,T:int64", "T=5..10", counters=("flop_counter", "thop"))
    assert terms(counts, "trace@torch") == {(2,): 3 * 2 * ATTENTION, (1,): 3 * 2 * WEIGHTS}
    assert terms(counts, "flop_counter") == terms(counts, "trace@torch")
    assert terms(counts, "thop") == {(1,): 3 * 2 * WEIGHTS}
    assert terms(counts, "cause:call-not-seen:thop") == {(2,): 3 * 2 * ATTENTION}
    assert terms(counts, "trace@torch", "1") == {(2,): 3 * 2 * 2 * WIDTH}
    assert terms(counts, "trace@torch", "1.up") == {(1,): 3 * 2 * WIDTH * HIDDEN}
    assert counts.not_polynomial == ()
    assert counts.exit_code == 0
    assert len(counts.held_out) == 3
    assert set(counts.held_out) & set(counts.fitted) == set()


def test_a_step_of_products_is_three_times_its_forward_pass() -> None:
    """Each product has two more, one per operand; the embedding's gradient needs the first product's too."""
    counts = found(decoder, "1,T:int64", "T=5..10", counters=(), pass_="training")
    assert counts.pass_ == "training"
    assert terms(counts, "trace@torch") == {(2,): 6 * ATTENTION, (1,): 6 * WEIGHTS}


@pytest.mark.slow
def test_where_the_stride_fits_it_is_a_polynomial() -> None:
    """Four filters of 27 weights at (S/2)^2 positions."""
    counts = found(lambda: nn.Conv2d(3, 4, 3, stride=2, padding=1), "B,3,S,S", "S=16..40/2", "B=1..3")
    assert terms(counts, "trace@torch") == {(2, 1): Fraction(2 * 4 * 27, 4)}


class Window(nn.Module):
    """A product with the last 24 positions at most."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ x[:, -24:].transpose(1, 2)


def test_a_window_larger_than_some_sizes_misses_a_point() -> None:
    """Up to 24 it is 2 * 4 T^2, so 8,192 at 32, where 2 * 4 * 32 * 24 = 6,144 ran."""
    counts = found(Window, "1,T,4", "T=18..32")
    reasons = {none.of: none.reason for none in counts.not_polynomial if none.layer}
    assert "gives 8,192 at T=32, where it is 6,144" in reasons["trace@torch"]
    assert counts.polynomials == {}


class Alone(nn.Module):
    """A product that a single row takes twice."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ x.mT @ x if len(x) > 1 else x @ x.mT @ x + x @ x.mT @ x


def test_a_parabola_through_all_three_sizes_is_no_evidence() -> None:
    """16 B T^2 FLOPs, and 16 T^2 more at B = 1: a parabola goes through any three counts."""
    counts = found(Alone, "B,T,4", "B=1..3", "T=4..9")
    reasons = {none.of: none.reason for none in counts.not_polynomial}
    assert "the sizes of B allow a degree of 1, so give more" in reasons["trace@torch"]
    assert counts.polynomials == {}


@pytest.mark.slow
def test_a_size_that_is_a_case_of_its_own_is_named() -> None:
    reasons = {none.of: none.reason for none in found(Alone, "B,T,4", "B=1..5", "T=4..9").not_polynomial}
    assert "; without B=1 it lies on one polynomial: give sizes of B from 2 on" in reasons["trace@torch"]
    assert terms(found(Alone, "B,T,4", "B=2..6", "T=4..9"), "trace@torch") == {(1, 2): 16}


class Bilinear(nn.Module):
    """A product of B - 1 rows: along T's axis, at B = 1, nothing runs."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[1:].T @ x[1:]


def test_a_degree_that_no_axis_shows_is_raised_to() -> None:
    """2 (B - 1) T^2: at B = 1 it is 0 for every T."""
    counts = found(Bilinear, "B,T", "B=1..5", "T=4..8")
    assert terms(counts, "trace@torch") == {(1, 2): 2, (0, 2): -2}


class Rest(nn.Module):
    """A layer for all rows but the first, which is not called if there is one row."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 5, bias=False)
        self.rest = nn.Linear(4, 4, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.first(torch.cat([x[:1], self.rest(x[1:])]) if len(x) > 1 else x)


def test_a_layer_that_does_not_run_counts_0_where_all_is_known() -> None:
    counts = found(Rest, "B,4", "B=1..7")
    assert terms(counts, "trace@torch", "rest") == {(1,): 2 * 4 * 4, (0,): -2 * 4 * 4}
    assert terms(counts, "flop_counter", "rest") == terms(counts, "trace@torch", "rest")
    assert terms(counts, "trace@torch") == {(1,): 2 * 4 * 4 + 2 * 4 * 5, (0,): -2 * 4 * 4}


def test_a_size_at_which_the_model_does_not_run_is_named() -> None:
    """A worker goes on to the next point, and leaves the reason where the trace would be."""
    taking_all = taking(lambda: nn.Conv2d(1, 1, 9), ["flop_counter"])

    def take(points: Sequence[Point], counting: bool) -> list[tuple[Collected, Answer]]:
        return [
            (collected, result if point.inputs[0].shape[2] != 12 else failed(result))
            for point, (collected, result) in zip(points, taking_all(points, counting), strict=True)
        ]

    def failed(result: Answer) -> Answer:
        return replace(result, traces=(replace(result.traces[0], state=State.FAILED, reason="it is 12."),))

    with pytest.raises(
        UsageError, match=r"^the model does not run at S=12: it is 12\. Name the sizes at which it runs"
    ):
        formula(Template(read_variables(["S=10..40"]), ("1,1,S,S",), {}), take)
