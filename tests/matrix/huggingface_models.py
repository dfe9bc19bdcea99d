"""HuggingFace models in both frameworks from one config each, weights untrained: nothing is downloaded.

A user's file: nothing of reconcile is imported here.
"""

import os
from typing import Any

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

BERT = {
    "vocab_size": 101,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 40,
}
GPT2 = {"vocab_size": 101, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 40}
DISTILBERT = {
    "vocab_size": 101,
    "dim": 32,
    "n_layers": 2,
    "n_heads": 4,
    "hidden_dim": 48,
    "max_position_embeddings": 40,
}
T5 = {"vocab_size": 101, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}
VIT = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "image_size": 32,
    "patch_size": 8,
}


def _made(name: str, config: str, settings: dict[str, Any]) -> Any:
    import transformers

    return getattr(transformers, name)(getattr(transformers, config)(**settings))


def bert() -> Any:
    return _made("BertModel", "BertConfig", BERT)


def tf_bert() -> Any:
    return _made("TFBertModel", "BertConfig", BERT)


def gpt2() -> Any:
    return _made("GPT2Model", "GPT2Config", GPT2)


def tf_gpt2() -> Any:
    return _made("TFGPT2Model", "GPT2Config", GPT2)


def distilbert() -> Any:
    return _made("DistilBertModel", "DistilBertConfig", DISTILBERT)


def tf_distilbert() -> Any:
    return _made("TFDistilBertModel", "DistilBertConfig", DISTILBERT)


def t5() -> Any:
    return _made("T5ForConditionalGeneration", "T5Config", T5)


def tf_t5() -> Any:
    return _made("TFT5ForConditionalGeneration", "T5Config", T5)


def vit() -> Any:
    return _made("ViTModel", "ViTConfig", VIT)


def tf_vit() -> Any:
    return _made("TFViTModel", "ViTConfig", VIT)


def bert_base() -> Any:
    return _made("BertModel", "BertConfig", {})


def tf_bert_base() -> Any:
    return _made("TFBertModel", "BertConfig", {})
