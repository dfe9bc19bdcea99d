"""Architectures of 2026 from small configurations of transformers: what `reconcile llm` records is the closed form of each.

Widths that differ; those of experts are multiples of 8, as grouped products in bfloat16 need them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.matrix import llm_forms
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
ROUTED = {
    "n_routed_experts": E, "num_experts_per_tok": A, "moe_intermediate_size": FE, "n_shared_experts": 1,
    "first_k_dense_replace": 1,
}  # fmt: skip
HI, DI, TOPK = 3, 16, 8
DSA = {**LATENT, **ROUTED, "index_n_heads": HI, "index_head_dim": DI, "index_topk": TOPK, "n_group": 2, "topk_group": 1}
DELTA = {
    "linear_key_head_dim": 8, "linear_value_head_dim": 16, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
    "shared_expert_intermediate_size": 40, "num_experts": E, "num_experts_per_tok": A, "moe_intermediate_size": FE,
    "full_attention_interval": 4,
}  # fmt: skip
HEADS, WIDE, STATE, CHUNK = 4, 16, 24, 8
HEAD = H * V
GROUPED = H * (N * D + 2 * K * D) + N * D * H
"""Projections of attention with fewer key and value heads."""
PAIRS = T * N * 2 * D
"""Both products of attention, for one token on all T keys."""


DEEP = 3
"""Layers of a decoder on an encoder of L."""
SIDES = {"vocab_size": V, "d_model": H}


def sides(feed: int, decoder_feed: int) -> int:
    """A layer of the decoder has attention twice, on its own tokens and on the encoder's; both sides have T tokens."""
    attention = 4 * H * N * D + PAIRS
    return T * (L * (attention + 2 * H * feed) + DEEP * (2 * attention + 2 * H * decoder_feed) + HEAD)


def plain() -> int:
    """Layers of attention whose heads are as wide as the layer, and of two products."""
    return T * (L * (4 * H * H + PAIRS + 2 * H * F) + HEAD)


def states() -> int:
    """A state space model in chunks: inside one, into its state, out of it, and between all. The convolution before it runs on
    T + 3 positions, of which T are kept."""
    inner = HEADS * WIDE
    ends = T * H * (2 * inner + 2 * STATE + HEADS) + T * inner * H
    convolution = (T + llm_forms.TAPS - 1) * llm_forms.TAPS * (inner + 2 * STATE)
    chunks = -(-T // CHUNK)
    inside = CHUNK * CHUNK * (STATE + WIDE) + 2 * CHUNK * STATE * WIDE
    scan = HEADS * (chunks * inside + (chunks + 1) ** 2 * WIDE * STATE)
    return L * (ends + convolution + scan) + T * HEAD


LOCAL = {**SIZES, "sliding_window": WINDOW}
BART = {"encoder_layers": L, "encoder_ffn_dim": F, "encoder_attention_heads": N, "max_position_embeddings": 128}
CASES: dict[str, dict[str, Any]] = {
    "t5": {**SIDES, "d_kv": D, "d_ff": F, "num_layers": L, "num_decoder_layers": DEEP, "num_heads": N},
    "bart": {**SIDES, **BART, "decoder_layers": DEEP, "decoder_ffn_dim": 40, "decoder_attention_heads": N},
    "deepseek_v3": {**SIZES, **LATENT, **ROUTED, "n_group": 2, "topk_group": 1},
    "deepseek_v32": {**SIZES, **DSA},
    "glm_moe_dsa": {
        **SIZES, **DSA, "index_topk_freq": 2, "index_skip_topk_offset": 1, "num_nextn_predict_layers": 2,
    },
    "glm4_moe": {**SIZES, **ROUTED, "n_group": 1, "topk_group": 1},
    "gpt_oss": {**LOCAL, "num_local_experts": E, "num_experts_per_tok": A},
    "gemma3_text": LOCAL,
    "gemma3": {"text_config": LOCAL},
    "qwen3_next": {**SIZES, **DELTA},
    "mamba2": {
        "vocab_size": V, "hidden_size": H, "num_hidden_layers": L, "num_heads": HEADS, "head_dim": WIDE, "state_size": STATE,
        "n_groups": 1, "chunk_size": CHUNK,
    },
    "biogpt": SIZES,  # makes its own mask, as the next does
    "megatron-bert": SIZES,
}  # fmt: skip
OWN = {
    "t5": lambda: sides(F, F), "bart": lambda: sides(F, 40), "mamba2": states, "biogpt": plain,
    "megatron-bert": lambda: plain() + T * H * H,  # before the head
}  # fmt: skip
"""Multiply-adds of a forward pass, for what llm_forms.py does not describe. A step is three times as many."""


def ran(kind: str, pass_: str) -> int:
    """FLOPs of a step of T tokens. A logit of its own beside those of the keys has no product."""
    if kind in OWN:
        return 2 * (3 if pass_ == "training" else 1) * OWN[kind]()
    stated = CASES[kind]
    return llm_forms.flops({"model_type": kind, **stated.get("text_config", stated)}, pass_, T)


@pytest.fixture
def told(llm_page: Page) -> Page:
    """``told(kind, *words)``: the page of that small configuration."""
    return lambda kind, *words: llm_page({"model_type": kind, **CASES[kind]}, *words)


@pytest.mark.parametrize("pass_", ["forward", "training"])
@pytest.mark.parametrize("kind", CASES)
def test_what_ran_is_a_closed_form(kind: str, pass_: str, told: Page) -> None:
    page = told(kind, "--seq", str(T), "--pass", pass_)
    assert page["ran"] == ran(kind, pass_)
    numbers = [f for f in page["formulas"] if f["step"] is not None]
    assert [f["name"] for f in numbers if f["residual"] or f["step"] + sum(f["causes"].values()) != page["ran"]] == []
    assert len(numbers) >= 3
    assert bool(page["recurrent"]) == (kind in ("qwen3_next", "mamba2"))


def test_packed_documents_are_a_batch_of_them(told: Page) -> None:
    lengths = (8, 16, 8, 24)
    tokens, squares = sum(lengths), sum(n * n for n in lengths)
    per_token, _ = llm_forms.products({"model_type": "gemma3_text", **LOCAL})
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
    done = count_llm({"model_type": "t5", **CASES["t5"]}, "--lengths", "8,12")
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
    indexer = L * (T * (RQ * HI * DI + H * DI + H * HI) + T * T * HI * (DI + 1))  # 2 FLOPs in every other layer
    assert (page["topk"], page["indexer"], page["attention"]) == (TOPK, indexer, attention)
    assert page["chosen_keys"] == page["ran"] - attention * (T - TOPK) // T
    assert page["further"] == 2
    causes = {formula["name"]: formula["causes"] for formula in page["formulas"]}
    counts_further = [name for name, found in causes.items() if "prediction-layers-counted" in found]
    assert counts_further == ["formula:megatron-mtp", "formula:megatron-dsa"]
    plain = told("gpt_oss", "--seq", str(T))
    assert [plain[name] for name in ("further", "topk", "indexer", "chosen_keys")] == [0, 0, 0, None]
