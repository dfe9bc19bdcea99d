"""Formulas of inference, of vLLM and nanochat: prefill of a prompt, and decoding of a token with the keys of a cache."""

from __future__ import annotations

from .papers import SIZES
from .refusals import windowless
from .terms import (
    ATTENTION,
    DIFFERS,
    EXACT_HALF,
    FOUR_WIDE,
    HEAD_PRODUCT,
    LAYER_PRODUCTS,
    ONE_WIDTH,
    PARAMETER,
    THREE,
    WINDOW,
    Assumption,
    Facts,
    Formula,
    Term,
    attention,
)
from .trainers import NANOCHAT, linear, nanochat_refuses

VLLM = "vllm 0.33.0 vllm/v1/metrics/perf.py"
CACHED = "B n (d_qk + d_v) T (context + T)"


def has_experts(facts: Facts) -> bool:
    """Whether vLLM takes this layer to have experts: it reads two rules of configurations, and takes all layers without one."""
    if "frequency" in facts and "dense" in facts:
        return int(facts["index"]) >= int(facts["dense"]) and int(facts["index"]) % int(facts["frequency"]) == 0
    return (int(facts["index"]) + 1) % int(facts.get("step") or 1) == 0


def vllm_refuses(facts: Facts) -> str:
    """The sentence for a training step, since vLLM serves, and for a window of unknown width; '' otherwise."""
    if facts["training"]:
        return "its source states inference alone: give --pass prefill or --pass decode"
    return windowless(facts)


def prefill_refuses(facts: Facts) -> str:
    """The sentence for a training step, and for what nanochat has no term for; '' otherwise."""
    if facts["training"]:
        return "its source states the prefill alone: give --pass prefill"
    return nanochat_refuses(facts)


def decode_refuses(facts: Facts) -> str:
    """The sentence for a call without a cache, and for what nanochat has no term for; '' otherwise."""
    if not facts["context"]:
        return "its source states a decoding step alone: give --pass decode --context N"
    return nanochat_refuses(facts)


def served_width(facts: Facts) -> Facts:
    """The feed-forward's width where another is read: intermediate_size, which is an expert's in Llama 4, and 4 h without it."""
    if "intermediate_size_mlp" in facts["stated"]:
        return {"f": facts["fe"]}
    return {} if "intermediate_size" in facts["stated"] else FOUR_WIDE.facts(facts)


ALL_SPARSE = Assumption(
    "layers with experts",
    DIFFERS,
    lambda f: {"moe": has_experts(f)} if f.get("E") else {},
    "experts in every layer, unless the configuration has moe_layer_freq or interleave_moe_layer_step",
)
FOUR_UNLESS_STATED = FOUR_WIDE._replace(
    facts=served_width,
    formula="a feed-forward of intermediate_size, and of 4 h without it",
)
SERVED_SHARED = Assumption(
    "shared experts",
    DIFFERS,
    lambda f: {"fs": 0, **({} if {"n_shared_experts", "num_shared_experts"} & set(f["stated"]) else {"ns": 0})},
    "as many shared experts as n_shared_experts or num_shared_experts says, as wide as the others",
)
LAST = Assumption(
    "last token", DIFFERS, lambda f: {"tokens": f["B"]}, "logits of the last token of each sequence alone"
)

SERVING: dict[str, Formula] = {
    "vllm": Formula(
        "vLLM, get_num_flops of a step: the products of a layer with three matrices, attention on all keys, the last logits",
        (
            LAYER_PRODUCTS.cite(
                VLLM + ":562-614, 827-880, 1195-1236", THREE, FOUR_UNLESS_STATED, ALL_SPARSE, SERVED_SHARED
            ),
            Term(ATTENTION, attention, CACHED, VLLM + ":144-160, 562-614, 827-880", (WINDOW,)),
            HEAD_PRODUCT.cite(VLLM + ":179-185, 1419-1431", LAST),
        ),
        cache=True,
        reads=SIZES,
        refuses=vllm_refuses,
    ),
    "nanochat-prefill": Formula(
        "nanochat, estimate_prefill_flops: 2 N of the weights of Linear per token, attention on T (T + 1) / 2 pairs",
        (
            Term(PARAMETER, linear, "numel B T of a weight of Linear", NANOCHAT + ":341-372"),
            Term(ATTENTION, attention, CACHED, NANOCHAT + ":362-372", (WINDOW, ONE_WIDTH, EXACT_HALF)),
        ),
        reads=("L", "h", "n"),
        refuses=prefill_refuses,
    ),
    "nanochat-decode": Formula(
        "nanochat, estimate_decode_flops: 2 N of the weights of Linear + 4 L n (h // n) (context + 1) for a token",
        (
            Term(PARAMETER, linear, "numel B of a weight of Linear", NANOCHAT + ":341-360"),
            Term(ATTENTION, attention, CACHED, NANOCHAT + ":351-360", (WINDOW, ONE_WIDTH)),
        ),
        cache=True,
        reads=("L", "h", "n"),
        refuses=decode_refuses,
    ),
}
