"""Which pairs every test run looks at, which `make slow` does, and which only `make fresh`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import pytest

from reconcile.model_zoo.loading import zoo_names

REPORTED = (3, 11) <= sys.version_info[:2] <= (3, 13)
"""Whether constraints.lock has for this Python the releases that committed reports and pages name."""

ALONE = ("family_activation", "family_dense", "family_pooling", "family_transposed")
"""Families of layers that tests/layers looks at one by one, in either framework, with every counter."""
FAMILIES = tuple(name for name in zoo_names() if name.startswith("family_") and name not in ALONE)
QUICK = ("gru_demo", "conv_only", *(name for name in FAMILIES if name != "family_block"), "lstm_lm")
"""Two seeds, the other layer families, and a recurrent network; `make slow` has transformers, and `make fresh` blocks.
Tests of their own run conv1x1 (test_gallery_fresh.py), matmul_init (tests/products/decode) and ResNet-50 (test_published.py)."""
LONG = ("conv_only", "lstm_lm", "family_recurrent", "family_attention", "family_control")
"""Those of QUICK that `make slow` runs too: they take as long as all others together."""
PROVEN = ("conv1x1", "matmul_init", "family_convolution")
"""Pairs that every test run proves: that takes a run of both models per weight tensor."""
STEPPED = ("conv1x1", "lstm_lm")
"""Pairs whose gradients every test run compares: a product, recurrent layers."""

APART = (
    "bert_base", "gpt2", "whisper", "densenet121", "resnet50_v1_5", "efficientnet_b0", "convnext_tiny", "vgg16",
)  # fmt: skip
"""Pairs that take a minute at their size. Whatever multiplies in them, other pairs have too; `make fresh` runs their committed
reports again."""


SAMPLE = (
    "gru_demo", "conv_only", "conv1x1", "matmul_init", "crnn", "dlrm", "pointnet", "t5", "moe", "llama", "mobilenet_v3_small",
    "resnet50_v1_5", "family_recurrent", "family_attention",
)  # fmt: skip
"""Pairs that `make slow` adds: a kind of network each, and one that declares a difference. CI has an hour; all others take
another, and what multiplies in them multiplies here."""

AGAIN = ("t5", "dlrm", "mobilenet_v3_small", "family_recurrent", "moe")
"""Pairs of SAMPLE of which `make slow` runs the gallery's row again; of the others of SAMPLE it runs the training step again."""


def chosen(models: Iterable[str], quick: tuple[str, ...] = QUICK, apart: Iterable[str] = ()) -> list[Any]:
    """Parameters of a test: pairs that are not ``quick`` are marked, so that `make slow` runs
    LONG and SAMPLE, and `make fresh` all others and those ``apart``."""
    slow, heavy = [pytest.mark.slow], [pytest.mark.heavy]
    marks = dict.fromkeys(SAMPLE, slow) | dict.fromkeys(apart, heavy) | {n: slow if n in LONG else [] for n in quick}
    return [pytest.param(name, marks=marks.get(name, heavy)) for name in models]
