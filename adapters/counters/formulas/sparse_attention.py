"""Parts of formulas for sparse attention and multi-token prediction, as in Megatron-LM, Megatron-Bridge and MaxText.

Standard library only. An indexer chooses the keys of sparse attention (DSA, arXiv:2512.02556): it has hi heads of width di, made
of the queries of width r_q, and makes one key of width di and a weight for each head of the input of width h. Every pair has a
score in each head, and their sum. A layer without an indexer takes the keys that the one before it chose.
"""

from .terms import (
    DIFFERS,
    EXACT_HALF,
    HALF,
    INDEXED,
    INDEXER,
    LOCAL_HALF,
    PADDED,
    SCORES,
    SPARSE,
    Assumption,
    Facts,
    Term,
    attention,
    halves,
    head,
    latent_norms,
    weights,
)

INDEX = "(r_q hi di + h di + h hi) B T"


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


INDEXER_PRODUCTS = Term(INDEXER, index_weights, INDEX, "")
INDEXER_SCORES = Term(SCORES, index_scores, "B hi (di + 1) T^2", "")


def has_scheduled_indexer(facts: Facts, layer: int) -> bool:
    """Whether a layer, from 1 on, has an indexer by index_topk_freq and index_skip_topk_offset (Megatron-LM, dsa.py)."""
    offset = max(int(facts.get("skip") or 0), 1)
    return bool(facts.get("topk")) and max(layer - offset, 0) % int(facts.get("often") or 1) == 0


def window_of_chosen(facts: Facts) -> Facts:
    """Facts that take the topk keys that an indexer chooses for a window of as many; none for a model without an indexer."""
    if not facts.get("topk"):
        return {}
    own = dict(facts, window=facts["topk"])
    return dict(halves(own, lambda n, keys: 2 * n * keys), window=own["window"])


SCHEDULE = Assumption(
    "schedule",
    DIFFERS,
    lambda f: {"indexed": has_scheduled_indexer(f, int(f["index"]) + 1)},
    "an indexer in the layers that index_topk_freq and index_skip_topk_offset name",
)
NO_SUM = Assumption("no sum", INDEXED, lambda f: {"sums": 0}, "no sum of the scores over the indexer's heads")
CHOSEN = Assumption(
    "chosen keys", SPARSE, window_of_chosen, "min(topk, keys) keys for every token, those that the indexer chose"
)
CHOSEN_HALF = LOCAL_HALF._replace(formula="attention on T^2 / 2 of the T^2 pairs; with k keys chosen, T k - k^2 / 2")
ABSORBED = Assumption(
    "absorbed",
    DIFFERS,
    lambda f: {"dqk": int(f["rkv"]) + int(f["drope"]), "dv": f["rkv"]} if f.get("topk") and f.get("rkv") else {},
    "keys as wide as the latent and the rotary part, values as wide as the latent: the weights are absorbed",
)


def exceeds_chosen(facts: Facts) -> bool:
    """Whether there are more keys than an indexer chooses."""
    return bool(facts.get("topk")) and int(facts["T"]) > int(facts["topk"])


EVERY_LAYER = Assumption(
    "every layer",
    DIFFERS,
    lambda f: {"indexed": bool(f.get("topk"))},
    "an indexer in every layer, whatever the configuration says",
)
SKIPPED = Assumption(
    "skipped",
    INDEXED,
    lambda f: {} if exceeds_chosen(f) else {"indexed": False},
    "no indexer where a sequence has no more than topk tokens",
)
LONG_CHOSEN = CHOSEN._replace(facts=lambda f: window_of_chosen(f) if exceeds_chosen(f) else {})


def mean_length_note(facts: Facts) -> str:
    """The sentence for documents of several lengths in sparse attention, for which a source takes one mean length."""
    several = facts.get("topk") and len(set(facts.get("lengths") or ())) > 1
    return "its source takes one mean length for sparse attention, and these documents have several" if several else ""


def predicts_itself(facts: Facts) -> str:
    """The sentence for a model whose products outside of the layers may be those that predict further tokens; '' otherwise."""
    found = facts.get("beyond")
    return (
        f"its term for multi-token prediction is for layers that the model lacks, and this one has {found} outside of "
        "its layers"
        if facts.get("nextn") and found
        else ""
    )


def mtp_refuses(facts: Facts) -> str:
    """The sentence of Megatron-LM with --mtp-num-layers for a configuration that does not state how many; '' otherwise."""
    if not facts.get("nextn"):
        return "the configuration states no multi-token prediction (num_nextn_predict_layers)"
    return predicts_itself(facts)


def dsa_refuses(facts: Facts) -> str:
    """The sentence of Megatron-LM with --experimental-attention-variant dsa for a model without an indexer; '' otherwise."""
    if not (facts.get("topk") and facts.get("hi") and facts.get("di")):
        return "its source counts sparse attention, and this model has no indexer (index_topk)"
    return predicts_itself(facts) or mean_length_note(facts)


def bridge_refuses(facts: Facts) -> str:
    """The sentence for an indexer that Megatron-Bridge lacks: it has one in GLM-5's models alone (glm5_bridge.py)."""
    if facts.get("topk") and facts["model_type"] != "glm_moe_dsa":
        return "its source has sparse attention for GLM-5 alone"
    return predicts_itself(facts) or mean_length_note(facts)


def _last(facts: Facts) -> Facts:
    """The facts of the last layer, whose like predicts a further token."""
    return dict(facts, moe=facts.get("last", False), index=facts["L"], window=0)


def _prediction_flops(facts: Facts, seen: Facts) -> int:
    """Further tokens: a layer like the last one, a product that joins it to the next token's row, three norms, and logits."""
    last, h = _last(facts), int(facts["h"])
    layer = weights(last) + latent_norms(last) + attention(dict(last, **seen))
    joined = (3 * h + 2 * h * h) * int(facts["tokens"])
    return int(facts.get("nextn") or 0) * (layer + joined + head(dict(facts, **PADDED.facts(facts))))


def _indexers(facts: Facts) -> int:
    """How many of the layers that predict further tokens have an indexer: they are numbered after the others."""
    first = int(facts["L"]) + 1
    return sum(has_scheduled_indexer(facts, layer) for layer in range(first, first + int(facts.get("nextn") or 0)))


def predicted_half(facts: Facts) -> int:
    """Multi-token prediction with attention on T^2 / 2 pairs."""
    return _prediction_flops(facts, HALF.facts(_last(facts)))


def bridge_predicted(facts: Facts) -> int:
    """The same, but for GLM-5, of which glm5_bridge.py makes no such layers."""
    return 0 if facts["model_type"] == "glm_moe_dsa" else predicted_half(facts)


def predicted_sparse(facts: Facts) -> int:
    """Multi-token prediction with sparse attention, and the scores of its indexers."""
    last = _last(facts)
    seen = dict(last, **window_of_chosen(last))
    scores = index_scores(dict(last, indexed=True, sums=0, **HALF.facts(last)))
    return _prediction_flops(facts, dict(CHOSEN_HALF.facts(seen), window=seen["window"])) + _indexers(facts) * scores


def predicted_index(facts: Facts) -> int:
    """The products of the indexers' weights in multi-token prediction."""
    return _indexers(facts) * index_weights(dict(facts, indexed=True))


def score_gradients(facts: Facts) -> int:
    """The gradients of an indexer's scores on the keys that it chose, which Megatron's sparse loss needs."""
    if not has_scheduled_indexer(facts, int(facts["index"]) + 1):
        return 0
    own = dict(facts, **window_of_chosen(facts))
    return index_scores(dict(own, indexed=True, **EXACT_HALF.facts(own)))


def teacher(facts: Facts) -> int:
    """The scores of attention on these keys, which that loss takes for its target."""
    if not has_scheduled_indexer(facts, int(facts["index"]) + 1):
        return 0
    own = dict(facts, **window_of_chosen(facts))
    return attention(dict(own, dqk=int(facts["rkv"]) + int(facts["drope"]), dv=0, **EXACT_HALF.facts(own)))
