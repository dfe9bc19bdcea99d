"""A language model of transformers from its configuration alone: on meta, with one batch of tokens."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...core.errors import UsageError, described

OFFSET = 2
"""Rows that a table of positions has more than positions: OPT's and BART's start at 2."""


def factory(file: Path, batch: int, seq: int) -> Callable[[], tuple[Any, tuple[Any, ...]]]:
    """A function that makes the model of a config.json and its token ids, int64 (batch, seq). No weight is allocated.

    Attention and experts are those that transformers takes by default: scaled_dot_product_attention and grouped products in
    bfloat16, which need no values, where the model has them. Their work is that of every other implementation. Raises
    UsageError, with one sentence, for a file that describes no such model.
    """
    settings = _settings(file)
    try:
        import torch
        from transformers import AutoConfig, AutoModelForCausalLM
    except ImportError as error:
        raise UsageError(
            f"{file} describes a model of transformers, which cannot be imported here ({error}): install transformers."
        ) from error
    kind = str(settings.pop("model_type"))
    try:
        config = AutoConfig.for_model(kind, **settings)
    except Exception as error:
        raise UsageError(f"{file} is not a configuration that transformers reads: {described(error)}.") from error

    def make() -> tuple[Any, tuple[Any, ...]]:
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
            return model, (torch.zeros(batch, seq, dtype=torch.int64),)

    try:
        tables = [m for m in make()[0].modules() if isinstance(m, torch.nn.Embedding)]
    except Exception as error:
        raise UsageError(f"transformers makes no causal language model of {file}: {described(error)}.") from error
    stated = int(getattr(config, "max_position_embeddings", 0) or 0)
    longest = stated if any(0 <= table.num_embeddings - stated <= OFFSET for table in tables if stated) else seq
    if seq > longest:  # on meta, no look-up fails
        raise UsageError(f"the model of {file} has a table of {longest:,} positions: give --seq {longest}, or fewer.")
    make.__name__ = make.__qualname__ = name_of(file)
    return make


def name_of(file: Path) -> str:
    """The model's name: that of the file, or of the folder of a config.json."""
    return file.stem if file.stem != "config" else file.resolve().parent.name


def _settings(file: Path) -> dict[str, Any]:
    try:
        settings = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} cannot be read as a configuration: {described(error)}.") from error
    if not isinstance(settings, dict) or not isinstance(settings.get("model_type"), str):
        raise UsageError(f"{file} has no model_type, so it is no configuration of a model of transformers.")
    return {name: value for name, value in settings.items() if name != "auto_map"}
