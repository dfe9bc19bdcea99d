"""Formulas of Megatron-LM and Megatron-Bridge, and the terms of sparse attention, which MaxText has as well.

Standard library only. Megatron-LM reads on its command line whether a model predicts further tokens and has sparse attention:
`megatron` assumes neither.

An indexer chooses the keys of sparse attention (DSA, arXiv:2512.02556): it has hi heads of width di, made of the queries of width
r_q, and makes one key of width di and a weight for each head of the input of width h. Every pair has a score in each head, and
their sum. A layer without an indexer takes the keys that the one before it chose.
"""

from __future__ import annotations

from .terms import (
    ATTENTION_PRODUCTS,
    DIFFERS,
    EXACT_HALF,
    HALF,
    HEAD_PRODUCT,
    INDEXER,
    LAYER,
    LAYER_PRODUCTS,
    LOCAL_HALF,
    NO_LINEAR,
    ONE_SEQUENCE,
    PADDED,
    SCORES,
    WHOLE,
    WINDOW,
    WINDOWLESS,
    Assumption,
    Count,
    Facts,
    Refusal,
    Term,
    assume,
    attention,
    count_twice_pairs,
    count_whole,
    formula,
)


def latent_norms(facts: Facts) -> int:
    """The norms of latent attention, each of its parameters once per token."""
    return (int(facts.get("rq") or 0) + int(facts["rkv"])) * int(facts["tokens"]) if facts.get("rkv") else 0


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
    return attention(dict(facts, n=facts["hi"], dqk=facts["di"], dv=facts.get("sums", 1)))


def has_scheduled_indexer(facts: Facts, layer: int) -> bool:
    """Whether a layer, from 1 on, has an indexer by index_topk_freq and index_skip_topk_offset (Megatron-LM, dsa.py)."""
    offset = max(int(facts.get("skip") or 0), 1)
    return bool(facts.get("topk")) and max(layer - offset, 0) % int(facts.get("often") or 1) == 0


def window_of_chosen(facts: Facts) -> Facts:
    """Facts that take the topk keys that an indexer chooses for a window of as many; none for a model without an indexer."""
    if not facts.get("topk"):
        return {}
    own = dict(facts, window=facts["topk"])
    return dict(count_twice_pairs(own, lambda n, keys: 2 * n * keys), window=own["window"])


def exceeds_chosen(facts: Facts) -> bool:
    """Whether there are more keys than an indexer chooses."""
    return bool(facts.get("topk")) and int(facts["T"]) > int(facts["topk"])


SCHEDULE = assume(
    "schedule",
    lambda f: {"indexed": has_scheduled_indexer(f, int(f["index"]) + 1)},
    "an indexer in the layers that index_topk_freq and index_skip_topk_offset name",
)
NO_SUM = Assumption(
    "no sum", "indexer-left-out", lambda f: {"sums": 0}, "no sum of the scores over the indexer's heads"
)
CHOSEN = Assumption(
    "chosen keys",
    "attention-sparse",
    window_of_chosen,
    "min(topk, keys) keys for every token, those that the indexer chose",
)
LONG_CHOSEN = CHOSEN.when(exceeds_chosen)
CHOSEN_HALF = LOCAL_HALF._replace(formula="attention on T^2 / 2 of the T^2 pairs; with k keys chosen, T k - k^2 / 2")
ABSORBED = assume(
    "absorbed",
    lambda f: {"dqk": int(f["rkv"]) + int(f["drope"]), "dv": f["rkv"]},
    "keys as wide as the latent and the rotary part, values as wide as the latent: the weights are absorbed",
).when(lambda f: f.get("topk") and f.get("rkv"))
EVERY_LAYER = assume(
    "every layer",
    lambda f: {"indexed": bool(f.get("topk"))},
    "an indexer in every layer, whatever the configuration says",
)
SKIPPED = Assumption(
    "skipped",
    "indexer-left-out",
    lambda f: {"indexed": False},
    "no indexer where a sequence has no more than topk tokens",
).when(lambda f: not exceeds_chosen(f))

JOINED = Term(WHOLE, lambda f: (3 * f["h"] + 2 * f["h"] ** 2) * f["tokens"], "(2 h^2 + 3 h) B T")
"""The product that joins a layer to the next token's row, and three norms."""


def further(*terms: Term) -> Count:
    """Multi-token prediction: these terms of a layer like the last one for each further token. Its layers are numbered after the
    others, and have no window."""

    def count(facts: Facts) -> int:
        last = dict(facts, moe=facts.get("last", False), window=0)
        layers = [dict(last, index=facts["L"] + i) for i in range(int(facts.get("nextn") or 0))]
        return sum(count_whole(term, layer) for layer in layers for term in terms)

    return count


def _with_chosen(facts: Facts) -> Facts:
    """The facts of a layer on the keys that its indexer chose; none if the schedule gives it no indexer."""
    if not has_scheduled_indexer(facts, int(facts["index"]) + 1):
        return {}
    own = dict(facts, **window_of_chosen(facts))
    return dict(own, indexed=True, **EXACT_HALF.facts(own))


def teacher(facts: Facts) -> int:
    """The scores of attention on the chosen keys, which the loss of a sparse indexer takes for its target."""
    own = _with_chosen(facts)
    return attention(dict(own, dqk=int(facts["rkv"]) + int(facts["drope"]), dv=0)) if own else 0


INDEXER_PRODUCTS = Term(INDEXER, index_weights, "(r_q hi di + h di + h hi) B T")
INDEXER_SCORES = Term(SCORES, index_scores, "B hi (di + 1) T^2")
LATENT_NORMS = Term(LAYER, latent_norms, "(r_q + r_kv) B T", cause="parameters-as-products", name="norms")
SCORE_GRADIENTS = Term(
    LAYER, lambda f: index_scores(_with_chosen(f)), "B hi (di + 1) pairs of the keys chosen", passes=(0, 2), cause=DIFFERS,
    name="score gradients",
)  # fmt: skip
"""The gradients of an indexer's scores on the keys that it chose, which Megatron's sparse loss needs."""
TEACHER = Term(
    LAYER, teacher, "B n (r_kv + d_rope) pairs of the keys chosen", passes=(0, 1), cause=DIFFERS, name="teacher"
)

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


BRIDGE_SEQUENCE = ONE_SEQUENCE.when(exceeds_window)._replace(
    formula="the whole sequence, where it is longer than a layer's window"
)
BRIDGE_HALF = HALF._replace(
    facts=lambda f: (EXACT_HALF if exceeds_window(f) or f.get("topk") else HALF).facts(f),
    formula="attention on T^2 / 2 of the T^2 pairs; with a window of w < T, or w keys chosen, w (w + 1) / 2 + (T - w) w",
)
OF_ALL_KEYS = (
    LAYER_PRODUCTS.cite(MAIN + ":1070, 1076-1162, 1262-1283"),
    ATTENTION_PRODUCTS.cite(MAIN + ":1164-1170, 1309", HALF),
    LATENT_NORMS.cite(MAIN + ":1076-1137"),
    HEAD_PRODUCT.cite(MAIN + ":1302-1303", PADDED),
)
OF_CHOSEN_KEYS = (
    LAYER_PRODUCTS.cite(DSA + ":1159-1181, 1391-1418"),
    ATTENTION_PRODUCTS.cite(DSA + ":390-417, 522-547, 1349-1351", CHOSEN, CHOSEN_HALF),
    LATENT_NORMS.cite(DSA + ":1159-1181"),
    INDEXER_PRODUCTS.cite(DSA + ":420-519, 550-563, 1355-1364", SCHEDULE, passes=(1, 2)),
    INDEXER_SCORES.cite(DSA + ":420-519, 550-563, 1355-1364", SCHEDULE, NO_SUM, HALF),
    HEAD_PRODUCT.cite(DSA + ":1432-1438", PADDED),
)


def further_layers(source: str, *terms: Term) -> Term:
    """The term of layers that predict further tokens, which consist of these."""
    words = "a layer, 2 h^2 + 3 h and h V for each of nextn further tokens"
    return Term(
        WHOLE, further(*terms, JOINED), words, source, cause="prediction-layers-counted", name="multi-token prediction"
    )


def _bridge_further(facts: Facts) -> int:
    """Layers that predict further tokens, but for GLM-5, of which the bridge makes none."""
    return 0 if facts["model_type"] == GLM5 else further(*OF_ALL_KEYS, JOINED)(facts)


MEGATRON = {
    "megatron": formula(
        "Megatron-LM, num_floating_point_operations: the products of a layer, attention on T^2 / 2 pairs, and the head",
        *OF_ALL_KEYS,
        forward=True,
        packed=True,
        refusals=[NO_LINEAR],
    ),
    "megatron-mtp": formula(
        "Megatron-LM with --mtp-num-layers: the same, and a layer, a product that joins it and logits for each further token",
        *OF_ALL_KEYS,
        further_layers(MAIN + ":1042-1048, 1288-1303", *OF_ALL_KEYS),
        forward=True,
        packed=True,
        refusals=[
            NO_LINEAR,
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
            *(term for term in OF_CHOSEN_KEYS if term.kind != INDEXER),
        ),
        INDEXER_PRODUCTS.cite(
            DSA + ":1098-1106, 1355-1364",
            count=further(OF_CHOSEN_KEYS[3]),
            kind=WHOLE,
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
        LAYER_PRODUCTS.cite(BRIDGE + ":1303-1406, 1542-1569"),
        ATTENTION_PRODUCTS.cite(
            BRIDGE + ":668-674, 1213-1254, 1351-1406", BRIDGE_SEQUENCE, WINDOW, ABSORBED, CHOSEN, BRIDGE_HALF
        ),
        LATENT_NORMS.cite(BRIDGE + ":1303-1348"),
        INDEXER_PRODUCTS.cite(BRIDGE + ":1197-1208, 1256-1270", SCHEDULE, passes=(1, 2)),
        INDEXER_SCORES.cite(BRIDGE + ":1197-1216, 1272-1280", SCHEDULE, EXACT_HALF, passes=(1, 1)),
        SCORE_GRADIENTS.cite(BRIDGE + ":1278-1283"),
        TEACHER.cite(BRIDGE + ":1285-1294"),
        HEAD_PRODUCT.cite(BRIDGE + ":1542-1569", PADDED),
        further_layers(BRIDGE + ":1034-1040, 1557-1569")._replace(count=_bridge_further),
        packed=True,
        refusals=[
            WINDOWLESS,
            NO_LINEAR,
            (lambda f: f.get("topk") and f["model_type"] != GLM5, "its source has sparse attention for GLM-5 alone"),
            PREDICTS_ITSELF,
            ONE_MEAN_LENGTH,
        ],
    ),
}
"""Each formula by its name."""
