"""The formula of verl's flops_counter, which has a function for each of some types of configuration.

verl reads the configuration as it was loaded: of a model that also reads images, that is the outer one around its text_config,
whose type (``whole``) is another.
"""

from .papers import SIZES
from .refusals import no_latent
from .terms import (
    ALL_ROUTED,
    ATTENTION_PRODUCTS,
    DIFFERS,
    HALF,
    HEAD_PRODUCT,
    LAYER,
    LAYER_PRODUCTS,
    LOGITS,
    LOOKUP,
    NO_SHARED,
    NORMS,
    ONE_WIDTH,
    ROUTER_PRODUCT,
    THREE,
    WHOLE,
    WINDOW,
    Assumption,
    Facts,
    Formula,
    Term,
    count_full_attention,
    halves,
    lookup,
    projections,
    weights,
)

VERL = "verl-project/verl@1dda039b9c63 verl/utils/flops_counter.py"

DENSE = ("llama", "qwen2", "qwen3", "mistral", "seed_oss", "mimo", "minicpmv", "minicpmo", "gemma3_text", "apertus")
PICTURES = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl")
"""Dense models with a text_config: heads are h / n wide, whatever it says."""
ROUTED = ("qwen2_moe", "qwen3_moe", "qwen3_vl_moe", "gpt_oss", "hy_v3")
"""Models with experts in every layer, whatever the configuration says."""
DEEPSEEK, APERTUS, HYBRID = "deepseek_v3", "apertus", ("qwen3_5", "qwen3_5_moe")
WINDOWS = ("gemma3_text", "gpt_oss")
SHARED = (DEEPSEEK, "hy_v3")
RAISES = ("glm4v",)
"""Types whose function reads the sizes of a plain configuration, which theirs is not."""


def verl_refuses(facts: Facts) -> str:
    """The sentence for a model_type that verl lacks, and for images, experts or latent attention that its formula lacks."""
    kind = facts["whole"]
    if kind in RAISES:
        return f"its source reads config.hidden_size, which a configuration of {kind!r} lacks, and raises there"
    if kind not in (*DENSE, *PICTURES, *ROUTED, DEEPSEEK, *HYBRID):
        return f"its source counts by config.model_type and has no formula for {kind!r}"
    if facts.get("images"):
        return "its source counts the encoder of images by terms of its own, which are not written here"
    if facts.get("E") and kind in (*DENSE, *PICTURES):
        return f"its source counts model_type {kind!r} as a dense model, and this one has experts"
    return "" if kind == DEEPSEEK or not facts.get("rkv") else no_latent(facts)


def of_types(assumption: Assumption, *kinds: str) -> Assumption:
    """The assumption, made only for configurations of these types."""
    return assumption._replace(facts=lambda f: assumption.facts(f) if f["whole"] in kinds else {})


def of_others(assumption: Assumption, *kinds: str) -> Assumption:
    """The assumption, made for configurations of all types but these."""
    return assumption._replace(facts=lambda f: {} if f["whole"] in kinds else assumption.facts(f))


def linear_layer(facts: Facts) -> bool:
    """Whether a layer of Qwen3.5 has linear attention."""
    return facts["whole"] in HYBRID and bool(facts.get("linear"))


def verl_weights(facts: Facts) -> int:
    """The weights of a layer: of Qwen3.5 with the gate of its queries, its shared expert, and those of linear attention."""
    if facts["whole"] not in HYBRID:
        return weights(facts)
    h, tokens = int(facts["h"]), int(facts["tokens"])
    gate = h if facts.get("E") else 0  # of the shared expert
    own = int(projections(facts))
    mixed = weights(facts) - own * tokens + gate * tokens
    if not linear_layer(facts):
        return mixed + (own + h * int(facts["n"]) * int(facts["d"])) * tokens
    keys, values = int(facts["lk"]) * int(facts["lkd"]), int(facts["lv"]) * int(facts["lvd"])
    return (
        mixed + (h * (2 * keys + 3 * values + 2 * int(facts["lv"])) + int(facts["conv"]) * (2 * keys + values)) * tokens
    )


def state_updates(facts: Facts) -> int:
    """Five operations for each element of the state of linear attention, which a step has three times."""
    return (
        5 * int(facts["lkd"]) * int(facts["lvd"]) * int(facts["lv"]) * int(facts["tokens"])
        if linear_layer(facts)
        else 0
    )


def apertus_norms(facts: Facts) -> int:
    """The norms of queries and keys, as Apertus has them there: h and k d wide."""
    if facts["whole"] != APERTUS:
        return 0
    return (int(facts["h"]) + int(facts["k"]) * int(facts["d"])) * int(facts["tokens"])


KEPT = of_types(WINDOW, *WINDOWS)
HALVED = HALF._replace(
    facts=lambda f: halves(dict(f, window=f.get("window") if f["whole"] in WINDOWS else 0), lambda n, keys: n * keys),
    formula="attention on half of the T^2 pairs; with a window of w, which Gemma 3 and gpt-oss have, on T w / 2",
)

TERMS = (
    LAYER_PRODUCTS.cite(
        VERL + ":92-216, 271-451, 454-675", of_types(ONE_WIDTH, *PICTURES), of_others(THREE, APERTUS),
        of_types(ALL_ROUTED, *ROUTED, *HYBRID), of_others(NO_SHARED, *SHARED, *HYBRID), count=verl_weights,
    ),
    ROUTER_PRODUCT.cite(VERL + ":171-216, 322-451, 562-675", of_types(ALL_ROUTED, *ROUTED, *HYBRID)),
    ATTENTION_PRODUCTS.cite(
        VERL + ":92-216, 322-451, 454-675", of_types(ONE_WIDTH, *PICTURES), KEPT, HALVED, count=count_full_attention
    ),
    Term(
        LAYER, state_updates, "5 d_k d_v n_v B T of linear attention", VERL + ":311-319", cause=DIFFERS, plain=True,
        name="recurrence",
    ),
    Term(LAYER, apertus_norms, "(h + k d) B T of Apertus", VERL + ":522-559", cause=NORMS, name="norms"),
    Term(WHOLE, lookup, LOGITS, VERL + ":92-124", cause=LOOKUP, name="lookup"),
    HEAD_PRODUCT.cite(VERL + ":92-124"),
)  # fmt: skip

FORMULA = Formula(
    "verl, flops_counter: a formula by the configuration's model_type; attention on half of the pairs, head and look-up",
    TERMS,
    forward=False,
    reads=SIZES,
    packed=True,
    refuses=verl_refuses,
)
