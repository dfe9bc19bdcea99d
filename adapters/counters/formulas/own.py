"""Counts, assumptions and refusals that only one source of a formula has, such as nanochat, trl, MaxText or GPT-NeoX.

A refusal is the sentence for a configuration that a source does not cover.
"""

from .papers import FULL, LOGITS, PRODUCTS, no_latent, plain_only
from .terms import (
    AGAIN,
    ALL_KEYS,
    ALL_ROUTED,
    ATTENTION,
    DIFFERS,
    EVEN_WIDTH,
    FOUR_WIDE,
    HALF,
    HEAD,
    NO_SHARED,
    ONE_SEQUENCE,
    PADDED,
    ROUTER,
    THREE,
    THREE_QUARTERS,
    TWO,
    WEIGHTS,
    WHOLE,
    WINDOW,
    Assumption,
    Facts,
    Term,
    attention,
    every,
    halves,
    head,
    router,
    weights,
    without_embeddings,
)

COOKBOOK = "EleutherAI/cookbook@827ee3b293a6 calc/calc_transformer_flops.py"
NANOCHAT = "karpathy/nanochat@92d63d4e8bb4 nanochat/gpt.py"
NEOX = "EleutherAI/gpt-neox@ea7aefd8f8e1 megatron/logging.py"

GATE = "h E B T"
ONCE_MORE = "one more forward pass of the layers: their activations are taken to be recomputed"


def linear(facts: Facts) -> int:
    """Each weight of a Linear, or of the Conv1D that stands for it in GPT-2; a tied table is the head's weight."""
    return every(facts) if {"Linear", "Conv1D"} & set(facts["kinds"]) and len(facts["shape"]) > 1 else 0


def no_token_table(facts: Facts) -> int:
    """Each parameter but the untied table of tokens; tables of positions and of token types stay."""
    return without_embeddings(facts) if facts["shape"][0] == facts.get("V") else every(facts)


def no_block_norm(facts: Facts) -> int:
    """Each parameter but tables and the norms that stand directly in a layer."""
    return 0 if facts["block_norm"] else without_embeddings(facts)


def latent_norms(facts: Facts) -> int:
    """The norms of latent attention, each of its parameters once per token."""
    return (int(facts.get("rq") or 0) + int(facts["rkv"])) * int(facts["tokens"]) if facts.get("rkv") else 0


def layer_again(facts: Facts) -> int:
    """The recomputation of a layer: its weights, router and attention, h and 4 h wide."""
    for assumption in (ONE_SEQUENCE, EVEN_WIDTH, FOUR_WIDE, WIDE_EXPERTS, ALL_ROUTED, NO_SHARED):
        facts = dict(facts, **assumption.facts(facts))
    return weights(facts) + router(facts) + attention(facts)


def neox_again(facts: Facts) -> int:
    """The same with as many key heads as query heads and two matrices."""
    return layer_again(dict(facts, k=facts["n"], m=2))


def twice(facts: Facts) -> int:
    """Attention, h wide."""
    return attention(dict(facts, lengths=(), **EVEN_WIDTH.facts(facts)))


def windowless(facts: Facts) -> str:
    """Refuses a configuration with sliding layers that does not state the width of their window."""
    return (
        "its source reads the width of a sliding window, and this model's config states none"
        if facts["windowless"]
        else ""
    )


def nanochat_refuses(facts: Facts) -> str:
    """Refuses experts and latent attention, for which nanochat has no term, and windows of unknown width."""
    return plain_only(facts) or windowless(facts)


def old_trl_refuses(facts: Facts) -> str:
    """trl 1.9 reads head_dim as well."""
    if "head_dim" not in facts["stated"]:
        return "its source reads config.head_dim, which this model lacks, and raises there"
    return trl_refuses(facts)


def trl_refuses(facts: Facts) -> str:
    """trl reads fields that some configurations lack, and raises an AttributeError there."""
    needed = ["num_key_value_heads", "intermediate_size"]
    needed += ["num_local_experts", "moe_intermediate_size", "decoder_sparse_step"] if facts.get("a") else []
    lacking = [name for name in needed if name not in facts["stated"]]
    return (
        f"its source reads config.{lacking[0]}, which this model lacks, and raises there"
        if lacking
        else no_latent(facts)
    )


def no_linear(facts: Facts) -> str:
    """Refuses linear attention, for a source that has a formula of its own for it."""
    return (
        "its source counts linear attention by terms of its own, which are not written here" if facts.get("lk") else ""
    )


OWN_TERMS = ("llama4", "gemma4", "qwen3_next", "qwen3_5", "deepseek_v4")
"""Types of models of which MaxText counts attention by a function of their own (maxtext_utils.py:1233-1257, 1281-1302)."""


def maxtext_refuses(facts: Facts) -> str:
    """Refuses the types of models for which MaxText has functions of their own."""
    kind = str(facts["model_type"])
    if kind.startswith(OWN_TERMS):
        return f"its source counts model_type {kind!r} by terms of its own, which are not written here"
    return windowless(facts)


PATTERNS = {"gemma2": 2, "gemma3": 6, "gemma3_text": 6, "gpt_oss": 2}


def local(facts: Facts) -> Facts:
    """MaxText's windows: each layer has one except the last of a pattern (its length depends on the model); others have none."""
    pattern = PATTERNS.get(str(facts["model_type"]), 1)
    own = dict(facts, window=facts["sliding"] if (int(facts["index"]) + 1) % pattern else 0)
    return dict(WINDOW.facts(own), window=own["window"])


LOCAL = WINDOW._replace(
    facts=local, formula="min(window, T) keys in the layers that Gemma 2, Gemma 3 and gpt-oss have local"
)
LOCAL_HALF = HALF._replace(
    facts=lambda f: halves(f, lambda n, keys: keys * (2 * n - keys)),
    formula="attention on T^2 / 2 of the T^2 pairs; with a window of w, T w - w^2 / 2",
)


SPARSE_STEP = Assumption(
    "layers with experts",
    DIFFERS,
    lambda f: {"moe": int(f["index"]) % int(f.get("sparse") or 1) == 0} if f.get("a") else {},
    "experts in the layers that decoder_sparse_step divides, counted from 0",
)
NEMO_LAYERS = Assumption(
    "layers with experts",
    DIFFERS,
    lambda f: {"moe": int(f["index"]) % int(f["frequency"]) == 0} if f.get("frequency") else {},
    "experts in the layers that moe_layer_freq divides, if it is stated, and not after first_k_dense_replace",
)


def nemo_form(facts: Facts) -> str:
    forms = {"GPT2Config": "gpt3", "LlamaConfig": "llama", "MixtralConfig": "llama", "DeepseekV3Config": "deepseek"}
    forms.update(dict.fromkeys(("Qwen2Config", "Qwen3Config", "Qwen3MoeConfig"), "qwen"))
    return forms.get(facts["config_class"], "")


def nemo_refuses(facts: Facts) -> str:
    """Automodel goes by the name of the configuration's class; its general form for other classes is not written here."""
    if not nemo_form(facts):
        kind = facts["config_class"]
        return f"its source counts by the configuration's class, and its formula for {kind} is not read yet"
    return no_latent(facts) if nemo_form(facts) != "deepseek" else ""


def in_nemo(assumption: Assumption, *forms: str) -> Assumption:
    """An assumption of the forms with these names alone."""
    return assumption._replace(facts=lambda f: assumption.facts(f) if nemo_form(f) in forms else {})


LEVANTER_TWO = TWO._replace(
    facts=lambda f: {"m": 2} if str(f["model_type"]).startswith(("gemma", "mistral")) else {},
    formula="two matrices for Gemma and Mistral, whose configurations there say glu=False",
)
LEVANTER_KEYS = ALL_KEYS._replace(
    facts=lambda f: {"k": f["n"]} if f["model_type"] == "mistral" else {}, formula="all heads are key heads for Mistral"
)


def unless_deepseek(assumption: Assumption) -> Assumption:
    """An assumption of MaxText's models but DeepSeek's, whose decoder alone has dense layers before those of experts."""
    return assumption._replace(
        facts=lambda f: {} if "dense" in f or f.get("rkv") else assumption.facts(f),
        formula=assumption.formula + ", but for DeepSeek",
    )


NO_SHARED_WIDTH = Assumption(
    "shared width",
    DIFFERS,
    lambda f: {"fs": 0},
    "shared experts as wide as the others, as many as n_shared_experts says",
)


LLAMA3 = Assumption(
    "vocabulary", DIFFERS, lambda f: {"V": 128256}, "a vocabulary of 128,256, whatever the configuration says"
)


WIDE_EXPERTS = Assumption(
    "experts",
    DIFFERS,
    lambda f: {"fe": 4 * int(f["h"])} if f.get("E") else {},
    "experts of 4 h, whatever the configuration says",
)


def cookbook(again: bool) -> tuple:
    extra = Term(AGAIN, layer_again, ONCE_MORE, COOKBOOK + ":91-130", passes=(0, 1))
    return (
        Term(WEIGHTS, weights, PRODUCTS, COOKBOOK + ":91-130", (EVEN_WIDTH, FOUR_WIDE, WIDE_EXPERTS, ALL_ROUTED, NO_SHARED)),
        Term(ROUTER, router, GATE, COOKBOOK + ":127-129", (ALL_ROUTED,)),
        Term(ATTENTION, attention, FULL, COOKBOOK + ":91-130", (EVEN_WIDTH,)),
        Term(HEAD, head, LOGITS, COOKBOOK + ":91-130", passes=(1, 1)),
        Term(
            WHOLE, lambda f: 4 * int(f["h"]) * int(f["tokens"]), "4 h B T", COOKBOOK + ":91-130", passes=(1, 1), cause=DIFFERS,
            plain=True, name="embedding",
        ),
    ) + ((extra,) if again else ())  # fmt: skip


def neox(again: bool) -> tuple:
    source = NEOX + (":83-160" if again else ":163-237")
    extra = Term(AGAIN, neox_again, ONCE_MORE, source, passes=(0, 1))
    padding = (PADDED,) if again else (PADDED, THREE_QUARTERS)
    return (
        Term(WEIGHTS, weights, PRODUCTS, source, (EVEN_WIDTH, ALL_KEYS, TWO, FOUR_WIDE)),
        Term(ATTENTION, attention, FULL, source, (EVEN_WIDTH,)),
        Term(HEAD, head, LOGITS, source, padding),
    ) + ((extra,) if again else ())


def trl(source: str) -> tuple:
    return (
        Term(WEIGHTS, weights, PRODUCTS, source, (THREE, SPARSE_STEP, NO_SHARED)),
        Term(ROUTER, router, GATE, source, (SPARSE_STEP,)),
        Term(ATTENTION, attention, FULL, source),
        Term(HEAD, head, LOGITS, source),
    )
