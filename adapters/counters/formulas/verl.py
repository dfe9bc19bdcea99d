"""The formula of verl's flops_counter, which has a function for each of some types of configuration.

verl reads the configuration as it was loaded: of a model that also reads images, that is the outer one around its text_config,
whose type (``whole``) is another.
"""

from . import terms
from .terms import Assumption, Facts, Refusal, Term, formula

VERL = "verl-project/verl@1dda039b9c63 verl/utils/flops_counter.py"

DENSE = ("llama", "qwen2", "qwen3", "mistral", "seed_oss", "mimo", "minicpmv", "minicpmo", "gemma3_text", "apertus")
PICTURES = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl")
"""Dense models with a text_config: heads are h / n wide, whatever it says."""
ROUTED = ("qwen2_moe", "qwen3_moe", "qwen3_vl_moe", "gpt_oss", "hy_v3")
"""Models with experts in every layer, whatever the configuration says."""
DEEPSEEK, APERTUS, HYBRID = "deepseek_v3", "apertus", ("qwen3_5", "qwen3_5_moe")
WINDOWS = ("gemma3_text", "gpt_oss")

REFUSALS: tuple[Refusal, ...] = (
    (
        lambda f: f["whole"] == "glm4v",  # its function reads the sizes of a plain configuration, which it is not
        "its source reads config.hidden_size, which a configuration of {whole!r} lacks, and raises there",
    ),
    (
        lambda f: f["whole"] not in (*DENSE, *PICTURES, *ROUTED, DEEPSEEK, *HYBRID),
        "its source counts by config.model_type and has no formula for {whole!r}",
    ),
    (
        lambda f: f.get("images"),
        "its source counts the encoder of images by terms of its own, which are not written here",
    ),
    (
        lambda f: f.get("E") and f["whole"] in (*DENSE, *PICTURES),
        "its source counts model_type {whole!r} as a dense model, and this one has experts",
    ),
    (lambda f: f["whole"] != DEEPSEEK and f.get("rkv"), terms.NO_LATENT[1]),
)


def of_types(assumption: Assumption, *kinds: str) -> Assumption:
    """The assumption, made only for configurations of these types."""
    return assumption.when(lambda f: f["whole"] in kinds)


def linear_layer(facts: Facts) -> bool:
    """Whether a layer of Qwen3.5 has linear attention."""
    return facts["whole"] in HYBRID and bool(facts.get("linear"))


def verl_weights(facts: Facts) -> int:
    """The weights of a layer: of Qwen3.5 with the gate of its queries, its shared expert, and those of linear attention."""
    if facts["whole"] not in HYBRID:
        return terms.weights(facts)
    h, tokens = int(facts["h"]), int(facts["tokens"])
    gate = h if facts.get("E") else 0  # of the shared expert
    own = int(terms.projections(facts))
    mixed = terms.weights(facts) - own * tokens + gate * tokens
    if not linear_layer(facts):
        return mixed + (own + h * int(facts["n"]) * int(facts["d"])) * tokens
    keys, values = int(facts["lk"]) * int(facts["lkd"]), int(facts["lv"]) * int(facts["lvd"])
    return (
        mixed + (h * (2 * keys + 3 * values + 2 * int(facts["lv"])) + int(facts["conv"]) * (2 * keys + values)) * tokens
    )


HALVED = terms.HALF._replace(
    facts=lambda f: terms.count_twice_pairs(
        dict(f, window=f.get("window") if f["whole"] in WINDOWS else 0), lambda n, keys: n * keys
    ),
    formula="attention on half of the T^2 pairs; with a window of w, which Gemma 3 and gpt-oss have, on T w / 2",
)
EVERY_LAYER, NARROW = of_types(terms.ALL_ROUTED, *ROUTED, *HYBRID), of_types(terms.ONE_WIDTH, *PICTURES)

FORMULA = formula(
    "verl, flops_counter: a formula by the configuration's model_type; attention on half of the pairs, head and look-up",
    terms.LAYER_PRODUCTS.cite(
        VERL + ":92-216, 271-451, 454-675", NARROW, terms.THREE.when(lambda f: f["whole"] != APERTUS), EVERY_LAYER,
        terms.NO_SHARED.when(lambda f: f["whole"] not in (DEEPSEEK, "hy_v3", *HYBRID)), count=verl_weights,
    ),
    terms.ROUTER_PRODUCT.cite(VERL + ":171-216, 322-451, 562-675", EVERY_LAYER),
    terms.ATTENTION_PRODUCTS.cite(
        VERL + ":92-216, 322-451, 454-675", NARROW, of_types(terms.WINDOW, *WINDOWS), HALVED, count=terms.count_full_attention
    ),
    Term(  # operations for each element of the state, which a step has three times
        terms.LAYER, lambda f: 5 * terms.count_state(f) if linear_layer(f) else 0,
        "5 d_k d_v n_v B T of linear attention", VERL + ":311-319", plain=True, name="recurrence",
    ),
    Term(  # of queries and keys, as Apertus has them there
        terms.LAYER, lambda f: (f["h"] + f["k"] * f["d"]) * f["tokens"] if f["whole"] == APERTUS else 0,
        "(h + k d) B T of Apertus", VERL + ":522-559", cause="parameters-as-products", name="norms",
    ),
    terms.LOOKUP_PRODUCT.cite(VERL + ":92-124"),
    terms.HEAD_PRODUCT.cite(VERL + ":92-124"),
    packed=True,
    refusals=REFUSALS,
)  # fmt: skip
