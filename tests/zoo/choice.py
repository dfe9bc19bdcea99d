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

APART = (
    "bert_base", "gpt2", "whisper", "densenet121", "resnet50_v1_5", "efficientnet_b0", "convnext_tiny", "vgg16",
)  # fmt: skip
"""Pairs that take a minute at their size. Whatever multiplies in them, other pairs have too; `make fresh` runs their committed
reports again."""


def chosen(models: Iterable[str], quick: tuple[str, ...] = QUICK, apart: Iterable[str] = ()) -> list[Any]:
    """Parameters of a test: the other pairs are marked, so that they run in `make zoo` alone, those ``apart`` in `make fresh`."""
    marks = {name: [] for name in quick} | {name: [pytest.mark.fresh] for name in apart}
    return [pytest.param(name, marks=marks.get(name, [pytest.mark.zoo])) for name in models]
