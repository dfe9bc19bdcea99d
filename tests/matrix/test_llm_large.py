"""The shapes of 2026 at the sizes of published models, on meta: what `reconcile llm` records is the closed form of each."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.own.one_process import Commands

pytestmark = [pytest.mark.matrix, pytest.mark.frameworks, pytest.mark.timeout(900)]

LLAMA = Path(__file__).parent / "llm" / "llama-3-8b.json"
H, F, L, N, K, D, V = 4096, 14336, 32, 32, 8, 128, 128256
WEIGHTS = L * (2 * H * N * D + 2 * H * K * D + 3 * H * F)
"""Llama 3 8B's, but for its head."""
PAIR = L * 2 * N * D
"""Both products of attention for one pair of tokens, in all layers."""


@pytest.fixture
def step(llm: Commands, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """``step(configuration or its file, *words)``: what `reconcile llm` says of a step."""

    def run(stated: dict[str, Any] | Path, *words: str) -> dict[str, Any]:
        file = stated if isinstance(stated, Path) else tmp_path / "large.json"
        if isinstance(stated, dict):
            file.write_text(json.dumps(stated))
        done = llm("llm", str(file), *words, "--format", "json")
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout))

    return run


def test_packed_documents(step: Callable[..., dict[str, Any]]) -> None:
    """Of Llama 3 8B: four documents of 2,048 tokens take a quarter of the attention of one of 8,192."""
    packed, whole = step(LLAMA, "--lengths", "2048,2048,2048,2048"), step(LLAMA, "--seq", "8192")
    products = 8192 * (WEIGHTS + H * V)
    assert packed["ran"] == 6 * (products + PAIR * 4 * 2048**2)
    assert whole["ran"] == 6 * (products + PAIR * 8192**2)


def test_adapters(step: Callable[..., dict[str, Any]]) -> None:
    """Of Llama 3 8B, rank 16: a frozen weight has no gradient, and the tokens that the first layer reads need none."""
    rank, seq = 16, 2048
    page = step(LLAMA, "--seq", str(seq), "--lora", str(rank))
    adapters = L * rank * (2 * (H + N * D) + 2 * (H + K * D) + 3 * (H + F))
    first = H * (N * D + 2 * K * D) + 3 * rank * H
    assert page["trained"] == adapters
    assert page["ran"] == 2 * seq * (2 * (WEIGHTS + H * V) + 3 * adapters + 3 * PAIR * seq - first)


def test_sliding_windows(step: Callable[..., dict[str, Any]]) -> None:
    """google/gemma-3-4b-pt: five layers of six have a window of 1,024, and the kernel multiplies all keys and masks them."""
    h, f, layers, heads, keys, wide, words, seq = 2560, 10240, 34, 8, 4, 256, 262208, 4096
    page = step(
        {
            "model_type": "gemma3_text", "hidden_size": h, "intermediate_size": f, "num_hidden_layers": layers,
            "num_attention_heads": heads, "num_key_value_heads": keys, "head_dim": wide, "vocab_size": words,
            "sliding_window": 1024,
        },
        "--seq", str(seq),
    )  # fmt: skip
    layer = 2 * h * heads * wide + 2 * h * keys * wide + 3 * h * f + seq * heads * 2 * wide
    assert page["ran"] == 6 * seq * (layers * layer + h * words)


def test_routed_experts(step: Callable[..., dict[str, Any]]) -> None:
    """openai/gpt-oss-20b: four of 32 experts, and a logit beside those of the keys, which has no product."""
    h, f, layers, heads, keys, wide, words, experts, active, seq = 2880, 2880, 24, 64, 8, 64, 201088, 32, 4, 2048
    page = step(
        {
            "model_type": "gpt_oss", "hidden_size": h, "intermediate_size": f, "num_hidden_layers": layers,
            "num_attention_heads": heads, "num_key_value_heads": keys, "head_dim": wide, "vocab_size": words,
            "num_local_experts": experts, "num_experts_per_tok": active, "sliding_window": 128,
        },
        "--seq", str(seq),
    )  # fmt: skip
    attention = 2 * h * heads * wide + 2 * h * keys * wide + seq * heads * 2 * wide
    assert page["ran"] == 6 * seq * (layers * (attention + h * experts + active * 3 * h * f) + h * words)


def test_state_spaces(step: Callable[..., dict[str, Any]]) -> None:
    """state-spaces/mamba2-2.7b, in chunks of 256: inside one, into its state, out of it, and between all."""
    h, layers, heads, wide, state, chunk, words, seq, taps = 2560, 64, 80, 64, 128, 256, 50288, 2048, 4
    page = step(
        {
            "model_type": "mamba2", "vocab_size": words, "hidden_size": h, "num_hidden_layers": layers, "num_heads": heads,
            "head_dim": wide, "state_size": state, "n_groups": 1, "chunk_size": chunk,
        },
        "--seq", str(seq), "--pass", "forward",
    )  # fmt: skip
    inner, chunks = heads * wide, seq // chunk
    ends = seq * h * (2 * inner + 2 * state + heads) + seq * inner * h
    convolution = (seq + taps - 1) * taps * (inner + 2 * state)
    inside = chunk * chunk * (state + wide) + 2 * chunk * state * wide
    scan = heads * (chunks * inside + (chunks + 1) ** 2 * wide * state)
    assert page["ran"] == 2 * (layers * (ends + convolution + scan) + seq * h * words)
