"""Formulas of Megatron-LM and Megatron-Bridge, and the terms of sparse attention, which MaxText has as well.

Standard library only. Megatron-LM reads on its command line whether a model predicts further tokens and has sparse attention:
`megatron` assumes neither.

An indexer chooses the keys of sparse attention (DSA, arXiv:2512.02556): it has hi heads of width di, made of the queries of width
r_q, and makes one key of width di and a weight for each head of the input of width h. Every pair has a score in each head, and
their sum. A layer without an indexer takes the keys that the one before it chose.
"""

from __future__ import annotations

from typing import Any

from . import terms
from .terms import Assumption, Count, Facts, Refusal, Term, formula


def index_weights(facts: Facts) -> int:
    """The three weights of a layer's indexer; its queries are made of the input where those of attention have no rank."""
    if not facts.get("indexed"):
        return 0
    h, heads, width = int(facts["h"]), int(facts["hi"]), int(facts["di"])
    return (int(facts.get("rq") or h) * heads * width + h * width + h * heads) * int(facts["tokens"])


def index_scores(facts: Facts) -> int:
    """The scores of all pairs in each head of an indexer, and their sum over the heads unless ``sums`` is 0."""
    if not facts.get("indexed"):
        return 0
    return terms.attention(dict(facts, n=facts["hi"], dqk=facts["di"], dv=facts.get("sums", 1)))


def schedule_indexers(facts: Facts) -> Facts:
    """Whether a layer has an indexer by index_topk_freq and index_skip_topk_offset, which count layers from 1 (Megatron-LM,
    dsa.py)."""
    after = max(int(facts["index"]) + 1 - max(int(facts.get("skip") or 0), 1), 0)
    return {"indexed": bool(facts.get("topk")) and after % int(facts.get("often") or 1) == 0}


def exceeds_chosen(facts: Facts) -> bool:
    """Whether there are more keys than an indexer chooses."""
    return bool(facts.get("topk")) and int(facts["T"]) > int(facts["topk"])


SCHEDULE = Assumption(
    "schedule", schedule_indexers, "an indexer in the layers that index_topk_freq and index_skip_topk_offset name"
)
NO_SUM = Assumption(
    "no sum", lambda f: {"sums": 0}, "no sum of the scores over the indexer's heads", "indexer-left-out"
)
CHOSEN = Assumption(
    "chosen keys",
    lambda f: terms.with_window(f, f["topk"]),
    "min(topk, keys) keys for every token, those that the indexer chose",
    "attention-sparse",
).when(lambda f: f.get("topk"))
"""The topk keys that an indexer chooses, for a window of as many."""
LONG_CHOSEN = CHOSEN.when(exceeds_chosen)
CHOSEN_HALF = terms.LOCAL_HALF._replace(
    formula="attention on T^2 / 2 of the T^2 pairs; with k keys chosen, T k - k^2 / 2"
)
ABSORBED = Assumption(
    "absorbed",
    lambda f: {"dqk": int(f["rkv"]) + int(f["drope"]), "dv": f["rkv"]},
    "keys as wide as the latent and the rotary part, values as wide as the latent: the weights are absorbed",
).when(lambda f: f.get("topk") and f.get("rkv"))
EVERY_LAYER = Assumption(
    "every layer",
    lambda f: {"indexed": bool(f.get("topk"))},
    "an indexer in every layer, whatever the configuration says",
)
SKIPPED = Assumption(
    "skipped",
    lambda f: {"indexed": False},
    "no indexer where a sequence has no more than topk tokens",
    "indexer-left-out",
).when(lambda f: not exceeds_chosen(f))

JOINED = Term(terms.WHOLE, lambda f: (3 * f["h"] + 2 * f["h"] ** 2) * f["tokens"], "(2 h^2 + 3 h) B T")
"""The product that joins a layer to the next token's row, and three norms."""


def further(*parts: Term) -> Count:
    """Multi-token prediction: these terms of a layer like the last one for each further token. Its layers are numbered after the
    others, and have no window."""

    def count(facts: Facts) -> int:
        last = dict(facts, moe=facts.get("last", False), window=0)
        layers = [dict(last, index=facts["L"] + i) for i in range(int(facts.get("nextn") or 0))]
        return sum(terms.count_whole(term, layer) for layer in layers for term in parts)

    return count


def of_chosen(scores: Count, words: str, **more: Any) -> Term:
    """The term of scores of the keys that a layer's indexer chose, by the schedule and without those that are masked."""
    term = Term(terms.LAYER, scores, "").cite("", SCHEDULE, CHOSEN, terms.EXACT_HALF)
    words += " pairs of the keys chosen"
    return Term(terms.LAYER, lambda f: terms.count_whole(term, f), words, **more)


INDEXER_PRODUCTS = Term(terms.INDEXER, index_weights, "(r_q hi di + h di + h hi) B T")
INDEXER_SCORES = Term(terms.SCORES, index_scores, "B hi (di + 1) T^2")
LATENT_NORMS = Term(
    terms.LAYER,
    lambda f: ((f.get("rq") or 0) + f["rkv"]) * f["tokens"] if f.get("rkv") else 0,
    "(r_q + r_kv) B T",
    cause="parameters-as-products",
    name="norms",
)
"""Each parameter of latent attention's norms, once per token."""
SCORE_GRADIENTS = of_chosen(index_scores, "B hi (di + 1)", passes=(0, 2), name="score gradients")
"""The gradients of an indexer's scores on the keys that it chose, which Megatron's sparse loss needs."""
TEACHER = of_chosen(
    lambda f: terms.attention(dict(f, dqk=f["rkv"] + f["drope"], dv=0)) if f["indexed"] else 0,
    "B n (r_kv + d_rope)",
    passes=(0, 1),
    name="teacher",
)
"""The scores of attention on the chosen keys, which the loss of a sparse indexer takes for its target."""

PREDICTS_ITSELF: Refusal = (
    lambda f: f.get("nextn") and f.get("beyond"),
    "its term for multi-token prediction is for layers that the model lacks, and this one has {beyond} outside of its layers",
)
"""The products outside of the layers may be those that predict further tokens."""
ONE_MEAN_LENGTH: Refusal = (
    lambda f: f.get("topk") and len(set(f.get("lengths") or ())) > 1,
    "its source takes one mean length for sparse attention, and these documents have several",
)

# formulas

MAIN = "NVIDIA/Megatron-LM@d98e8a64ddf3 megatron/training/training.py"
DSA = "NVIDIA/Megatron-LM@9bc555a4b4c1 megatron/training/training.py"
BRIDGE = "NVIDIA-NeMo/Megatron-Bridge@067f987df03b src/megatron/bridge/training/utils/flop_utils.py"
GLM5 = "glm_moe_dsa"
"""The one type of models to which Megatron-Bridge gives an indexer, and no layers of further tokens (glm5_bridge.py)."""


def exceeds_window(facts: Facts) -> bool:
    """Whether a sequence is longer than the layer's window."""
    return bool(facts.get("window")) and int(facts["window"]) < int(facts["T"])


BRIDGE_SEQUENCE = terms.ONE_SEQUENCE.when(exceeds_window)._replace(
    formula="the whole sequence, where it is longer than a layer's window"
)
BRIDGE_HALF = terms.HALF._replace(
    facts=lambda f: (terms.EXACT_HALF if exceeds_window(f) or f.get("topk") else terms.HALF).facts(f),
    formula="attention on T^2 / 2 of the T^2 pairs; with a window of w < T, or w keys chosen, w (w + 1) / 2 + (T - w) w",
)
OF_ALL_KEYS = (
    terms.LAYER_PRODUCTS.cite(MAIN + ":1070, 1076-1162, 1262-1283"),
    terms.ATTENTION_PRODUCTS.cite(MAIN + ":1164-1170, 1309", terms.HALF),
    LATENT_NORMS.cite(MAIN + ":1076-1137"),
    terms.HEAD_PRODUCT.cite(MAIN + ":1302-1303", terms.PADDED),
)
OF_CHOSEN_KEYS = (
    terms.LAYER_PRODUCTS.cite(DSA + ":1159-1181, 1391-1418"),
    terms.ATTENTION_PRODUCTS.cite(DSA + ":390-417, 522-547, 1349-1351", CHOSEN, CHOSEN_HALF),
    LATENT_NORMS.cite(DSA + ":1159-1181"),
    INDEXER_PRODUCTS.cite(DSA + ":420-519, 550-563, 1355-1364", SCHEDULE, passes=(1, 2)),
    INDEXER_SCORES.cite(DSA + ":420-519, 550-563, 1355-1364", SCHEDULE, NO_SUM, terms.HALF),
    terms.HEAD_PRODUCT.cite(DSA + ":1432-1438", terms.PADDED),
)


def further_layers(source: str, *parts: Term) -> Term:
    """The term of layers that predict further tokens, which consist of these."""
    words = "a layer, 2 h^2 + 3 h and h V for each of nextn further tokens"
    return Term(
        terms.WHOLE,
        further(*parts, JOINED),
        words,
        source,
        cause="prediction-layers-counted",
        name="multi-token prediction",
    )


MEGATRON = {
    "megatron": formula(
        "Megatron-LM, num_floating_point_operations: the products of a layer, attention on T^2 / 2 pairs, and the head",
        *OF_ALL_KEYS,
        forward=True,
        packed=True,
        refusals=[terms.NO_LINEAR],
    ),
    "megatron-mtp": formula(
        "Megatron-LM with --mtp-num-layers: the same, and a layer, a product that joins it and logits for each further token",
        *OF_ALL_KEYS,
        further_layers(MAIN + ":1042-1048, 1288-1303", *OF_ALL_KEYS),
        forward=True,
        packed=True,
        refusals=[
            terms.NO_LINEAR,
            (
                lambda f: not f.get("nextn"),
                "the configuration states no multi-token prediction (num_nextn_predict_layers)",
            ),
            PREDICTS_ITSELF,
        ],
    ),
    "megatron-dsa": formula(
        "Megatron-LM#6148, sparse attention that trains its indexer: the keys chosen, all scores, and multi-token prediction",
        *OF_CHOSEN_KEYS,
        further_layers(
            DSA + ":1098-1106, 1349-1364, 1421-1438",
            *(term for term in OF_CHOSEN_KEYS if term.kind != terms.INDEXER),
        ),
        INDEXER_PRODUCTS.cite(
            DSA + ":1098-1106, 1355-1364",
            count=further(OF_CHOSEN_KEYS[3]),
            kind=terms.WHOLE,
            passes=(1, 2),
            formula=INDEXER_PRODUCTS.formula + " for each of nextn further tokens",
            cause="prediction-layers-counted",
            name="its indexers",
        ),
        forward=True,
        packed=True,
        refusals=[
            (
                lambda f: not (f.get("topk") and f.get("hi") and f.get("di")),
                "its source counts sparse attention, and this model has no indexer (index_topk)",
            ),
            PREDICTS_ITSELF,
            ONE_MEAN_LENGTH,
        ],
    ),
    "megatron-bridge": formula(
        "Megatron-Bridge, num_floating_point_operations: that of Megatron-LM, with windows and sparse attention of its own",
        terms.LAYER_PRODUCTS.cite(BRIDGE + ":1303-1406, 1542-1569"),
        terms.ATTENTION_PRODUCTS.cite(
            BRIDGE + ":668-674, 1213-1254, 1351-1406", BRIDGE_SEQUENCE, terms.WINDOW, ABSORBED, CHOSEN, BRIDGE_HALF
        ),
        LATENT_NORMS.cite(BRIDGE + ":1303-1348"),
        INDEXER_PRODUCTS.cite(BRIDGE + ":1197-1208, 1256-1270", SCHEDULE, passes=(1, 2)),
        INDEXER_SCORES.cite(BRIDGE + ":1197-1216, 1272-1280", SCHEDULE, terms.EXACT_HALF, passes=(1, 1)),
        SCORE_GRADIENTS.cite(BRIDGE + ":1278-1283"),
        TEACHER.cite(BRIDGE + ":1285-1294"),
        terms.HEAD_PRODUCT.cite(BRIDGE + ":1542-1569", terms.PADDED),
        further_layers(BRIDGE + ":1034-1040, 1557-1569")._replace(
            count=lambda f: 0 if f["model_type"] == GLM5 else further(*OF_ALL_KEYS, JOINED)(f)
        ),
        packed=True,
        refusals=[
            terms.WINDOWLESS,
            terms.NO_LINEAR,
            (lambda f: f.get("topk") and f["model_type"] != GLM5, "its source has sparse attention for GLM-5 alone"),
            PREDICTS_ITSELF,
            ONE_MEAN_LENGTH,
        ],
    ),
}
"""Each formula by its name."""
