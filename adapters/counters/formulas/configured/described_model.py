"""Facts of a model that neither its configuration nor its inputs state, and a module around a model that is called otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

FACTS = "_reconcile_facts"
"""The attribute of a model with such facts, by the names that formulas read (terms.py): numbers, words and lists of these."""


def describe_model(model: Any, **facts: Any) -> Any:
    """The model itself, with these facts beside those that it has."""
    setattr(model, FACTS, {**getattr(model, FACTS, {}), **facts})
    return model


class CalledModel(torch.nn.Module):
    """A model that is called as ``call(model, ...)``, by its arguments' names unless that is given; formulas read ``config``."""

    def __init__(
        self, model: torch.nn.Module, config: Any = None, call: Callable[..., Any] = torch.nn.Module.__call__
    ) -> None:
        super().__init__()
        self.model, self.config, self.call = model, config, call

    def forward(self, *args: Any, **inputs: Any) -> Any:
        """What the model returns."""
        return self.call(self.model, *args, **inputs)


def pack_documents(model: torch.nn.Module, lengths: Sequence[int]) -> Any:
    """A language model on sequences of packed documents, each of which attends only to itself (``reconcile llm --lengths``).

    Documents of one length are a call of it, as a batch. This is the work of kernels that get the documents' lengths: each
    product with a weight has all tokens, attention has those of a document, and positions start anew in each. A kernel that masks
    other documents instead multiplies all pairs.
    """
    held = CalledModel(model, getattr(model, "config", None), partial(_call_documents, lengths))
    return describe_model(held, lengths=list(lengths))


def _call_documents(lengths: Sequence[int], model: torch.nn.Module, input_ids: Any) -> list[Any]:
    """What the model returns for the documents of each length: ids are int64, (batch, the sum of the lengths)."""
    groups: dict[int, list[Any]] = {}
    for length, ids in zip(lengths, input_ids.split(list(lengths), dim=1), strict=True):
        groups.setdefault(length, []).append(ids)
    return [model(torch.cat(documents)) for documents in groups.values()]
