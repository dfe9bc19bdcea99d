"""Builds a transformers language model and its token ids from its config.json alone, on meta, for ``reconcile llm``."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from .....core.errors import UsageError
from .config_source import SEQ, Lora, Sizes, refuse


def language_model(file: str, config: Any, sizes: Sizes, lora: Lora | None = None) -> tuple[Any, Any]:
    """The model of a configuration on meta and its token ids, int64 (batch, seq). ``file`` is for messages. Lengths are those of
    documents that are packed into each sequence, and make it up; with ``lora`` the weights are frozen and adapters are trained.

    Of a model that reads images as well it is the language model: its text_config. An encoder with a decoder is called with as
    many tokens on each side. Attention and experts are those that transformers takes by default, where the model has them:
    scaled_dot_product_attention and grouped products in bfloat16, which need no values; attention of two sides is plain
    products, since BART reads its mask. Their work is that of every other implementation. Raises UsageError, with one sentence,
    for a configuration that describes no such model, for documents in two sides, and for more tokens than it has positions.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM

    from ..model_facts import OFFSET
    from .described_model import describe_model, pack_documents
    from .lora import add_adapters

    batch, lengths = sizes.batch, sizes.lengths
    seq = sum(lengths) or sizes.seq or SEQ
    whole, config = config, config.get_text_config()
    sides = bool(config.is_encoder_decoder)
    if sides and lengths:
        raise UsageError(f"{file} describes an encoder and a decoder, in which no documents are packed: give --seq.")
    auto = AutoModelForSeq2SeqLM if sides else AutoModelForCausalLM
    chosen = {"attn_implementation": "eager"} if sides else {}
    read_own_masks()

    with refuse(f"transformers makes no language model of {file}"), torch.device("meta"):
        model = auto.from_config(config, dtype=torch.bfloat16, **chosen)
        model.config.pad_token_id = None  # some models look for padding, and ids on meta have no values
        evenly = share_tokens(model, batch, seq)
        model = add_adapters(model, lora.rank, lora.targets) if lora is not None else model
        model = pack_documents(model, lengths) if lengths else model
        describe_model(model, whole=whole.model_type, evenly=evenly)
        ids = [torch.zeros(batch, seq, dtype=torch.int64) for _ in range(1 + sides)]
    tables = [m for m in model.modules() if isinstance(m, torch.nn.Embedding)]
    stated = int(getattr(config, "max_position_embeddings", 0) or 0)
    most = max(lengths, default=seq)
    longest = stated if any(0 <= table.num_embeddings - stated <= OFFSET for table in tables if stated) else most
    if most > longest:  # on meta, no look-up fails
        told = "documents of as many tokens" if lengths else f"--seq {longest}"
        raise UsageError(f"the model of {file} has a table of {longest:,} positions: give {told}, or fewer.")
    return model, dict(zip(("input_ids", "decoder_input_ids"), ids, strict=True)) if sides else tuple(ids)


def read_own_masks() -> None:
    """Let transformers take a mask on meta for one that hides no token, and positions for those of one document: a model that is
    given none makes such ones, and cannot look into them. Only what would raise an error changes."""
    from transformers import masking_utils

    for name in ("_ignore_causal_mask_sdpa", "_ignore_bidirectional_mask_sdpa"):
        skips = getattr(masking_utils, name, None)  # not in every version
        if skips is not None and not hasattr(skips, "__wrapped__"):
            setattr(masking_utils, name, _skip_if_meta(skips))
    finds = getattr(masking_utils, "find_packed_sequence_indices", None)
    if finds is not None and not hasattr(finds, "__wrapped__"):
        masking_utils.find_packed_sequence_indices = wraps(finds)(lambda ids: None if ids.is_meta else finds(ids))


def _skip_if_meta(skips: Callable[..., bool]) -> Callable[..., bool]:
    @wraps(skips)
    def skips_all(mask: Any, *args: Any, **kwargs: Any) -> bool:
        return skips(None if mask is not None and mask.is_meta else mask, *args, **kwargs)

    return skips_all


def share_tokens(model: Any, batch: int, seq: int) -> bool:
    """Have the experts of a model share tokens evenly if its configuration has an ``expert_capacity``: on meta, the router has no
    values that choose. Returns whether they do.

    Each expert gets an equal part of a sequence's tokens, the first ones one more if these do not divide, and at most its
    capacity of them, in each of ``batch`` sequences. A token beyond it meets none, as in the model's own code: Top1Router and
    Experts of huggingface/transformers 5.23.0 src/transformers/models/switch_transformers/modeling_switch_transformers.py.
    """
    capacity = getattr(getattr(model, "config", None), "expert_capacity", None)
    if not isinstance(capacity, int):
        return False
    shared = [module for path, module in model.named_modules() if path.rpartition(".")[2] == "experts"]
    for module in shared:
        least, more = divmod(seq, len(module))
        rows = [batch * min(least + (i < more), capacity) for i in range(len(module))]
        kind = type(module)
        module.__class__ = type(kind.__name__, (kind,), {"forward": _forward, "rows": rows})
    return bool(shared)


def _forward(self: Any, hidden_states: Any, _selected_experts: Any, routing_weights: Any) -> Any:
    """What the experts make of their tokens, (tokens, width), and zeros for those that meet none."""
    import torch

    parts = hidden_states.split([*self.rows, len(hidden_states) - sum(self.rows)])
    weights = routing_weights.split([len(part) for part in parts])
    made = [expert(part) * weight for expert, part, weight in zip(self.values(), parts, weights, strict=False)]
    return torch.cat([*made, torch.zeros_like(parts[-1])])
