"""Terms of sparse attention and multi-token prediction, as Megatron-LM, Megatron-Bridge and MaxText have them.

Standard library only. An indexer chooses the keys of sparse attention (DSA, arXiv:2512.02556): it has hi heads of width di, made
of the queries of width r_q, and makes one key of width di and a weight for each head of the input of width h. Every pair has a
score in each head, and their sum. A layer without an indexer takes the keys that the one before it chose.
"""

from .terms import (
    DIFFERS,
    EXACT_HALF,
    HALF,
    HEAD_PRODUCT,
    INDEXED,
    INDEXER,
    LAYER,
    LOCAL_HALF,
    NORMS,
    PADDED,
    PREDICTED,
    SCORES,
    SPARSE,
    WHOLE,
    Assumption,
    Facts,
    Refusal,
    Term,
    attention,
    differ,
    halves,
    weights,
)

INDEX = "(r_q hi di + h di + h hi) B T"


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
    return dict(halves(own, lambda n, keys: 2 * n * keys), window=own["window"])


def exceeds_chosen(facts: Facts) -> bool:
    """Whether there are more keys than an indexer chooses."""
    return bool(facts.get("topk")) and int(facts["T"]) > int(facts["topk"])


SCHEDULE = differ(
    "schedule",
    lambda f: {"indexed": has_scheduled_indexer(f, int(f["index"]) + 1)},
    "an indexer in the layers that index_topk_freq and index_skip_topk_offset name",
)
NO_SUM = Assumption("no sum", INDEXED, lambda f: {"sums": 0}, "no sum of the scores over the indexer's heads")
CHOSEN = Assumption(
    "chosen keys", SPARSE, window_of_chosen, "min(topk, keys) keys for every token, those that the indexer chose"
)
LONG_CHOSEN = CHOSEN.when(exceeds_chosen)
CHOSEN_HALF = LOCAL_HALF._replace(formula="attention on T^2 / 2 of the T^2 pairs; with k keys chosen, T k - k^2 / 2")
ABSORBED = differ(
    "absorbed",
    lambda f: {"dqk": int(f["rkv"]) + int(f["drope"]), "dv": f["rkv"]},
    "keys as wide as the latent and the rotary part, values as wide as the latent: the weights are absorbed",
).when(lambda f: f.get("topk") and f.get("rkv"))
EVERY_LAYER = differ(
    "every layer",
    lambda f: {"indexed": bool(f.get("topk"))},
    "an indexer in every layer, whatever the configuration says",
)
SKIPPED = Assumption(
    "skipped", INDEXED, lambda f: {"indexed": False}, "no indexer where a sequence has no more than topk tokens"
).when(lambda f: not exceeds_chosen(f))

# multi-token prediction


def _count_prediction(facts: Facts, seen: Facts) -> int:
    """Further tokens: a layer like the last one, a product that joins it to the next token's row, three norms, and logits."""
    last, h = _last(facts), int(facts["h"])
    layer = weights(last) + latent_norms(last) + attention(dict(last, **seen))
    joined = (3 * h + 2 * h * h) * int(facts["tokens"])
    return int(facts.get("nextn") or 0) * (layer + joined + HEAD_PRODUCT.count(dict(facts, **PADDED.facts(facts))))


def _last(facts: Facts) -> Facts:
    """The facts of the last layer, whose like predicts a further token."""
    return dict(facts, moe=facts.get("last", False), index=facts["L"], window=0)


def _count_indexers(facts: Facts) -> int:
    """How many of the layers that predict further tokens have an indexer: they are numbered after the others."""
    first = int(facts["L"]) + 1
    return sum(has_scheduled_indexer(facts, layer) for layer in range(first, first + int(facts.get("nextn") or 0)))


def predicted_half(facts: Facts) -> int:
    """Multi-token prediction with attention on T^2 / 2 pairs."""
    return _count_prediction(facts, HALF.facts(_last(facts)))


def predicted_sparse(facts: Facts) -> int:
    """Multi-token prediction with sparse attention, and the scores of its indexers."""
    last = _last(facts)
    seen = dict(last, **window_of_chosen(last))
    scores = index_scores(dict(last, indexed=True, sums=0, **HALF.facts(last)))
    return _count_prediction(facts, dict(CHOSEN_HALF.facts(seen), window=seen["window"])) + scores * _count_indexers(
        facts
    )


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


INDEXER_PRODUCTS = Term(INDEXER, index_weights, INDEX)
INDEXER_SCORES = Term(SCORES, index_scores, "B hi (di + 1) T^2")
LATENT_NORMS = Term(LAYER, latent_norms, "(r_q + r_kv) B T", cause=NORMS, name="norms")
FURTHER_LAYERS = Term(
    WHOLE, predicted_half, "a layer, 2 h^2 + 3 h and h V for each of nextn further tokens", cause=PREDICTED,
    name="multi-token prediction",
)  # fmt: skip
FURTHER_INDEXERS = Term(
    WHOLE, lambda f: _count_indexers(f) * index_weights(dict(f, indexed=True)), INDEX + " for each of nextn further tokens",
    passes=(1, 2), cause=PREDICTED, name="its indexers",
)  # fmt: skip
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
