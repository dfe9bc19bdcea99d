"""Each formula beside its own source: the function that the formula cites was run, unchanged, on each of these configurations.

The sources are not here. A figure is what the function at the commit that the formula cites returned for a batch, given the sizes
that the configuration states and, where it counts parameters, those of the model that transformers makes of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = [pytest.mark.matrix, pytest.mark.frameworks, pytest.mark.timeout(900)]

LLAMA = {
    "model_type": "llama", "vocab_size": 1003, "hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 6,
    "num_key_value_heads": 2, "head_dim": 10, "intermediate_size": 116, "max_position_embeddings": 64,
    "tie_word_embeddings": False,
}  # fmt: skip
DEEPSEEK = {
    "model_type": "deepseek_v3", "vocab_size": 719, "hidden_size": 72, "num_hidden_layers": 5, "num_attention_heads": 6,
    "num_key_value_heads": 6, "q_lora_rank": 28, "kv_lora_rank": 20, "qk_rope_head_dim": 6, "qk_nope_head_dim": 10,
    "v_head_dim": 14, "intermediate_size": 150, "moe_intermediate_size": 24, "n_routed_experts": 12, "n_group": 4,
    "topk_group": 2, "num_experts_per_tok": 4, "n_shared_experts": 2, "first_k_dense_replace": 2,
    "num_nextn_predict_layers": 0, "tie_word_embeddings": False,
}  # fmt: skip
GLM = {
    "model_type": "glm_moe_dsa", "vocab_size": 739, "hidden_size": 72, "num_hidden_layers": 5, "num_attention_heads": 6,
    "num_key_value_heads": 6, "q_lora_rank": 28, "kv_lora_rank": 20, "qk_rope_head_dim": 6, "qk_nope_head_dim": 10,
    "v_head_dim": 14, "intermediate_size": 150, "moe_intermediate_size": 24, "n_routed_experts": 12, "n_group": 1,
    "topk_group": 1, "num_experts_per_tok": 4, "n_shared_experts": 1, "first_k_dense_replace": 2, "index_n_heads": 3,
    "index_head_dim": 16, "index_topk": 12, "tie_word_embeddings": False,
}  # fmt: skip
CONFIGURATIONS: dict[str, tuple[int, int, dict[str, Any]]] = {
    # tokens of a sequence, sequences, and what the configuration states
    "bert": (44, 2, {
        "model_type": "bert", "vocab_size": 491, "hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 100, "is_decoder": True,
    }),
    "deepseek_v3": (44, 2, DEEPSEEK),
    "deepseek_v3_freq": (44, 2, {**DEEPSEEK, "vocab_size": 761, "moe_layer_freq": 1}),
    "deepseek_v3_mtp": (44, 2, {**DEEPSEEK, "num_nextn_predict_layers": 2}),
    "gemma3": (44, 2, {
        "model_type": "gemma3_text", "vocab_size": 431, "hidden_size": 52, "num_hidden_layers": 8, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 18, "intermediate_size": 118, "sliding_window": 10,
    }),
    "glm4_moe_mtp": (44, 2, {
        "model_type": "glm4_moe", "vocab_size": 787, "hidden_size": 48, "num_hidden_layers": 4, "num_attention_heads": 6,
        "num_key_value_heads": 2, "head_dim": 10, "intermediate_size": 92, "moe_intermediate_size": 32, "n_routed_experts": 8,
        "num_experts_per_tok": 3, "n_shared_experts": 1, "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1,
        "tie_word_embeddings": False, "num_nextn_predict_layers": 1,
    }),
    "glm_dsa_freq": (
        44, 2,
        {**GLM, "vocab_size": 743, "num_hidden_layers": 7, "index_topk_freq": 2, "index_skip_topk_offset": 2},
    ),
    "glm_dsa_freq_mtp": (
        44, 2,
        {
            **GLM, "vocab_size": 751, "num_hidden_layers": 8, "index_topk": 8, "index_topk_freq": 3,
            "index_skip_topk_offset": 3, "num_nextn_predict_layers": 1,
        },
    ),
    "glm_moe_dsa": (44, 2, GLM),
    "gpt2": (36, 3, {"model_type": "gpt2", "vocab_size": 301, "n_embd": 60, "n_layer": 5, "n_head": 4, "n_positions": 36}),
    "gpt2_b": (52, 3, {"model_type": "gpt2", "vocab_size": 257, "n_embd": 48, "n_layer": 3, "n_head": 6, "n_positions": 52}),
    "gpt2_c": (20, 4, {"model_type": "gpt2", "vocab_size": 523, "n_embd": 72, "n_layer": 2, "n_head": 8, "n_positions": 20}),
    "gpt_oss": (44, 2, {
        "model_type": "gpt_oss", "vocab_size": 433, "hidden_size": 56, "num_hidden_layers": 4, "num_attention_heads": 6,
        "num_key_value_heads": 3, "head_dim": 10, "intermediate_size": 32, "num_local_experts": 9, "num_experts_per_tok": 4,
        "sliding_window": 16,
    }),
    "llama": (40, 2, LLAMA),
    "llama4": (44, 2, {
        "model_type": "llama4_text", "vocab_size": 443, "hidden_size": 48, "num_hidden_layers": 4, "num_attention_heads": 6,
        "num_key_value_heads": 2, "head_dim": 10, "intermediate_size": 44, "intermediate_size_mlp": 92,
        "num_local_experts": 5, "num_experts_per_tok": 1, "interleave_moe_layer_step": 2, "attention_chunk_size": 16,
    }),
    "llama_tied": (44, 2, {
        "model_type": "llama", "vocab_size": 517, "hidden_size": 56, "num_hidden_layers": 4, "num_attention_heads": 7,
        "num_key_value_heads": 1, "intermediate_size": 132, "max_position_embeddings": 64, "tie_word_embeddings": True,
    }),
    "mpt": (48, 2, {
        "model_type": "mpt", "vocab_size": 479, "d_model": 64, "n_layers": 3, "n_heads": 4, "max_seq_len": 48,
        "expansion_ratio": 4,
    }),
    "odd_qwen3": (44, 2, {
        "model_type": "qwen3", "vocab_size": 773, "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 6,
        "num_key_value_heads": 2, "head_dim": 10, "intermediate_size": 150, "tie_word_embeddings": True,
    }),
    "olmo2": (44, 2, {
        "model_type": "olmo2", "vocab_size": 461, "hidden_size": 60, "num_hidden_layers": 3, "num_attention_heads": 6,
        "num_key_value_heads": 6, "intermediate_size": 126, "tie_word_embeddings": False,
    }),
    "olmo3": (44, 2, {
        "model_type": "olmo3", "vocab_size": 463, "hidden_size": 64, "num_hidden_layers": 5, "num_attention_heads": 8,
        "num_key_value_heads": 2, "intermediate_size": 134, "sliding_window": 18, "tie_word_embeddings": False,
    }),
    "olmoe": (44, 2, {
        "model_type": "olmoe", "vocab_size": 467, "hidden_size": 56, "num_hidden_layers": 4, "num_attention_heads": 4,
        "num_key_value_heads": 4, "intermediate_size": 40, "num_experts": 6, "num_experts_per_tok": 2,
        "tie_word_embeddings": False,
    }),
    "qwen2_moe": (44, 2, {
        "model_type": "qwen2_moe", "vocab_size": 449, "hidden_size": 48, "num_hidden_layers": 4, "num_attention_heads": 6,
        "num_key_value_heads": 2, "intermediate_size": 92, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 38,
        "num_experts": 8, "num_experts_per_tok": 3,
    }),
    "qwen3_moe_mixed": (44, 2, {
        "model_type": "qwen3_moe", "vocab_size": 659, "hidden_size": 64, "num_hidden_layers": 5, "num_attention_heads": 8,
        "num_key_value_heads": 2, "head_dim": 12, "intermediate_size": 200, "moe_intermediate_size": 40, "num_experts": 10,
        "num_experts_per_tok": 3, "decoder_sparse_step": 1, "tie_word_embeddings": False, "mlp_only_layers": [1],
    }),
    "qwen3_next": (44, 2, {
        "model_type": "qwen3_next", "vocab_size": 457, "hidden_size": 48, "num_hidden_layers": 4, "num_attention_heads": 6,
        "num_key_value_heads": 2, "head_dim": 10, "intermediate_size": 92, "moe_intermediate_size": 32,
        "shared_expert_intermediate_size": 38, "num_experts": 8, "num_experts_per_tok": 3, "linear_num_key_heads": 3,
        "linear_num_value_heads": 6, "linear_key_head_dim": 8, "linear_value_head_dim": 14,
    }),
}  # fmt: skip

FIGURES: dict[tuple[str, str], dict[str, int]] = {
    # FLOPs of a step, or of a call
    ("bert", "training"): {"llm-foundry": 51_965_232},
    ("deepseek_v3", "training"): {
        "hf-trainer": 219_352_320, "maxtext": 163_570_176, "megatron": 164_191_104, "torchtitan": 174_569_472,
        "torchtitan-hf": 250_867_584,
    },
    ("deepseek_v3", "forward"): {"vllm": 48_191_712},
    ("deepseek_v3_freq", "training"): {"nemo": 148_743_936},
    ("deepseek_v3_mtp", "training"): {"megatron-bridge": 287_210_880, "megatron-mtp": 287_210_880},
    ("gemma3", "training"): {"maxtext": 143_423_040, "megatron-bridge": 145_707_456},
    ("gemma3", "forward"): {"nanochat-prefill": 47_239_712, "vllm": 44_711_984},
    ("glm4_moe_mtp", "training"): {"megatron-mtp": 121_093_632},
    ("glm_dsa_freq", "training"): {"maxtext": 211_538_016, "megatron-bridge": 206_564_160, "megatron-dsa": 202_263_168},
    ("glm_dsa_freq_mtp", "training"): {"megatron-dsa": 281_680_512, "megatron-mtp": 286_716_672},
    ("glm_moe_dsa", "training"): {"megatron-dsa": 158_011_008},
    ("gpt2", "training"): {
        "gpt-neox": 165_162_240, "gpt-neox-hfu": 220_216_320, "levanter": 166_367_520,
        "chinchilla-ipynb": 154_664_640, "cookbook": 209_213_280, "cookbook-plain": 157_891_680, "hf-trainer": 142_572_960,
        "litgpt": 179_003_520, "nanogpt": 168_272_640, "nemo": 158_669_280, "nemo-llama3": 5_180_215_680,
    },
    ("gpt2", "forward"): {"litgpt": 61_223_040, "nanochat-prefill": 52_954_560},
    ("gpt2_b", "training"): {"nanogpt": 105_041_664},
    ("gpt2_c", "training"): {"nanogpt": 81_527_040},
    ("gpt_oss", "training"): {
        "litgpt": 170_443_328, "megatron-bridge": 86_313_984, "torchtitan": 93_407_424, "torchtitan-main": 89_859_264,
    },
    ("llama", "training"): {
        "gpt-neox": 63_037_440, "gpt-neox-hfu": 84_049_920, "levanter": 62_058_240,
        "chinchilla-ipynb": 35_354_880, "litgpt": 90_708_480, "maxtext": 61_678_080, "megatron": 62_161_920,
        "nemo": 58_775_040, "nemo-llama3": 2_990_684_160, "torchtitan": 65_295_360, "torchtitan-hf": 84_948_480,
        "trl": 65_134_080,
    },
    ("llama", "forward"): {"litgpt": 30_850_560, "nanochat-prefill": 20_352_000, "vllm": 14_200_896},
    ("llama4", "training"): {"megatron": 62_143_488},
    ("llama4", "forward"): {"vllm": 13_669_440},
    ("llama_tied", "training"): {
        "gpt-neox": 104_079_360, "gpt-neox-hfu": 138_772_480, "levanter": 88_644_864,
        "hf-trainer": 62_240_640, "nemo-llama3": 3_859_451_904, "torchtitan": 87_935_232, "torchtitan-main": 87_935_232,
    },
    ("mpt", "training"): {"llm-foundry": 113_467_392},
    ("odd_qwen3", "training"): {
        "chinchilla-ipynb": 63_733_824, "litgpt": 103_097_280, "llm-foundry": 97_149_888, "nemo": 92_142_336,
        "trl": 96_324_096,
    },
    ("odd_qwen3", "forward"): {"litgpt": 35_356_992},
    ("olmo2", "training"): {"olmo-core": 81_924_480},
    ("olmo3", "training"): {"olmo-core": 118_685_952, "torchtitan-main": 119_023_872},
    ("olmoe", "training"): {
        "levanter": 80_361_600,
        "cookbook": 266_713_216, "cookbook-plain": 201_190_528, "olmo-core": 80_070_144,
    },
    ("qwen2_moe", "training"): {"megatron": 71_165_952},
    ("qwen2_moe", "forward"): {"vllm": 17_117_376},
    ("qwen3_moe_mixed", "training"): {
        "levanter": 128_080_128,
        "cookbook": 584_612_864, "cookbook-plain": 440_321_024, "maxtext": 136_485_888, "megatron": 146_589_696,
        "nemo": 134_796_288, "torchtitan-hf": 280_503_168, "trl": 147_637_248,
    },
    ("qwen3_next", "training"): {"torchtitan": 86_449_440, "torchtitan-main": 89_642_784},
}  # fmt: skip


@pytest.fixture
def told(llm_page: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, dict[str, Any]]]:
    """``told(name, pass)``: each formula of `reconcile llm` on a configuration, by name."""

    def run(name: str, pass_: str) -> dict[str, dict[str, Any]]:
        seq, batch, stated = CONFIGURATIONS[name]
        page = llm_page(stated, "--seq", str(seq), "--batch", str(batch), "--pass", pass_)
        return {each["name"].removeprefix("formula:"): each for each in page["formulas"]}

    return run


@pytest.mark.parametrize(("name", "pass_"), FIGURES)
def test_it_is_what_its_source_returns(name: str, pass_: str, told: Callable[..., dict[str, dict[str, Any]]]) -> None:
    found = told(name, pass_)
    figures = FIGURES[name, pass_]
    assert {formula: found[formula]["step"] for formula in figures} == figures


REFUSED = {
    "trl": ("qwen2_moe", "its source reads config.num_local_experts, which this model lacks, and raises there"),
    "megatron": ("qwen3_next", "its source counts linear attention by terms of its own, which are not written here"),
    "megatron-bridge": ("qwen3_next", "its source counts linear attention by terms of its own"),
    "olmo-core": ("qwen3_next", "its source counts linear attention by terms of its own"),
    "maxtext": ("llama4", "its source counts model_type 'llama4_text' by terms of its own"),
}


@pytest.mark.parametrize("formula", REFUSED)
def test_what_its_source_counts_in_another_way_is_refused(
    formula: str, told: Callable[..., dict[str, dict[str, Any]]]
) -> None:
    name, why = REFUSED[formula]
    found = told(name, "training")[formula]
    assert found["step"] is None
    assert why in found["reason"]
