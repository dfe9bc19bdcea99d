"""What a step of the full-size models multiplies, by closed forms of their configurations: multiply-adds."""

from __future__ import annotations

from typing import Any


def latent(c: dict[str, Any]) -> tuple[int, int]:
    """Of a layer's latent attention per token: the weights, and both products per key."""
    h, heads = c["hidden_size"], c["num_attention_heads"]
    rope, inner, value = c["qk_rope_head_dim"], c["qk_nope_head_dim"], c["v_head_dim"]
    queries = h * c["q_lora_rank"] + c["q_lora_rank"] * heads * (inner + rope)
    keys = h * (c["kv_lora_rank"] + rope) + c["kv_lora_rank"] * heads * (inner + value)
    return queries + keys + heads * value * h, heads * (inner + rope + value)


def grouped(c: dict[str, Any]) -> tuple[int, int]:
    """The same of attention with fewer key and value heads than query heads."""
    h, heads = c["hidden_size"], c["num_attention_heads"]
    width = heads * c.get("head_dim", h // heads)
    return 2 * h * width + 2 * h * width * c["num_key_value_heads"] // heads, 2 * width


def products(c: dict[str, Any]) -> tuple[int, int]:
    """Multiply-adds per token: those that read weights, and those of attention per token of the sequence."""
    if c["model_type"] == "gpt2":
        h, layers = c["n_embd"], c["n_layer"]
        return layers * 12 * h * h + h * c["vocab_size"], layers * 2 * h
    h, layers = c["hidden_size"], c["num_hidden_layers"]
    attention, pairs = latent(c) if "kv_lora_rank" in c else grouped(c)
    gated, head = 3 * h * c["intermediate_size"], h * c["vocab_size"]
    if c["model_type"] == "qwen3_next":
        few, (before, _) = layers // c["full_attention_interval"], delta(c, 64)
        experts = h * c["num_experts"] + c["num_experts_per_tok"] * 3 * h * c["moe_intermediate_size"]
        experts += 3 * h * c["shared_expert_intermediate_size"] + h
        gate = h * c["num_attention_heads"] * c["head_dim"]
        return few * (attention + gate) + (layers - few) * before + layers * experts + head, few * pairs
    if "n_routed_experts" in c:
        experts = c["num_experts_per_tok"] + c.get("n_shared_experts", 1)
        routed = h * c["n_routed_experts"] + experts * 3 * h * c["moe_intermediate_size"]
        dense = c["first_k_dense_replace"]
        return layers * attention + dense * gated + (layers - dense) * routed + head, layers * pairs
    experts = c.get("num_local_experts", c.get("num_experts"))
    if experts:
        each = 3 * h * c.get("moe_intermediate_size", c["intermediate_size"])
        gated = h * experts + c["num_experts_per_tok"] * each
    return layers * (attention + gated) + head, layers * pairs


TAPS = 4
"""Of the convolution before a recurrence."""


def delta(c: dict[str, Any], chunk: int) -> tuple[int, int]:
    """Of a layer of the gated delta rule: the weights per token, and the rule of one chunk."""
    h, wide = c["hidden_size"], c["linear_key_head_dim"]
    keys, heads, values = c["linear_num_key_heads"] * wide, c["linear_num_value_heads"], c["linear_value_head_dim"]
    before = h * (2 * keys + 2 * heads * values + 2 * heads) + TAPS * (2 * keys + heads * values)
    rule = heads * (chunk * chunk * (2 * wide + values) + 3 * chunk * wide * values)
    return before + heads * values * h, rule


def apart(c: dict[str, Any], pass_: str, seq: int) -> int:
    """What is not three times its forward pass in a step: a recurrence (transformers' own code, in chunks of 64), and an indexer,
    which runs forward alone.

    The gradient of a triangular system is a product of gradients and solutions, which the forward pass has none of. The first
    state is zero and needs no gradient, and nothing reads the last one. An indexer has three weights, a score of every pair in
    each head, and their sum over the heads.
    """
    training = pass_ == "training"
    if c["model_type"] == "qwen3_next":
        layers = c["num_hidden_layers"] - c["num_hidden_layers"] // c["full_attention_interval"]
        wide, values, heads = c["linear_key_head_dim"], c["linear_value_head_dim"], c["linear_num_value_heads"]
        keys = c["linear_num_key_heads"] * wide
        _, rule = delta(c, 64)
        taps = (TAPS - 1) * TAPS * (2 * keys + heads * values)
        chunks = -(-seq // 64)
        more = heads * (chunks * 64 * 64 * (wide + values) - 4 * 64 * wide * values)
        return int(layers * ((3 if training else 1) * (taps + chunks * rule) + (more if training else 0)))
    if "index_topk" in c:
        h, heads, width = c["hidden_size"], c["index_n_heads"], c["index_head_dim"]
        offset, often = c.get("index_skip_topk_offset", 0), c.get("index_topk_freq", 1)
        layers = sum(max(i + 1 - offset, 0) % often == 0 for i in range(c["num_hidden_layers"]))
        weights = c["q_lora_rank"] * heads * width + h * width + h * heads
        return int(layers * (seq * weights + seq * seq * heads * (width + 1)))
    return 0


def flops(c: dict[str, Any], pass_: str, seq: int) -> int:
    """FLOPs of a step of one sequence."""
    weights, pairs = products(c)
    return 2 * ((3 if pass_ == "training" else 1) * seq * (weights + pairs * seq) + apart(c, pass_, seq))
