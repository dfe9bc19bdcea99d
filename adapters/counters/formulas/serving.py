"""Formulas of inference, vLLM's and nanochat's: prefill of a prompt, and decoding of a token with the keys of a cache."""

from __future__ import annotations

from . import terms
from .terms import Assumption, Facts, formula
from .trainers import LINEAR, NANOCHAT, NO_NANOCHAT

VLLM = "vllm 0.33.0 vllm/v1/metrics/perf.py"

CACHED_PRODUCTS = terms.ATTENTION_PRODUCTS._replace(formula="B n (d_qk + d_v) T (context + T)")


def served_experts(facts: Facts) -> Facts:
    """Whether vLLM takes this layer to have experts: it reads two rules of configurations, and takes all layers without one."""
    index = int(facts["index"])
    if "frequency" in facts and "dense" in facts:
        return {"moe": index >= int(facts["dense"]) and index % int(facts["frequency"]) == 0}
    return {"moe": (index + 1) % int(facts.get("step") or 1) == 0}


ALL_SPARSE = Assumption(
    "layers with experts",
    served_experts,
    "experts in every layer, unless the configuration has moe_layer_freq or interleave_moe_layer_step",
).when(lambda f: f.get("E"))


def served_width(facts: Facts) -> Facts:
    """The feed-forward's width where another is read: intermediate_size, which is an expert's in Llama 4, and 4 h without it."""
    if "intermediate_size_mlp" in facts["stated"]:
        return {"f": facts["fe"]}
    return {} if "intermediate_size" in facts["stated"] else terms.FOUR_WIDE.facts(facts)


FOUR_UNLESS_STATED = terms.FOUR_WIDE._replace(
    facts=served_width, formula="a feed-forward of intermediate_size, and of 4 h without it"
)
SERVED_SHARED = Assumption(
    "shared experts",
    lambda f: {"fs": 0, **({} if {"n_shared_experts", "num_shared_experts"} & set(f["stated"]) else {"ns": 0})},
    "as many shared experts as n_shared_experts or num_shared_experts says, as wide as the others",
)
LAST = Assumption("last token", lambda f: {"tokens": f["B"]}, "logits of the last token of each sequence alone")

SERVING = {
    "vllm": formula(
        "vLLM, get_num_flops of a step: the products of a layer with three matrices, attention on all keys, the last logits",
        terms.LAYER_PRODUCTS.cite(
            VLLM + ":562-614, 827-880, 1195-1236", terms.THREE, FOUR_UNLESS_STATED, ALL_SPARSE, SERVED_SHARED
        ),
        CACHED_PRODUCTS.cite(VLLM + ":144-160, 562-614, 827-880", terms.WINDOW),
        terms.HEAD_PRODUCT.cite(VLLM + ":179-185, 1419-1431", LAST),
        forward=True,
        cache=True,
        refusals=[
            (lambda f: f["training"], "its source states inference alone: give --pass prefill or --pass decode"),
            terms.WINDOWLESS,
        ],
    ),
    "nanochat-prefill": formula(
        "nanochat, estimate_prefill_flops: 2 N of the weights of Linear per token, attention on T (T + 1) / 2 pairs",
        LINEAR.cite(NANOCHAT + ":341-372"),
        CACHED_PRODUCTS.cite(NANOCHAT + ":362-372", terms.WINDOW, terms.ONE_WIDTH, terms.EXACT_HALF),
        forward=True,
        refusals=[(lambda f: f["training"], "its source states the prefill alone: give --pass prefill"), *NO_NANOCHAT],
    ),
    "nanochat-decode": formula(
        "nanochat, estimate_decode_flops: 2 N of the weights of Linear + 4 L n (h // n) (context + 1) for a token",
        LINEAR.cite(NANOCHAT + ":341-360", formula="numel B of a weight of Linear"),
        CACHED_PRODUCTS.cite(NANOCHAT + ":351-360", terms.WINDOW, terms.ONE_WIDTH),
        forward=True,
        cache=True,
        refusals=[
            (
                lambda f: not f["context"],
                "its source states a decoding step alone: give --pass decode --context N",
            ),
            *NO_NANOCHAT,
        ],
    ),
}
"""Each formula of inference by its name."""
