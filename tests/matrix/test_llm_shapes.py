"""Architectures of 2026 from small configurations of transformers: what `reconcile llm` records is the closed form of each.

Widths that differ; those of experts are multiples of 8, as grouped products in bfloat16 need them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from tests.own.one_process import Done

Page = Callable[..., dict[str, Any]]

pytestmark = [pytest.mark.matrix, pytest.mark.frameworks, pytest.mark.timeout(900)]

T, L, H, N, K, D, F, V, E, A, FE, WINDOW = 20, 4, 32, 4, 2, 8, 48, 96, 4, 2, 24, 8
SIZES = {
    "vocab_size": V, "hidden_size": H, "num_hidden_layers": L, "num_attention_heads": N, "num_key_value_heads": K,
    "head_dim": D, "intermediate_size": F, "max_position_embeddings": 128,
}  # fmt: skip
RQ, RKV, ROPE, NOPE, DV = 12, 10, 4, 6, 8
LATENT = {
    "head_dim": ROPE, "num_key_value_heads": N, "q_lora_rank": RQ, "kv_lora_rank": RKV, "qk_rope_head_dim": ROPE,
    "qk_nope_head_dim": NOPE, "v_head_dim": DV,
}  # fmt: skip
ROUTED = {"n_routed_experts": E, "num_experts_per_tok": A, "moe_intermediate_size": FE, "n_shared_experts": 1}
HI, DI, TOPK = 3, 16, 8
INDEX = {"index_n_heads": HI, "index_head_dim": DI, "index_topk": TOPK}
DSA = {**LATENT, **ROUTED, **INDEX, "first_k_dense_replace": 1, "n_group": 2, "topk_group": 1}
DK, DV_LINEAR, KH, VH, SHARED = 8, 16, 2, 4, 40
DELTA = {
    "linear_key_head_dim": DK, "linear_value_head_dim": DV_LINEAR, "linear_num_key_heads": KH,
    "linear_num_value_heads": VH, "shared_expert_intermediate_size": SHARED, "num_experts": E, "num_experts_per_tok": A,
    "moe_intermediate_size": FE,
}  # fmt: skip
HEADS, WIDE, STATE, CHUNK = 4, 16, 24, 8
HEAD = H * V
GROUPED = H * (N * D + 2 * K * D) + N * D * H
"""Projections of attention with fewer key and value heads."""
PAIRS = T * N * 2 * D
"""Both products of attention, for one token on all T keys."""
TAPS = 4
"""Of the convolutions before a recurrence: they run on T + 3 positions, of which T are kept."""


def dense() -> int:
    return T * (L * (GROUPED + 3 * H * F + PAIRS) + HEAD)


def latent() -> int:
    queries = H * RQ + RQ * N * (NOPE + ROPE)
    keys = H * (RKV + ROPE) + RKV * N * (NOPE + DV)
    attention = queries + keys + N * DV * H + T * N * (NOPE + ROPE + DV)
    return T * (L * attention + 3 * H * F + (L - 1) * (H * E + (A + 1) * 3 * H * FE) + HEAD)


DEEP = 3
"""Layers of a decoder on an encoder of L."""
SIDES = {"vocab_size": V, "d_model": H}


def sides(feed: int, decoder_feed: int) -> int:
    """A layer of the decoder has attention twice, on its own tokens and on the encoder's; both sides have T tokens."""
    attention = 4 * H * N * D + PAIRS
    return T * (L * (attention + 2 * H * feed) + DEEP * (2 * attention + 2 * H * decoder_feed) + HEAD)


def indexer() -> int:
    """Three weights, a score of every pair in each head, and their sum over the heads. It runs forward alone, in every pass."""
    return T * (RQ * HI * DI + H * DI + H * HI) + T * T * HI * (DI + 1)


def shared() -> int:
    return T * (L * (GROUPED + PAIRS) + 3 * H * F + (L - 1) * (H * E + (A + 1) * 3 * H * FE) + HEAD)


def sinks() -> int:
    """A logit of its own beside those of the keys has no product."""
    return T * (L * (GROUPED + PAIRS + H * E + A * 3 * H * F) + HEAD)


def delta() -> int:
    """Three layers of the gated delta rule in chunks of 64, and one of attention whose queries are twice as wide, for a gate."""
    keys, values = KH * DK, VH * DV_LINEAR
    before = T * H * (2 * keys + 2 * values + 2 * VH) + (T + TAPS - 1) * TAPS * (2 * keys + values)
    chunks = -(-T // 64)
    rule = chunks * VH * (64 * 64 * (2 * DK + DV_LINEAR) + 3 * 64 * DK * DV_LINEAR)
    attention = T * (GROUPED + H * N * D + PAIRS)
    experts = T * (H * E + A * 3 * H * FE + 3 * H * SHARED + H)
    return 3 * (before + rule + T * values * H) + attention + L * experts + T * HEAD


def states() -> int:
    """A state space model in chunks: inside one, into its state, out of it, and between all."""
    inner = HEADS * WIDE
    ends = T * H * (2 * inner + 2 * STATE + HEADS) + T * inner * H
    convolution = (T + TAPS - 1) * TAPS * (inner + 2 * STATE)
    chunks = -(-T // CHUNK)
    inside = CHUNK * CHUNK * (STATE + WIDE) + 2 * CHUNK * STATE * WIDE
    scan = HEADS * (chunks * inside + (chunks + 1) ** 2 * WIDE * STATE)
    return L * (ends + convolution + scan) + T * HEAD


def delta_more() -> int:
    """The gradient of a triangular system is a product of gradients and solutions, which the forward pass has none of. The first
    state is zero and needs no gradient, and nothing reads the last one."""
    return 3 * VH * (64 * 64 * (DK + DV_LINEAR) - 4 * 64 * DK * DV_LINEAR)


class Case(NamedTuple):
    """The configuration, multiply-adds of a forward pass, and those of a step beyond three times as many."""

    stated: dict[str, Any]
    forward: Callable[[], int]
    more: int = 0


LOCAL = {**SIZES, "sliding_window": WINDOW}
BART = {"encoder_layers": L, "encoder_ffn_dim": F, "encoder_attention_heads": N, "max_position_embeddings": 128}
CASES = {
    "t5": Case(
        {**SIDES, "d_kv": D, "d_ff": F, "num_layers": L, "num_decoder_layers": DEEP, "num_heads": N},
        lambda: sides(F, F),
    ),
    "bart": Case(
        {**SIDES, **BART, "decoder_layers": DEEP, "decoder_ffn_dim": 40, "decoder_attention_heads": N},
        lambda: sides(F, 40),
    ),
    "deepseek_v3": Case(
        {**SIZES, **LATENT, **ROUTED, "first_k_dense_replace": 1, "n_group": 2, "topk_group": 1}, latent
    ),
    "deepseek_v32": Case({**SIZES, **DSA}, lambda: latent() + L * indexer(), -2 * L * indexer()),
    "glm_moe_dsa": Case(
        {**SIZES, **DSA, "index_topk_freq": 2, "index_skip_topk_offset": 1, "num_nextn_predict_layers": 2},
        lambda: latent() + L // 2 * indexer(),
        -L * indexer(),
    ),
    "glm4_moe": Case({**SIZES, **ROUTED, "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1}, shared),
    "gpt_oss": Case({**LOCAL, "num_local_experts": E, "num_experts_per_tok": A}, sinks),
    "gemma3_text": Case(LOCAL, dense),
    "gemma3": Case({"text_config": LOCAL}, dense),
    "qwen3_next": Case({**SIZES, **DELTA}, delta, delta_more()),
    "mamba2": Case(
        {
            "vocab_size": V,
            "hidden_size": H,
            "num_hidden_layers": L,
            "num_heads": HEADS,
            "head_dim": WIDE,
            "state_size": STATE,
            "n_groups": 1,
            "chunk_size": CHUNK,
        },
        states,
    ),
}


@pytest.fixture
def told(llm_page: Page) -> Page:
    """``told(kind, *words)``: the page of that small configuration."""
    return lambda kind, *words: llm_page({"model_type": kind, **CASES[kind].stated}, *words)


@pytest.mark.parametrize("pass_", ["forward", "training"])
@pytest.mark.parametrize("kind", CASES)
def test_what_ran_is_a_closed_form(kind: str, pass_: str, told: Page) -> None:
    case = CASES[kind]
    page = told(kind, "--seq", str(T), "--pass", pass_)
    assert page["ran"] == 2 * (case.forward() if pass_ == "forward" else 3 * case.forward() + case.more)
    numbers = [f for f in page["formulas"] if f["step"] is not None]
    assert [f["name"] for f in numbers if f["residual"] or f["step"] + sum(f["causes"].values()) != page["ran"]] == []
    assert len(numbers) >= 3
    assert bool(page["recurrent"]) == (kind in ("qwen3_next", "mamba2"))


def test_packed_documents_are_a_batch_of_them(told: Page) -> None:
    lengths = (8, 16, 8, 24)
    tokens, squares = sum(lengths), sum(n * n for n in lengths)
    per_token = dense() // T - L * PAIRS
    packed = told("gemma3_text", "--lengths", ",".join(map(str, lengths)))
    assert packed["ran"] == 6 * (per_token * tokens + L * N * 2 * D * squares)
    like = told("gemma3_text", "--lengths", "16,16,16")
    assert like["ran"] == told("gemma3_text", "--seq", "16", "--batch", "3")["ran"]


def test_adapters_on_frozen_weights(told: Page) -> None:
    rank = 5
    page = told("gemma3_text", "--seq", str(T), "--lora", str(rank))
    weights = L * (GROUPED + 3 * H * F)
    adapters = L * rank * ((H + N * D) * 2 + (H + K * D) * 2 + 3 * (H + F))
    first = H * (N * D + 2 * K * D)
    products = 2 * (weights + HEAD) - first + 3 * adapters - 3 * rank * H + 3 * L * PAIRS
    assert page["ran"] == 2 * T * products
    assert page["trained"] == adapters


def test_an_encoder_with_a_decoder_packs_no_documents(count_llm: Callable[..., Done]) -> None:
    done = count_llm({"model_type": "t5", **CASES["t5"].stated}, "--lengths", "8,12")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert "describes an encoder and a decoder, in which no documents are packed" in done.stderr


def test_adapters_on_an_encoder_with_a_decoder(told: Page) -> None:
    """The first layer reads what needs no gradient: the encoder's three products and the decoder's three. So do its adapters."""
    rank = 5
    page = told("t5", "--seq", str(T), "--lora", str(rank))
    pairs = (L + 2 * DEEP) * PAIRS
    weights = (L + 2 * DEEP) * 4 * H * N * D + (L + DEEP) * 2 * H * F
    adapters = rank * ((L + 2 * DEEP) * 4 * (H + N * D) + (L + DEEP) * 2 * (H + F))
    first = 2 * 3 * H * N * D
    products = 2 * (weights + HEAD) - first + 3 * adapters - 2 * 3 * rank * H + 3 * pairs
    assert (page["ran"], page["trained"]) == (2 * T * products, adapters)


def test_sparse_attention_and_further_tokens_are_said(told: Page) -> None:
    page = told("glm_moe_dsa", "--seq", str(T))
    attention = 6 * L * T * T * N * (NOPE + ROPE + DV)
    assert (page["topk"], page["indexer"], page["attention"]) == (TOPK, L * indexer(), attention)
    assert page["chosen_keys"] == page["ran"] - attention * (T - TOPK) // T
    assert page["further"] == 2
    causes = {formula["name"]: formula["causes"] for formula in page["formulas"]}
    counts_further = [name for name, found in causes.items() if "prediction-layers-counted" in found]
    assert counts_further == ["formula:megatron-mtp", "formula:megatron-dsa"]
    plain = told("gpt_oss", "--seq", str(T))
    assert [plain[name] for name in ("further", "topk", "indexer", "chosen_keys")] == [0, 0, 0, None]
