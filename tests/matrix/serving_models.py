"""Small language models of transformers, for a prompt and for decoding steps with their own caches; widths that all differ."""

from __future__ import annotations

from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

B, T, L, H, N, K, D, F, V, E, A, W = 2, 6, 2, 24, 4, 2, 10, 36, 40, 4, 3, 4


def _made(kind: str, **stated: Any) -> tuple[Any, tuple[Any, ...]]:
    widths = {"vocab_size": V, "hidden_size": H, "num_hidden_layers": L, "num_attention_heads": N}
    config = AutoConfig.for_model(kind, **widths, max_position_embeddings=64, **stated)
    return AutoModelForCausalLM.from_config(config), (torch.zeros(B, T, dtype=torch.int64),)


def llama() -> Any:
    return _made("llama", num_key_value_heads=K, intermediate_size=F)


def qwen3() -> Any:
    """Heads of D, and N D is not H."""
    return _made("qwen3", num_key_value_heads=K, head_dim=D, intermediate_size=F)


def gpt2() -> Any:
    """Biases, a table of positions, and a feed-forward of two matrices, 4 H wide."""
    return _made("gpt2")


def mixtral() -> Any:
    """A experts of E for each token."""
    return _made("mixtral", num_key_value_heads=K, intermediate_size=F, num_local_experts=E, num_experts_per_tok=A)


def mistral() -> Any:
    """Every layer sees W keys, and its cache keeps no more."""
    return _made("mistral", num_key_value_heads=K, intermediate_size=F, sliding_window=W)
