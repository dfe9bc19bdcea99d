"""reports/llm.md: six full-size models, what ran by closed forms of their configurations, and the disputed numbers by cause."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.matrix.llm_page import CONFIGURATIONS, HEAD, MODELS, PAGE, overview, ratios, section

STALE = "reports/llm.md is stale: run `make llm` and commit what changed"
CASES = [(name, seq) for name, lengths in MODELS.items() for seq in lengths]


def sections() -> dict[tuple[str, int], str]:
    parts = re.split(r"^(?=## )", PAGE.read_text(), flags=re.MULTILINE)[1:]
    named = [(re.match(r"## (\S+), 1 x ([\d,]+) tokens", part), part) for part in parts]
    return {(m[1], int(m[2].replace(",", ""))): part for m, part in named if m is not None}


SECTIONS = sections()


def row(name: str, seq: int, formula: str) -> tuple[int, dict[str, int]]:
    """FLOPs per token, and the amounts of the causes per step."""
    match = re.search(rf"^\| {re.escape(formula)} \| ([\d,]+) \| [\d.]+ \| (.+) \|$", SECTIONS[name, seq], re.MULTILINE)
    assert match is not None, (name, seq, formula)
    causes = re.findall(r"([a-z-]+) ([+-][\d,]+)", match[2])
    return int(match[1].replace(",", "")), {cause: int(amount.replace(",", "")) for cause, amount in causes}


def config(name: str) -> dict[str, Any]:
    stated: dict[str, Any] = json.loads((CONFIGURATIONS / f"{name}.json").read_text())
    return stated


def products(c: dict[str, Any]) -> tuple[int, int]:
    """Multiply-adds per token: those that read weights, and those of attention per token of the sequence."""
    if c["model_type"] == "gpt2":
        h, layers = c["n_embd"], c["n_layer"]
        return layers * 12 * h * h + h * c["vocab_size"], layers * 2 * h
    h, layers, heads = c["hidden_size"], c["num_hidden_layers"], c["num_attention_heads"]
    gated = 3 * h * c["intermediate_size"]
    if c["model_type"] == "deepseek_v3":
        rope, inner, value = c["qk_rope_head_dim"], c["qk_nope_head_dim"], c["v_head_dim"]
        queries = h * c["q_lora_rank"] + c["q_lora_rank"] * heads * (inner + rope)
        keys = h * (c["kv_lora_rank"] + rope) + c["kv_lora_rank"] * heads * (inner + value)
        latent = queries + keys + heads * value * h
        experts = c["num_experts_per_tok"] + c["n_shared_experts"]
        routed = h * c["n_routed_experts"] + experts * 3 * h * c["moe_intermediate_size"]
        dense = c["first_k_dense_replace"]
        weights = layers * latent + dense * gated + (layers - dense) * routed
        return weights + h * c["vocab_size"], layers * heads * (inner + rope + value)
    width = heads * c.get("head_dim", h // heads)
    attention = 2 * h * width + 2 * h * width * c["num_key_value_heads"] // heads
    if "num_local_experts" in c:
        gated = h * c["num_local_experts"] + c["num_experts_per_tok"] * gated
    return layers * (attention + gated) + h * c["vocab_size"], layers * 2 * width


def test_the_overview_follows_from_the_sections() -> None:
    assert PAGE.read_text() == HEAD + overview(SECTIONS) + "".join(SECTIONS.values()), STALE
    exact = [key for key in CASES if "exact" in ratios(SECTIONS[key]).values()]
    assert ("llama-3-8b", 8192) in exact
    assert [key for key in CASES if ("Right for this model" in SECTIONS[key]) != (key in exact)] == []


def test_every_model_is_there_at_every_length() -> None:
    assert list(SECTIONS) == CASES
    assert [key for key, text in SECTIONS.items() if "residual" in text] == []


@pytest.mark.parametrize(("name", "seq"), CASES)
def test_what_ran_is_a_closed_form_of_the_configuration(name: str, seq: int) -> None:
    weights, pairs = products(config(name))
    assert row(name, seq, "*what ran*")[0] == 6 * (weights + pairs * seq)


@pytest.mark.parametrize(("name", "seq"), CASES)
def test_each_formula_and_its_causes_give_what_ran(name: str, seq: int) -> None:
    weights, pairs = products(config(name))
    names = re.findall(r"^\| ([a-z0-9.-]+) \|", SECTIONS[name, seq], re.MULTILINE)
    names.remove("formula")
    assert len(names) >= 14
    told = {n: row(name, seq, n) for n in names}
    ran = 6 * (weights + pairs * seq)
    assert [n for n, (token, causes) in told.items() if token * seq + sum(causes.values()) != ran * seq] == []


def test_the_disputed_numbers() -> None:
    c = config("llama-3-8b")
    h, layers, vocabulary = c["hidden_size"], c["num_hidden_layers"], c["vocab_size"]
    table, norms = h * vocabulary, (2 * layers + 1) * h
    ran, _ = row("llama-3-8b", 8192, "*what ran*")
    nanogpt, causes = row("llama-3-8b", 8192, "nanogpt")
    assert (table, norms, nanogpt - ran) == (525_336_576, 266_240, 3_153_616_896)
    assert causes == {"lookup-as-product": -6 * table * 8192, "parameters-as-products": -6 * norms * 8192}
    assert row("llama-3-8b", 8192, "trl") == (ran, {})
    assert row("llama-3-8b", 8192, "torchtitan")[1] == {"parameters-as-products": -6 * norms * 8192}
    qwen = config("qwen3-0.6b")
    wide = qwen["num_attention_heads"] * qwen["head_dim"] - qwen["hidden_size"]
    lost = (
        12 * qwen["num_hidden_layers"] * wide * 2048
    )  # per token: attention is as wide as its heads, not as the model
    assert row("qwen3-0.6b", 2048, "nanogpt")[1]["width-assumed"] == lost * 2048


@pytest.mark.matrix
@pytest.mark.frameworks
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("name", "seq"), [("gpt2", 1024), ("mixtral-8x7b", 2048)])
def test_a_section_made_again_is_the_same(name: str, seq: int) -> None:
    assert section(name, seq).strip() == SECTIONS[name, seq].strip(), STALE
