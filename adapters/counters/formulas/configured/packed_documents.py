"""A language model on sequences of packed documents, each of which attends only to itself (``reconcile llm --lengths``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

WHOLE_TYPE = "_reconcile_whole_type"
"""Where a model keeps the model_type of the configuration whose text_config it was made of."""


class Documents(torch.nn.Module):
    """A language model on sequences of packed documents: documents of one length are a call of it, as a batch.

    This is the work of kernels that get the documents' lengths: each product with a weight has all tokens, attention has those
    of a document, and positions start anew in each. A kernel that masks other documents instead multiplies all pairs.
    """

    def __init__(self, model: torch.nn.Module, lengths: Sequence[int]) -> None:
        super().__init__()
        self.model = model
        self.lengths = list(lengths)
        self.config = getattr(model, "config", None)

    def forward(self, input_ids: Any) -> list[Any]:
        """What the model returns for the documents of each length: ids are int64, (batch, the sum of the lengths)."""
        groups: dict[int, list[Any]] = {}
        start = 0
        for length in self.lengths:
            groups.setdefault(length, []).append(input_ids[:, start : start + length])
            start += length
        return [self.model(torch.cat(documents)) for documents in groups.values()]
