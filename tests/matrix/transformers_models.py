"""Classes that transformers 4.57 has in both frameworks, each from one small configuration; weights untrained.

A user's file: nothing of reconcile is imported here.
"""

import os
from typing import Any, NamedTuple

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

S, D, SIZE = 16, 12, 64
TEXT = (f"input_ids=1,{S}:int64", f"attention_mask=1,{S}:int64")
IDS = TEXT[:1]
DECODED = (*TEXT, f"decoder_input_ids=1,{D}:int64")
IMAGE = (f"pixel_values=1,3,{SIZE},{SIZE}",)

ENCODER = {
    "vocab_size": 101, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
    "max_position_embeddings": 40,
}  # fmt: skip
GPT = {"vocab_size": 101, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 40}
BART = {
    "vocab_size": 101, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 40,
    "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2, "forced_eos_token_id": 2,
}  # fmt: skip
VISION = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48, "image_size": SIZE,
    "patch_size": 16,
}  # fmt: skip
T5 = {"vocab_size": 101, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}
STAGES = {"hidden_sizes": [16, 32], "depths": [1, 1]}


class Twins(NamedTuple):
    """A class in both frameworks: TensorFlow's has ``TF`` before its name. ``settings`` are of their one configuration."""

    config: str
    settings: dict[str, Any]
    inputs: tuple[str, ...]


TWINS = {
    "AlbertModel": Twins("AlbertConfig", {**ENCODER, "embedding_size": 16}, TEXT),
    "BertModel": Twins("BertConfig", ENCODER, TEXT),
    "BertForMaskedLM": Twins("BertConfig", ENCODER, TEXT),
    "RobertaModel": Twins("RobertaConfig", ENCODER, TEXT),
    "XLMRobertaForSequenceClassification": Twins("XLMRobertaConfig", ENCODER, TEXT),
    "CamembertForTokenClassification": Twins("CamembertConfig", ENCODER, TEXT),
    "ElectraModel": Twins("ElectraConfig", {**ENCODER, "embedding_size": 16}, TEXT),
    "DistilBertForQuestionAnswering": Twins(
        "DistilBertConfig",
        {"vocab_size": 101, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48, "max_position_embeddings": 40},
        TEXT,
    ),
    "MPNetModel": Twins("MPNetConfig", ENCODER, TEXT),
    "RemBertModel": Twins("RemBertConfig", {**ENCODER, "input_embedding_size": 16}, TEXT),
    "RoFormerModel": Twins("RoFormerConfig", ENCODER, TEXT),
    "LayoutLMModel": Twins("LayoutLMConfig", ENCODER, TEXT),  # makes its boxes itself: random numbers are no boxes
    "DebertaModel": Twins("DebertaConfig", ENCODER, TEXT),
    "DebertaV2Model": Twins("DebertaV2Config", ENCODER, TEXT),
    "FunnelModel": Twins(
        "FunnelConfig",
        {"vocab_size": 101, "d_model": 32, "n_head": 4, "d_head": 8, "d_inner": 48, "block_sizes": [1, 1]},
        TEXT,
    ),
    "OpenAIGPTModel": Twins("OpenAIGPTConfig", GPT, IDS),
    "GPT2Model": Twins("GPT2Config", GPT, IDS),
    "GPTJModel": Twins("GPTJConfig", {**GPT, "rotary_dim": 4}, IDS),
    "CTRLModel": Twins("CTRLConfig", {**GPT, "dff": 48}, IDS),
    "OPTModel": Twins(
        "OPTConfig",
        {
            "vocab_size": 101, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 48,
            "word_embed_proj_dim": 32, "max_position_embeddings": 40,
        },
        IDS,
    ),
    "XLNetModel": Twins("XLNetConfig", {"vocab_size": 101, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 48}, IDS),
    "T5Model": Twins("T5Config", T5, DECODED),
    "BartModel": Twins("BartConfig", BART, DECODED),
    "MBartModel": Twins("MBartConfig", BART, DECODED),
    "PegasusModel": Twins("PegasusConfig", BART, DECODED),
    "ViTModel": Twins("ViTConfig", VISION, IMAGE),
    "DeiTModel": Twins("DeiTConfig", VISION, IMAGE),
    "ConvNextModel": Twins("ConvNextConfig", {**STAGES, "num_stages": 2}, IMAGE),
    "ResNetModel": Twins("ResNetConfig", {**STAGES, "embedding_size": 16}, IMAGE),
    "RegNetModel": Twins("RegNetConfig", {**STAGES, "embedding_size": 16, "groups_width": 8}, IMAGE),
    "SwinModel": Twins(
        "SwinConfig",
        {"image_size": SIZE, "patch_size": 4, "embed_dim": 16, "depths": [1, 1], "num_heads": [2, 2], "window_size": 4},
        IMAGE,
    ),
    "MobileViTModel": Twins(
        "MobileViTConfig",
        {"image_size": SIZE, "hidden_sizes": [16, 24, 32], "neck_hidden_sizes": [8, 8, 16, 16, 24, 32, 48]},
        IMAGE,
    ),
}  # fmt: skip


def _made(twin: str, config: str, settings: dict[str, Any]) -> Any:
    import transformers

    return getattr(transformers, twin)(getattr(transformers, config)(**settings))


def torch_twin(name: str) -> Any:
    return _made(name, TWINS[name].config, TWINS[name].settings)


def tf_twin(name: str) -> Any:
    return _made(f"TF{name}", TWINS[name].config, TWINS[name].settings)


def torch_t5() -> Any:
    """With a head, which test_huggingface.py looks at."""
    return _made("T5ForConditionalGeneration", "T5Config", T5)


def tf_t5() -> Any:
    return _made("TFT5ForConditionalGeneration", "T5Config", T5)
