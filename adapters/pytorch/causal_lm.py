"""A language model of transformers from its configuration alone: on meta, with one batch of tokens."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.errors import UsageError, described
from ..shared.refusal import FactoryError

OFFSET = 2
"""Rows that a table of positions has more than positions: OPT's and BART's start at 2."""


@dataclass(frozen=True, slots=True)
class Lora:
    """Adapters: their rank, and the last names of the modules that get one, all nn.Linear but the head unless some are named."""

    rank: int
    targets: tuple[str, ...] = ()


Source = Path | Mapping[str, Any]
"""A config.json, or what stands in one."""


def factory(
    source: Source, batch: int, seq: int, lengths: Sequence[int] = (), lora: Lora | None = None
) -> Callable[[], tuple[Any, Any]]:
    """A function that makes the model of a configuration and its token ids, int64 (batch, seq). No weight is allocated.
    ``lengths`` are those of documents that are packed into each sequence, and ``seq`` is their sum; with ``lora`` the weights are
    frozen and adapters are trained.

    Of a model that reads images as well it is the language model: its text_config. An encoder with a decoder is called with as
    many tokens on each side. Attention and experts are those that transformers takes by default, where the model has them:
    scaled_dot_product_attention and grouped products in bfloat16, which need no values; attention of two sides is plain
    products, since BART reads its mask. Their work is that of every other implementation. Raises UsageError, with one sentence,
    for a configuration that describes no such model.
    """
    settings, file = _settings(source), title(source)
    try:
        import torch
        from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM

        from .documents import Documents
        from .libraries.lora import adapted
    except ImportError as error:
        raise UsageError(
            f"{file} describes a model of transformers, which cannot be imported here ({error}): install transformers."
        ) from error
    kind = str(settings.pop("model_type"))
    try:
        config = AutoConfig.for_model(kind, **settings)
    except Exception as error:
        raise UsageError(f"{file} is not a configuration that transformers reads: {described(error)}.") from error
    whole, config = config, config.get_text_config()
    sides = bool(config.is_encoder_decoder)
    if sides and lengths:
        raise UsageError(f"{file} describes an encoder and a decoder, in which no documents are packed: give --seq.")
    auto = AutoModelForSeq2SeqLM if sides else AutoModelForCausalLM
    chosen = {"attn_implementation": "eager"} if sides else {}

    @functools.cache  # it has no values that a step could change: the trace and every formula read one model
    def make() -> tuple[Any, Any]:
        with torch.device("meta"):
            model = auto.from_config(config, dtype=torch.bfloat16, **chosen)
            model = adapted(model, lora.rank, lora.targets) if lora is not None else model
            model = Documents(model, lengths) if lengths else model
            ids = [torch.zeros(batch, seq, dtype=torch.int64) for _ in range(1 + sides)]
            return model, dict(zip(("input_ids", "decoder_input_ids"), ids, strict=True)) if sides else tuple(ids)

    try:
        tables = [m for m in make()[0].modules() if isinstance(m, torch.nn.Embedding)]
    except FactoryError as error:
        raise UsageError(str(error)) from error
    except Exception as error:
        raise UsageError(f"transformers makes no language model of {file}: {described(error)}.") from error
    stated = int(getattr(config, "max_position_embeddings", 0) or 0)
    most = max(lengths, default=seq)
    longest = stated if any(0 <= table.num_embeddings - stated <= OFFSET for table in tables if stated) else most
    if most > longest:  # on meta, no look-up fails
        told = "documents of as many tokens" if lengths else f"--seq {longest}"
        raise UsageError(f"the model of {file} has a table of {longest:,} positions: give {told}, or fewer.")
    make.__name__ = make.__qualname__ = name_of(source) + ("" if config is whole else " (its text_config)")
    return make


def title(source: Source) -> str:
    """What a sentence calls the configuration: the path of its file, or the type of its model."""
    return str(source) if isinstance(source, Path) else f"the configuration of {source.get('model_type', 'no type')}"


def name_of(source: Source) -> str:
    """The model's name: that of the file, of the folder of a config.json, or the type of model without either."""
    if isinstance(source, Path):
        return source.stem if source.stem != "config" else source.resolve().parent.name
    return str(source.get("model_type", ""))


def _settings(source: Source) -> dict[str, Any]:
    try:
        settings = json.loads(source.read_text(encoding="utf-8")) if isinstance(source, Path) else source
    except (OSError, ValueError) as error:
        raise UsageError(f"{source} cannot be read as a configuration: {described(error)}.") from error
    if not isinstance(settings, Mapping) or not isinstance(settings.get("model_type"), str):
        told = title(source) if isinstance(source, Path) else "the mapping"
        raise UsageError(f"{told} has no model_type, so it is no configuration of a model of transformers.")
    return {name: value for name, value in settings.items() if name != "auto_map"}
