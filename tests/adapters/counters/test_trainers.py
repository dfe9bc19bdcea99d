"""Formulas of papers and trainers on small decoders: totals and causes from the algebra of their sources."""

from __future__ import annotations

from typing import Any

import pytest

from reconcile.adapters.counters.formulas.table import FORMULAS
from reconcile.adapters.counters.formulas.terms import PARAMETER, WHOLE, assumed
from reconcile.core.causes import Cause
from tests.adapters.counters.test_formulas import causes_of

torch = pytest.importorskip("torch")
from tests.adapters.counters.formula_decoders import (  # noqa: E402
    TOKENS,
    B,
    D,
    Decoder,
    F,
    H,
    K,
    L,
    N,
    T,
    V,
)

pytestmark = pytest.mark.frameworks

NARROW = H // N
"""The width of a head that formulas assume; the heads are D wide."""


def layer(d: int = D, k: int = K, m: int = 3, f: int = F) -> int:
    """Multiply-adds of all layers' weights."""
    return L * TOKENS * (H * (N * d + 2 * k * d) + N * d * H + m * H * f)


def pairs(d: int = D) -> int:
    """Multiply-adds of all layers' attention on T^2 pairs."""
    return L * B * N * 2 * d * T**2


HEAD = TOKENS * H * V
PADDED = TOKENS * H * 128
NORMS = TOKENS * 2 * H
"""One norm: there is one in each layer, and one before the head."""
SOFTMAX = L * 3 * B * N * T**2
ALL = layer() + 2 * HEAD + (L + 1) * NORMS
WIDE = 6 * (pairs() - pairs(NARROW))
WIDE_WEIGHTS = 6 * (layer() - layer(NARROW))
PLAIN = layer(NARROW, N, 2, 4 * H)
"""12 h^2 per layer and token."""
DIFFERS, WIDTH, HALF, LOOKUP = (
    Cause.FORMULA_DIFFERS,
    Cause.WIDTH_ASSUMED,
    Cause.ATTENTION_HALVED,
    Cause.LOOKUP_AS_PRODUCT,
)
AGAIN = Cause.RECOMPUTATION_ASSUMED
NORM, HEADLESS = Cause.PARAMETERS_AS_PRODUCTS, Cause.HEAD_LEFT_OUT

DENSE: dict[str, tuple[dict[str, Any], int, dict[str, int]]] = {
    # formula: what the configuration states, total of a training step, causes
    "aws": ({}, 6 * ALL, {LOOKUP: -6 * HEAD, NORM: -6 * (L + 1) * NORMS, Cause.ATTENTION_LEFT_OUT: 6 * pairs()}),
    "megatron-bridge": ({}, 6 * (layer() + PADDED) + 3 * pairs(), {HALF: 3 * pairs(), DIFFERS: 6 * (HEAD - PADDED)}),
    "maxtext": ({}, 6 * (layer() + HEAD) + 3 * pairs(), {HALF: 3 * pairs()}),
    "nanochat": ({}, 6 * (layer() + HEAD + pairs(NARROW)), {WIDTH: WIDE}),
    "levanter": (
        {},
        6 * (layer(NARROW) + pairs(NARROW) + HEAD) + 3 * SOFTMAX,
        {WIDTH: WIDE_WEIGHTS + WIDE, DIFFERS: -3 * SOFTMAX},
    ),
    "litgpt": (
        {},
        6 * ALL + 10 * pairs(NARROW),
        {LOOKUP: -6 * HEAD, NORM: -6 * (L + 1) * NORMS, WIDTH: WIDE, DIFFERS: -4 * pairs(NARROW)},
    ),
    "torchtitan-main": ({}, 6 * (layer() + HEAD + (L + 1) * NORMS + pairs()), {NORM: -6 * (L + 1) * NORMS}),
    "torchtitan-hf": (
        {},
        6 * ALL + 3 * pairs(),
        {LOOKUP: -6 * HEAD, NORM: -6 * (L + 1) * NORMS, DIFFERS: 3 * pairs()},
    ),
    "olmo-core": ({}, 6 * (layer() + HEAD + NORMS + pairs()), {NORM: -6 * NORMS}),
    "llm-foundry": (
        {},
        6 * (ALL - HEAD + pairs(NARROW)),
        {NORM: -6 * (L + 1) * NORMS, WIDTH: WIDE},
    ),
    "verl": (
        {"model_type": "qwen3"},
        6 * (layer() + 2 * HEAD) + 3 * pairs(),
        {LOOKUP: -6 * HEAD, HALF: 3 * pairs()},
    ),
    "trl": ({}, 6 * (layer() + HEAD + pairs()), {}),
    "trl-1.9": ({}, 6 * (layer() + 2 * HEAD + pairs()), {LOOKUP: -6 * HEAD}),
    "nemo": (
        {"kind": "LlamaConfig"},
        6 * (layer(NARROW) + HEAD) + 3 * pairs(NARROW),
        {WIDTH: WIDE_WEIGHTS + WIDE, HALF: 3 * pairs(NARROW)},
    ),
    "nemo-llama3": (
        {},
        6 * (layer(NARROW) + TOKENS * H * 128256) + 3 * pairs(NARROW),
        {WIDTH: WIDE_WEIGHTS + WIDE, HALF: 3 * pairs(NARROW), DIFFERS: 6 * (HEAD - TOKENS * H * 128256)},
    ),
    "chinchilla": (
        {},
        6 * (layer(NARROW, N, 2) + pairs(NARROW) + 2 * HEAD) + 3 * SOFTMAX,
        {
            WIDTH: WIDE_WEIGHTS + WIDE,
            LOOKUP: -6 * HEAD,
            DIFFERS: 6 * (layer(NARROW) - layer(NARROW, N, 2)) - 3 * SOFTMAX,
        },
    ),
    "chinchilla-ipynb": (
        {},
        6 * (layer(NARROW, N, 2) + pairs(NARROW)) + 3 * SOFTMAX,
        {
            WIDTH: WIDE_WEIGHTS + WIDE,
            HEADLESS: 6 * HEAD,
            DIFFERS: 6 * (layer(NARROW) - layer(NARROW, N, 2)) - 3 * SOFTMAX,
        },
    ),
    "cookbook": (
        {},
        8 * (layer(NARROW, f=4 * H) + pairs(NARROW)) + 2 * HEAD + 4 * H * TOKENS,
        {
            WIDTH: WIDE_WEIGHTS + WIDE,
            Cause.OP_NOT_COUNTED: 4 * HEAD,
            DIFFERS: 6 * (layer(NARROW) - layer(NARROW, f=4 * H)) - 4 * H * TOKENS,
            AGAIN: -2 * (layer(NARROW, f=4 * H) + pairs(NARROW)),
        },
    ),
    "cookbook-plain": (
        {},
        6 * (layer(NARROW, f=4 * H) + pairs(NARROW)) + 2 * HEAD + 4 * H * TOKENS,
        {
            WIDTH: WIDE_WEIGHTS + WIDE,
            Cause.OP_NOT_COUNTED: 4 * HEAD,
            DIFFERS: 6 * (layer(NARROW) - layer(NARROW, f=4 * H)) - 4 * H * TOKENS,
        },
    ),
    "gpt-neox": (
        {},
        TOKENS * (72 * H**2 * L + 12 * L * H * T) + 9 * PADDED // 2,
        {WIDTH: WIDE_WEIGHTS + WIDE, DIFFERS: 6 * (layer(NARROW) - PLAIN + HEAD) - 9 * PADDED // 2},
    ),
    "gpt-neox-hfu": (
        {},
        TOKENS * (96 * H**2 * L + 16 * L * H * T) + 6 * PADDED,
        {
            WIDTH: WIDE_WEIGHTS + WIDE,
            DIFFERS: 6 * (layer(NARROW) + HEAD - PADDED - PLAIN),
            AGAIN: -2 * (PLAIN + pairs(NARROW)),
        },
    ),
}


@pytest.mark.parametrize("formula", DENSE)
def test_it_is_its_sources_algebra_and_the_difference_has_causes(formula: str) -> None:
    stated, total, causes = DENSE[formula]
    assert causes_of(Decoder(**stated), formula) == (total, causes)


def test_a_mask_leaves_the_diagonal_whole_and_the_part_says_so() -> None:
    half = L * B * N * NARROW * T * (T + 1)
    causes = {WIDTH: WIDE // 3, HALF: 2 * (pairs(NARROW) - half)}
    assert causes_of(Decoder(), "nanochat-prefill", pass_="forward") == (2 * (layer() + HEAD + half), causes)


@pytest.mark.parametrize("formula", ["aws", "litgpt"])
def test_a_frozen_weight_is_charged_two_passes_where_the_source_says_so(formula: str) -> None:
    _, total, causes = DENSE[formula]
    assert causes_of(Decoder(frozen=True), formula) == (total - 2 * TOKENS * H * F, causes)


def llama(**more: Any) -> dict[str, Any]:
    """The facts of Llama-3-8B at 8,192 tokens, as its configuration states them."""
    facts = {"L": 32, "h": 4096, "n": 32, "k": 8, "d": 128, "dqk": 128, "dv": 128, "f": 14336, "V": 128256, "m": 3}
    stated = {
        "B": 1,
        "T": 8192,
        "tokens": 8192,
        "moe": False,
        "tied": False,
        "model_type": "llama",
        "config_class": "LlamaConfig",
        "index": 0,
        "sliding": 0,
    }
    return {**facts, **stated, **more}


SOURCES_SAY = {
    # per token of a training step, by the sources' own functions run on a stub of this configuration
    "megatron": 51_470_401_536,
    "megatron-bridge": 51_470_401_536,
    "maxtext": 51_470_401_536,
    "nemo": 51_470_401_536,
    "nemo-llama3": 51_470_401_536,
    "verl": 54_622_420_992,
    "trl": 57_912_852_480,
    "trl-1.9": 61_064_871_936,
    "levanter": 57_988_349_952,
    "chinchilla": 54_697_918_464,
    "chinchilla-ipynb": 48_393_879_552,
    "cookbook": 80_507_584_512,
    "cookbook-plain": 60_643_360_768,
    "gpt-neox": 53_903_622_144,
    "gpt-neox-hfu": 71_871_496_192,
}


@pytest.mark.parametrize("formula", SOURCES_SAY)
def test_on_llama_it_is_the_number_of_its_source(formula: str) -> None:
    facts, total = llama(), 0
    for term in FORMULAS[formula].terms:
        assert term.kind != PARAMETER
        count = term.count(assumed(term, facts, len(term.assumes))) * term.passes[1] * (1 if term.plain else 2)
        total += count if term.kind in ("head", WHOLE) else count * facts["L"]
    assert total == SOURCES_SAY[formula] * facts["tokens"]
