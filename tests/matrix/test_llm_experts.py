"""Experts with a capacity (Switch Transformers), small and at full size: closed forms of what runs on meta."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.own.one_process import Done

pytestmark = [pytest.mark.matrix, pytest.mark.frameworks, pytest.mark.timeout(900)]

V, H, F, N, D, L, SPARSE, E, CAPACITY = 200, 32, 48, 4, 8, 4, 2, 4, 8
SMALL = {
    "model_type": "switch_transformers", "vocab_size": V, "d_model": H, "d_kv": D, "d_ff": F, "num_layers": L,
    "num_decoder_layers": L, "num_heads": N, "num_experts": E, "expert_capacity": CAPACITY, "num_sparse_encoder_layers": SPARSE,
    "num_sparse_decoder_layers": SPARSE,
}  # fmt: skip
BASE = {
    "model_type": "switch_transformers", "vocab_size": 32128, "d_model": 768, "d_kv": 64, "d_ff": 3072, "num_layers": 12,
    "num_decoder_layers": 12, "num_heads": 12, "num_experts": 8, "expert_capacity": 64, "num_sparse_encoder_layers": 6,
    "num_sparse_decoder_layers": 6,
}  # fmt: skip
"""google/switch-base-8."""


def forward(c: dict[str, Any], tokens: int) -> int:
    """A layer of the decoder has attention twice; a sparse layer has a router, and an expert for the tokens that find a place."""
    h, inner, feed = c["d_model"], c["num_heads"] * c["d_kv"], 2 * c["d_model"] * c["d_ff"]
    sparse = c["num_sparse_encoder_layers"] + c["num_sparse_decoder_layers"]
    kept = min(tokens, c["num_experts"] * c["expert_capacity"])
    attention = (c["num_layers"] + 2 * c["num_decoder_layers"]) * (4 * h * inner + 2 * inner * tokens)
    dense = (c["num_layers"] + c["num_decoder_layers"] - sparse) * feed
    return tokens * (attention + dense + h * c["vocab_size"]) + sparse * (tokens * h * c["num_experts"] + kept * feed)


@pytest.fixture
def told(count_llm: Callable[..., Done]) -> Callable[..., dict[str, Any]]:
    """``told(configuration, *words)``: the page of `reconcile llm` as JSON."""

    def run(stated: dict[str, Any], *words: str) -> dict[str, Any]:
        done = count_llm(stated, *words, "--format", "json")
        assert done.returncode == 0, done.stderr
        page: dict[str, Any] = json.loads(done.stdout)
        return page

    return run


@pytest.mark.parametrize("pass_", ["forward", "training"])
@pytest.mark.parametrize("tokens", [24, 30, 40])
def test_what_ran_is_a_closed_form(tokens: int, pass_: str, told: Callable[..., dict[str, Any]]) -> None:
    """24 tokens are six for each of four experts, 30 do not divide by them, and of 40 eight find no place."""
    page = told(SMALL, "--seq", str(tokens), "--pass", pass_)
    assert page["ran"] == (6 if pass_ == "training" else 2) * forward(SMALL, tokens)
    assert (page["expert_capacity"], page["dropped"]) == (CAPACITY, max(tokens - E * CAPACITY, 0))
    numbers = [f for f in page["formulas"] if f["step"] is not None]
    assert [f["name"] for f in numbers if f["residual"] or f["step"] + sum(f["causes"].values()) != page["ran"]] == []
    assert len(numbers) >= 3


def test_capacity_is_of_each_sequence(told: Callable[..., dict[str, Any]]) -> None:
    assert told(SMALL, "--seq", "40", "--batch", "3")["ran"] == 6 * 3 * forward(SMALL, 40)


@pytest.mark.parametrize("tokens", [30, 40])
def test_its_causes_are_closed_forms(tokens: int, told: Callable[..., dict[str, Any]]) -> None:
    causes = {f["name"]: f["causes"] for f in told(SMALL, "--seq", str(tokens))["formulas"]}
    row, dropped = 6 * 2 * SPARSE * 2 * H * F, max(tokens - E * CAPACITY, 0)
    assert causes["formula:6n-active"].get("expert-capacity", 0) == -row * dropped
    assert causes["formula:6n"].get("expert-capacity", 0) == -row * dropped
    assert causes["formula:6n"]["all-experts-counted"] == -row * tokens * (E - 1)


@pytest.mark.parametrize("tokens", [512, 1024])
def test_switch_base_8_is_a_closed_form(tokens: int, told: Callable[..., dict[str, Any]]) -> None:
    """Eight experts have 64 places each: 512 tokens fill them, and half of 1,024 find none."""
    page = told(BASE, "--seq", str(tokens), "--pass", "forward")
    assert (page["ran"], page["dropped"]) == (2 * forward(BASE, tokens), tokens - 512)
