"""Builds a transformers language model and its token ids from its config.json alone, on meta, for ``reconcile llm``."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from .....core.errors import UsageError, describe_error
from ....shared.refusal import FactoryError
from .config_source import SEQ, Lora, Made, Sizes, Source, factory_of, name_of, title

OFFSET = 2
"""Rows that a table of positions has more than positions: OPT's and BART's start at 2."""


def language_model(source: Source, config: Any, sizes: Sizes, lora: Lora | None = None) -> Made:
    """Builds the model of a configuration on meta; returns a function that gives it and its token ids, int64 (batch, seq).
    The lengths are those of documents that are packed into each sequence, and make it up; with ``lora`` the weights are frozen
    and adapters are trained.

    Of a model that reads images as well it is the language model: its text_config. An encoder with a decoder is called with as
    many tokens on each side. Attention and experts are those that transformers takes by default, where the model has them:
    scaled_dot_product_attention and grouped products in bfloat16, which need no values; attention of two sides is plain
    products, since BART reads its mask. Their work is that of every other implementation. Raises UsageError, with one sentence,
    for a configuration that describes no such model, for documents in two sides, and for more tokens than it has positions.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM

    from .lora import add_adapters
    from .packed_documents import WHOLE_TYPE, Documents

    file, batch, lengths = title(source), sizes.batch, sizes.lengths
    seq = sum(lengths) or sizes.seq or SEQ
    whole, config = config, config.get_text_config()
    sides = bool(config.is_encoder_decoder)
    if sides and lengths:
        raise UsageError(f"{file} describes an encoder and a decoder, in which no documents are packed: give --seq.")
    auto = AutoModelForSeq2SeqLM if sides else AutoModelForCausalLM
    chosen = {"attn_implementation": "eager"} if sides else {}
    read_own_masks()

    try:
        with torch.device("meta"):
            made = auto.from_config(config, dtype=torch.bfloat16, **chosen)
            made.config.pad_token_id = None  # some models look for padding, and ids on meta have no values
            model = share_tokens(made, batch, seq)
            model = add_adapters(model, lora.rank, lora.targets) if lora is not None else model
            model = Documents(model, lengths) if lengths else model
            setattr(model, WHOLE_TYPE, whole.model_type)
            ids = [torch.zeros(batch, seq, dtype=torch.int64) for _ in range(1 + sides)]
    except FactoryError as error:
        raise UsageError(str(error)) from error
    except Exception as error:
        raise UsageError(f"transformers makes no language model of {file}: {describe_error(error)}.") from error
    tables = [m for m in model.modules() if isinstance(m, torch.nn.Embedding)]
    stated = int(getattr(config, "max_position_embeddings", 0) or 0)
    most = max(lengths, default=seq)
    longest = stated if any(0 <= table.num_embeddings - stated <= OFFSET for table in tables if stated) else most
    if most > longest:  # on meta, no look-up fails
        told = "documents of as many tokens" if lengths else f"--seq {longest}"
        raise UsageError(f"the model of {file} has a table of {longest:,} positions: give {told}, or fewer.")
    inputs = dict(zip(("input_ids", "decoder_input_ids"), ids, strict=True)) if sides else tuple(ids)
    return factory_of(name_of(source) + ("" if config is whole else " (its text_config)"), model, inputs)


def read_own_masks() -> None:
    """Let transformers take a mask on meta for one that hides no token: a model that is given none makes such a mask, and cannot
    look into it. Only what would raise an error changes."""
    from transformers import masking_utils

    for name in ("_ignore_causal_mask_sdpa", "_ignore_bidirectional_mask_sdpa"):
        skips = getattr(masking_utils, name, None)  # not in every version
        if skips is not None and not hasattr(skips, "__wrapped__"):
            setattr(masking_utils, name, _skip_if_meta(skips))


def _skip_if_meta(skips: Callable[..., bool]) -> Callable[..., bool]:
    @wraps(skips)
    def skips_all(mask: Any, *args: Any, **kwargs: Any) -> bool:
        return skips(None if mask is not None and mask.is_meta else mask, *args, **kwargs)

    return skips_all


def share_tokens(model: Any, batch: int, seq: int) -> Any:
    """The model itself; if its configuration has an ``expert_capacity``, its experts share tokens evenly: on meta, the router
    has no values that choose.

    Each expert gets an equal part of a sequence's tokens, the first ones one more if these do not divide, and at most its
    capacity of them, in each of ``batch`` sequences. A token beyond it meets none, as in the model's own code: Top1Router and
    Experts of huggingface/transformers 5.23.0 src/transformers/models/switch_transformers/modeling_switch_transformers.py.
    """
    capacity = getattr(getattr(model, "config", None), "expert_capacity", None)
    if not isinstance(capacity, int):
        return model
    for path, module in list(model.named_modules()):
        if path.rpartition(".")[2] == "experts":
            rows = [batch * n for n in rows_of(len(module), seq, capacity)]
            kind = type(module)
            module.__class__ = type(kind.__name__, (kind,), {"forward": _forward, "rows": rows, "evenly": True})
    return model


def rows_of(experts: int, seq: int, capacity: int) -> list[int]:
    """Tokens of a sequence that each expert gets."""
    least, more = divmod(seq, experts)
    return [min(least + (i < more), capacity) for i in range(experts)]


def _forward(self: Any, hidden_states: Any, _selected_experts: Any, routing_weights: Any) -> Any:
    """What the experts make of their tokens, (tokens, width), and zeros for those that meet none."""
    import torch

    parts = hidden_states.split([*self.rows, len(hidden_states) - sum(self.rows)])
    weights = routing_weights.split([len(part) for part in parts])
    made = [expert(part) * weight for expert, part, weight in zip(self.values(), parts, weights, strict=False)]
    return torch.cat([*made, torch.zeros_like(parts[-1])])
