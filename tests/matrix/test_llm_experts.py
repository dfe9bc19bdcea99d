"""Experts with a capacity (Switch Transformers), small and at full size: closed forms of what runs on meta."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Page = Callable[..., dict[str, Any]]

pytestmark = [pytest.mark.matrix, pytest.mark.frameworks, pytest.mark.timeout(900)]

V, H, F, N, D, L, SPARSE, E, CAPACITY = 200, 32, 48, 4, 8, 4, 2, 4, 8
SMALL = {
    "model_type": "switch_transformers", "vocab_size": V, "d_model": H, "d_kv": D, "d_ff": F, "num_layers": L,
    "num_decoder_layers": L, "num_heads": N, "num_experts": E, "expert_capacity": CAPACITY, "num_sparse_encoder_layers": SPARSE,
    "num_sparse_decoder_layers": SPARSE,
}  # fmt: skip


def forward(c: dict[str, Any], tokens: int) -> int:
    """A layer of the decoder has attention twice; a sparse layer has a router, and an expert for the tokens that find a place."""
    h, inner, feed = c["d_model"], c["num_heads"] * c["d_kv"], 2 * c["d_model"] * c["d_ff"]
    sparse = c["num_sparse_encoder_layers"] + c["num_sparse_decoder_layers"]
    kept = min(tokens, c["num_experts"] * c["expert_capacity"])
    attention = (c["num_layers"] + 2 * c["num_decoder_layers"]) * (4 * h * inner + 2 * inner * tokens)
    dense = (c["num_layers"] + c["num_decoder_layers"] - sparse) * feed
    return tokens * (attention + dense + h * c["vocab_size"]) + sparse * (tokens * h * c["num_experts"] + kept * feed)


@pytest.mark.parametrize("pass_", ["forward", "training"])
@pytest.mark.parametrize("tokens", [24, 30, 40])
def test_what_ran_is_a_closed_form(tokens: int, pass_: str, llm_page: Page) -> None:
    """24 tokens are six for each of four experts, 30 do not divide by them, and of 40 eight find no place."""
    page = llm_page(SMALL, "--seq", str(tokens), "--pass", pass_)
    assert page["ran"] == (6 if pass_ == "training" else 2) * forward(SMALL, tokens)
    assert (page["expert_capacity"], page["dropped"]) == (CAPACITY, max(tokens - E * CAPACITY, 0))
    numbers = [f for f in page["formulas"] if f["step"] is not None]
    assert [f["name"] for f in numbers if f["residual"] or f["step"] + sum(f["causes"].values()) != page["ran"]] == []
    assert len(numbers) >= 3


def test_capacity_is_of_each_sequence(llm_page: Page) -> None:
    assert llm_page(SMALL, "--seq", "40", "--batch", "3")["ran"] == 6 * 3 * forward(SMALL, 40)


@pytest.mark.parametrize("tokens", [30, 40])
def test_its_causes_are_closed_forms(tokens: int, llm_page: Page) -> None:
    causes = {f["name"]: f["causes"] for f in llm_page(SMALL, "--seq", str(tokens))["formulas"]}
    row, dropped = 6 * 2 * SPARSE * 2 * H * F, max(tokens - E * CAPACITY, 0)
    assert causes["formula:6n-active"].get("expert-capacity", 0) == -row * dropped
    assert causes["formula:6n"].get("expert-capacity", 0) == -row * dropped
    assert causes["formula:6n"]["all-experts-counted"] == -row * tokens * (E - 1)
