"""Which pairs every test run looks at, and which only `make zoo` does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from reconcile.model_zoo.loading import zoo_names

SEEDS = ("gru_demo", "conv1x1", "conv_only", "matmul_init")
ALONE = ("family_activation", "family_dense", "family_pooling", "family_transposed")
"""Families of layers that tests/layers looks at one by one, in either framework, with every counter."""
FAMILIES = tuple(name for name in zoo_names() if name.startswith("family_") and name not in ALONE)
QUICK = ("gru_demo", "conv_only", *FAMILIES, "bert_base", "lstm_lm")
"""Two seeds, the other layer families, a transformer and a recurrent network. Tests of their own run conv1x1
(test_gallery_fresh.py), matmul_init (tests/decode) and ResNet-50 (test_published.py)."""
PROVEN = (*SEEDS, "family_convolution", "family_recurrent", "family_attention", "bert_base")
"""Pairs that every test run proves: that takes a run of both models per weight tensor."""


def chosen(models: Iterable[str], quick: tuple[str, ...] = QUICK) -> list[Any]:
    """Parameters of a test: the other pairs are marked, so that they run in `make zoo` alone."""
    return [name if name in quick else pytest.param(name, marks=pytest.mark.zoo) for name in models]
