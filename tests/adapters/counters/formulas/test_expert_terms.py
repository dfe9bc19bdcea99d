"""Formulas on models with experts and with latent attention, the models that they refuse, and that no explanation is fitted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from reconcile.core.causes import Cause
from reconcile.core.conventions import BUILT_IN, Conventions
from reconcile.core.records import Ledger, Trace
from reconcile.engine.settle import settle
from reconcile.launch.in_process import collect_live
from reconcile.launch.request import run_request
from reconcile.products.authors import conform
from tests.adapters.counters.formula_decoders import (
    DV,
    FE,
    NOPE,
    NS,
    RKV,
    ROPE,
    RQ,
    TOKENS,
    A,
    B,
    D,
    Decoder,
    E,
    H,
    K,
    L,
    N,
    T,
    V,
)
from tests.adapters.counters.test_formulas import causes_of, causes_of_each, check_reasons

HEAD = TOKENS * H * V
NORMS = 6 * TOKENS * (L + 1) * 2 * H
GATE = L * TOKENS * H * E
EXPERT = L * TOKENS * 3 * H * FE
"""One expert of every layer, for every token."""
HEADS = L * TOKENS * (H * (N * D + 2 * K * D) + N * D * H)
PAIRS = L * B * N * 2 * D * T**2
LATENT = L * TOKENS * (H * RQ + RQ * N * (NOPE + ROPE) + H * (RKV + ROPE) + RKV * N * (NOPE + DV) + N * DV * H)
LATENT_PAIRS = L * B * N * (NOPE + ROPE + DV) * T**2
PADDING = 6 * TOKENS * H * (V - 128)
NO_ROUTER = {Cause.OP_NOT_COUNTED: 6 * GATE}
HALF = {Cause.ATTENTION_HALVED: 3 * PAIRS}

ROUTED = {
    # formula: total of a training step, causes; A of E experts
    "6n": (
        6 * (HEADS + GATE + E * EXPERT + 2 * HEAD) + NORMS,
        {
            Cause.ALL_EXPERTS_COUNTED: -6 * (E - A) * EXPERT,
            Cause.LOOKUP_AS_PRODUCT: -6 * HEAD,
            Cause.PARAMETERS_AS_PRODUCTS: -NORMS,
            Cause.ATTENTION_LEFT_OUT: 6 * PAIRS,
        },
    ),
    "6n-active": (
        6 * (HEADS + GATE + A * EXPERT + 2 * HEAD) + NORMS,
        {Cause.LOOKUP_AS_PRODUCT: -6 * HEAD, Cause.PARAMETERS_AS_PRODUCTS: -NORMS, Cause.ATTENTION_LEFT_OUT: 6 * PAIRS},
    ),
    "torchtitan": (6 * (HEADS + GATE + A * EXPERT + HEAD + PAIRS) + NORMS, {Cause.PARAMETERS_AS_PRODUCTS: -NORMS}),
    "megatron": (
        6 * (HEADS + A * EXPERT + HEAD) + 3 * PAIRS - PADDING,
        NO_ROUTER | HALF | {Cause.FORMULA_DIFFERS: PADDING},
    ),
    "maxtext": (6 * (HEADS + GATE + A * EXPERT + HEAD) + 3 * PAIRS, HALF),
    "trl": (6 * (HEADS + GATE + A * EXPERT + HEAD + PAIRS), {}),
    "verl": (6 * (HEADS + GATE + A * EXPERT + 2 * HEAD) + 3 * PAIRS, HALF | {Cause.LOOKUP_AS_PRODUCT: -6 * HEAD}),
    "nemo": (6 * (HEADS + A * EXPERT + HEAD) + 3 * PAIRS, NO_ROUTER | HALF),
}
STATED = {"model_type": "qwen3_moe", "kind": "Qwen3MoeConfig", "decoder_sparse_step": 1, "num_local_experts": E}
"""What verl, nemo and trl go by."""


def test_of_experts_each_source_counts_all_or_the_active_ones() -> None:
    assert causes_of_each(Decoder(experts=A, **STATED), ROUTED) == ROUTED


def test_experts_that_all_ran_are_not_counted_without_running() -> None:
    _, causes = causes_of(Decoder(experts=E), "6n")
    assert {Cause.ALL_EXPERTS_COUNTED, Cause.FORMULA_DIFFERS} & set(causes) == set()
    _, causes = causes_of(Decoder(experts=1), "6n")
    assert causes[Cause.FORMULA_DIFFERS] == -6 * (E - 1) * EXPERT
    assert Cause.ALL_EXPERTS_COUNTED not in causes


LATENT_HALF = {Cause.ATTENTION_HALVED: 3 * LATENT_PAIRS}
DEEPSEEK = 6 * (LATENT + (A + NS) * EXPERT + HEAD) + 3 * LATENT_PAIRS
RANKS = 6 * L * TOKENS * (RQ + RKV)
SHARED = {
    # formula: total of a training step of latent attention with a shared expert of NS widths, causes
    "megatron": (
        DEEPSEEK + RANKS - PADDING,
        NO_ROUTER | LATENT_HALF | {Cause.PARAMETERS_AS_PRODUCTS: -RANKS, Cause.FORMULA_DIFFERS: PADDING},
    ),
    "maxtext": (DEEPSEEK + 6 * GATE, LATENT_HALF),
    "verl": (DEEPSEEK + 6 * (GATE + HEAD), LATENT_HALF | {Cause.LOOKUP_AS_PRODUCT: -6 * HEAD}),
    "nemo": (
        DEEPSEEK - 6 * (NS - 1) * EXPERT,
        NO_ROUTER | LATENT_HALF | {Cause.FORMULA_DIFFERS: 6 * (NS - 1) * EXPERT},
    ),
    "torchtitan": (
        6 * (LATENT + GATE + (A + NS) * EXPERT + HEAD + LATENT_PAIRS) + NORMS,
        {Cause.PARAMETERS_AS_PRODUCTS: -NORMS},
    ),
}


def test_of_latent_attention_each_source_has_a_term() -> None:
    model = Decoder(experts=A, latent=True, model_type="deepseek_v3", kind="DeepseekV3Config")
    assert causes_of_each(model, SHARED) == SHARED


NO_EXPERTS = "no term for experts, and this model has 4"
REFUSED: list[tuple[dict[str, Any], dict[str, str]]] = [
    (
        {"experts": A},
        {
            **dict.fromkeys(("chinchilla", "gpt-neox", "nanochat"), NO_EXPERTS),
            "trl": "config.num_local_experts, which this model lacks",
        },
    ),
    ({"latent": True}, dict.fromkeys(("cookbook", "palm"), "attention is latent")),
    (
        {"model_type": "gpt2", "kind": "GemmaConfig"},
        {"verl": "has no formula for 'gpt2'", "nemo": "its formula for GemmaConfig is not read yet"},
    ),
    (
        {"layer_types": ["sliding_attention"]},
        {
            "megatron-bridge": "the width of a sliding window, and this model's config states none",
            "llm-foundry": "returns 0 for layers with windows",
        },
    ),
]


@pytest.mark.parametrize(("stated", "why"), REFUSED)
def test_what_its_source_does_not_cover_is_refused_in_a_sentence(stated: dict[str, Any], why: dict[str, str]) -> None:
    check_reasons(Decoder(**stated), why)


@pytest.mark.parametrize("formula", ["6n", pytest.param("litgpt", marks=pytest.mark.slow)])
def test_a_number_added_to_any_entry_changes_no_explanation(formula: str) -> None:
    """Of a formula whose entries are parameters, and of one with entries of each kind."""
    request = run_request(counters=(f"formula:{formula}",), pass_="training")
    ids = torch.zeros(B, T, dtype=torch.int64)
    model = Decoder("LlamaConfig", experts=A)
    collected = collect_live({"torch": model}, ids, replace(request, training="sgd"), lambda _: None)
    (ledger,), (trace,) = collected.ledgers, collected.traces
    assert isinstance(ledger, Ledger)
    assert isinstance(trace, Trace)
    assert conform._find_fitted_entry(collected, ledger, trace) == ""
    for convention in BUILT_IN.values():
        result = settle(collected, Conventions(convention))
        assert (conform._describe_unexplained(result), conform._find_unfounded_amount(result, collected)) == ("", ""), (
            convention.name
        )
