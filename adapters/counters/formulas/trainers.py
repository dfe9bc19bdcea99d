"""Formulas by which training frameworks count a step, some a forward pass, from a model's configuration or parameters.

They are MaxText, nanochat, Levanter, LitGPT, OLMo-core, llm-foundry, TRL, NeMo, EleutherAI's cookbook, GPT-NeoX and verl.
A ``..._refuses`` returns the sentence for a configuration that its source does not cover, '' for one that it does.
"""

from __future__ import annotations

from . import verl
from .papers import SIZES, UNTIED_FORMULA, WIDTHS
from .refusals import no_latent, no_linear, plain_only, windowless
from .sparse_attention import EVERY_LAYER, INDEXER_PRODUCTS, INDEXER_SCORES, LONG_CHOSEN, SKIPPED
from .terms import (
    AGAIN,
    ALL_EXPERTS,
    ALL_KEYS,
    ALL_ROUTED,
    ATTENTION_PRODUCTS,
    DIFFERS,
    EVEN_WIDTH,
    EVERY_PARAMETER,
    FOUR_WIDE,
    HALF,
    HEAD_PRODUCT,
    LAYER,
    LAYER_PRODUCTS,
    LOCAL_HALF,
    LOGITS,
    LOOKUP,
    NO_SHARED,
    ONE_SEQUENCE,
    ONE_SHARED,
    ONE_WIDTH,
    PADDED,
    PARAMETER,
    ROUTER_PRODUCT,
    THREE,
    THREE_QUARTERS,
    TWO,
    WHOLE,
    WINDOW,
    Assumption,
    Facts,
    Formula,
    Term,
    attention,
    every,
    router,
    softmax,
    untied_lookup,
    weights,
    without_embeddings,
)

MAXTEXT = "AI-Hypercomputer/maxtext@e591f30cbbf2 src/maxtext/utils/maxtext_utils.py"
LEVANTER = "stanford-crfm/levanter@9263f81e8b45 src/levanter/utils/flop_utils.py"
LITGPT = "Lightning-AI/litgpt@26857050fe3f litgpt/utils.py"
OLMO = "allenai/OLMo-core@fa6c5014c9f6 src/olmo_core/nn/transformer/model.py"
FOUNDRY = "mosaicml/llm-foundry@8c8dd48f7216 llmfoundry/models/mpt/modeling_mpt.py"
TRL = "huggingface/trl 1.16.0 trl/trainer/utils.py"
OLD_TRL = "huggingface/trl@f2cd57710ae3 trl/trainer/utils.py"
NEMO = "NVIDIA/NeMo@6a5ad765bc75 nemo/utils/flops_formulas.py"
NEMO_SIZES = "NVIDIA/NeMo@6a5ad765bc75 nemo/collections/common/parts/perf_metrics_utils.py"
AUTOMODEL = "NVIDIA-NeMo/Automodel@36044ad3d139 nemo_automodel/components/utils/flops_utils.py"
COOKBOOK = "EleutherAI/cookbook@827ee3b293a6 calc/calc_transformer_flops.py"
NANOCHAT = "karpathy/nanochat@92d63d4e8bb4 nanochat/gpt.py"
NEOX = "EleutherAI/gpt-neox@ea7aefd8f8e1 megatron/logging.py"


# MaxText

OWN_TERMS = ("llama4", "gemma4", "qwen3_next", "qwen3_5", "deepseek_v4")
"""Types of models of which MaxText counts attention by a function of their own (maxtext_utils.py:1233-1257, 1281-1302)."""


def maxtext_refuses(facts: Facts) -> str:
    """The sentence for a type of model for which MaxText has a function of its own, and for a window of unknown width."""
    kind = str(facts["model_type"])
    if kind.startswith(OWN_TERMS):
        return f"its source counts model_type {kind!r} by terms of its own, which are not written here"
    return windowless(facts)


PATTERNS = {"gemma2": 2, "gemma3": 6, "gemma3_text": 6, "gpt_oss": 2}


def local_windows(facts: Facts) -> Facts:
    """MaxText's windows: each layer has one except the last of a pattern (its length depends on the model); others have none."""
    pattern = PATTERNS.get(str(facts["model_type"]), 1)
    own = dict(facts, window=facts["sliding"] if (int(facts["index"]) + 1) % pattern else 0)
    return dict(WINDOW.facts(own), window=own["window"])


LOCAL = WINDOW._replace(
    facts=local_windows, formula="min(window, T) keys in the layers that Gemma 2, Gemma 3 and gpt-oss have local"
)


def unless_deepseek(assumption: Assumption) -> Assumption:
    """An assumption of MaxText's models but DeepSeek's, whose decoder alone has dense layers before those of experts."""
    return assumption._replace(
        facts=lambda f: {} if "dense" in f or f.get("rkv") else assumption.facts(f),
        formula=assumption.formula + ", but for DeepSeek",
    )


# nanochat


def linear(facts: Facts) -> int:
    """Each weight of a Linear, or of the Conv1D that stands for it in GPT-2; a tied table is the head's weight."""
    return every(facts) if {"Linear", "Conv1D"} & set(facts["kinds"]) and len(facts["shape"]) > 1 else 0


def nanochat_refuses(facts: Facts) -> str:
    """The sentence for experts and latent attention, for which nanochat has no term, and for a window of unknown width."""
    return plain_only(facts) or windowless(facts)


# Levanter

LEVANTER_TWO = TWO._replace(
    facts=lambda f: {"m": 2} if str(f["model_type"]).startswith(("gemma", "mistral")) else {},
    formula="two matrices for Gemma and Mistral, whose configurations there say glu=False",
)
LEVANTER_KEYS = ALL_KEYS._replace(
    facts=lambda f: {"k": f["n"]} if f["model_type"] == "mistral" else {}, formula="all heads are key heads for Mistral"
)
NO_SHARED_WIDTH = Assumption(
    "shared width",
    DIFFERS,
    lambda f: {"fs": 0},
    "shared experts as wide as the others, as many as n_shared_experts says",
)


# LitGPT, OLMo-core and llm-foundry


def attention_again(facts: Facts) -> int:
    """LitGPT's second addend for attention: both products on all pairs of a whole sequence, with heads of h / n."""
    return attention(dict(facts, lengths=(), **EVEN_WIDTH.facts(facts)))


def no_block_norm(facts: Facts) -> int:
    """Each parameter but tables and the norms that stand directly in a layer."""
    return 0 if facts["block_norm"] else without_embeddings(facts)


def no_token_table(facts: Facts) -> int:
    """Each parameter but the untied table of tokens; tables of positions and of token types stay."""
    return without_embeddings(facts) if facts["shape"][0] == facts.get("V") else every(facts)


# TRL

SPARSE_STEP = Assumption(
    "layers with experts",
    DIFFERS,
    lambda f: {"moe": int(f["index"]) % int(f.get("sparse") or 1) == 0} if f.get("a") else {},
    "experts in the layers that decoder_sparse_step divides, counted from 0",
)


def trl(source: str) -> tuple:
    """The terms that both releases of TRL have, with the lines of one."""
    return (
        LAYER_PRODUCTS.cite(source, THREE, SPARSE_STEP, NO_SHARED),
        ROUTER_PRODUCT.cite(source, SPARSE_STEP),
        ATTENTION_PRODUCTS.cite(source),
        HEAD_PRODUCT.cite(source),
    )


def old_trl_refuses(facts: Facts) -> str:
    """The sentence for a field that trl 1.9 reads and the configuration lacks: it reads head_dim as well."""
    if "head_dim" not in facts["stated"]:
        return "its source reads config.head_dim, which this model lacks, and raises there"
    return trl_refuses(facts)


def trl_refuses(facts: Facts) -> str:
    """The sentence for a field that trl reads and the configuration lacks, where it raises an AttributeError."""
    needed = ["num_key_value_heads", "intermediate_size"]
    needed += ["num_local_experts", "moe_intermediate_size", "decoder_sparse_step"] if facts.get("a") else []
    lacking = [name for name in needed if name not in facts["stated"]]
    return (
        f"its source reads config.{lacking[0]}, which this model lacks, and raises there"
        if lacking
        else no_latent(facts)
    )


# NeMo

NEMO_LAYERS = Assumption(
    "layers with experts",
    DIFFERS,
    lambda f: {"moe": int(f["index"]) % int(f["frequency"]) == 0} if f.get("frequency") else {},
    "experts in the layers that moe_layer_freq divides, if it is stated, and not after first_k_dense_replace",
)
LLAMA3 = Assumption(
    "vocabulary", DIFFERS, lambda f: {"V": 128256}, "a vocabulary of 128,256, whatever the configuration says"
)


def nemo_form(facts: Facts) -> str:
    """Which of Automodel's formulas is that of the configuration's class; '' if none is written here."""
    forms = {"GPT2Config": "gpt3", "LlamaConfig": "llama", "MixtralConfig": "llama", "DeepseekV3Config": "deepseek"}
    forms.update(dict.fromkeys(("Qwen2Config", "Qwen3Config", "Qwen3MoeConfig"), "qwen"))
    return forms.get(facts["config_class"], "")


def nemo_refuses(facts: Facts) -> str:
    """The sentence for a class of configuration whose form is not written here: Automodel goes by the name of the class."""
    if not nemo_form(facts):
        kind = facts["config_class"]
        return f"its source counts by the configuration's class, and its formula for {kind} is not read yet"
    return no_latent(facts) if nemo_form(facts) != "deepseek" else ""


def in_nemo(assumption: Assumption, *forms: str) -> Assumption:
    """The assumption, made only where the form of the configuration's class (``nemo_form``) is one of these."""
    return assumption._replace(facts=lambda f: assumption.facts(f) if nemo_form(f) in forms else {})


# EleutherAI

ONCE_MORE = "one more forward pass of the layers: their activations are taken to be recomputed"
WIDE_EXPERTS = Assumption(
    "experts",
    DIFFERS,
    lambda f: {"fe": 4 * int(f["h"])} if f.get("E") else {},
    "experts of 4 h, whatever the configuration says",
)


def layer_again(facts: Facts) -> int:
    """The recomputation of a layer: its weights, router and attention, h and 4 h wide."""
    for assumption in (ONE_SEQUENCE, EVEN_WIDTH, FOUR_WIDE, WIDE_EXPERTS, ALL_ROUTED, NO_SHARED):
        facts = dict(facts, **assumption.facts(facts))
    return weights(facts) + router(facts) + attention(facts)


def neox_again(facts: Facts) -> int:
    """The same with as many key heads as query heads and two matrices."""
    return layer_again(dict(facts, k=facts["n"], m=2))


def cookbook(again: bool) -> tuple:
    """The terms of EleutherAI's cookbook, with those of a forward pass that is made ``again`` or without."""
    extra = Term(AGAIN, layer_again, ONCE_MORE, COOKBOOK + ":91-130", passes=(0, 1))
    return (
        LAYER_PRODUCTS.cite(COOKBOOK + ":91-130", EVEN_WIDTH, FOUR_WIDE, WIDE_EXPERTS, ALL_ROUTED, NO_SHARED),
        ROUTER_PRODUCT.cite(COOKBOOK + ":127-129", ALL_ROUTED),
        ATTENTION_PRODUCTS.cite(COOKBOOK + ":91-130", EVEN_WIDTH),
        HEAD_PRODUCT.cite(COOKBOOK + ":91-130", passes=(1, 1)),
        Term(
            WHOLE,
            lambda f: 4 * int(f["h"]) * int(f["tokens"]),
            "4 h B T",
            COOKBOOK + ":91-130",
            passes=(1, 1),
            cause=DIFFERS,
            plain=True,
            name="embedding",
        ),
    ) + ((extra,) if again else ())


def neox(again: bool) -> tuple:
    """The terms of GPT-NeoX, with those of a forward pass that is made ``again`` or without."""
    source = NEOX + (":83-160" if again else ":163-237")
    extra = Term(AGAIN, neox_again, ONCE_MORE, source, passes=(0, 1))
    padding = (PADDED,) if again else (PADDED, THREE_QUARTERS)
    return (
        LAYER_PRODUCTS.cite(source, EVEN_WIDTH, ALL_KEYS, TWO, FOUR_WIDE),
        ATTENTION_PRODUCTS.cite(source, EVEN_WIDTH),
        HEAD_PRODUCT.cite(source, *padding),
    ) + ((extra,) if again else ())


TRAINERS: dict[str, Formula] = {
    "maxtext": Formula(
        "MaxText, calculate_tflops_training_per_device: the products of a layer, attention on T^2 / 2 pairs, and the head",
        (
            LAYER_PRODUCTS.cite(
                MAXTEXT + ":648-743, 1149-1392", unless_deepseek(ALL_ROUTED), unless_deepseek(NO_SHARED)
            ),
            ROUTER_PRODUCT.cite(MAXTEXT + ":731-743, 1174-1178", unless_deepseek(ALL_ROUTED)),
            ATTENTION_PRODUCTS.cite(MAXTEXT + ":283-353, 676-698, 1208-1235", LOCAL, LONG_CHOSEN, LOCAL_HALF),
            INDEXER_PRODUCTS.cite(MAXTEXT + ":622-633, 676-698", EVERY_LAYER, SKIPPED),
            INDEXER_SCORES.cite(MAXTEXT + ":635-645, 676-698", EVERY_LAYER, SKIPPED, HALF),
            HEAD_PRODUCT.cite(MAXTEXT + ":1149-1392"),
        ),
        forward=False,
        reads=SIZES,
        refuses=maxtext_refuses,
    ),
    "nanochat": Formula(
        "nanochat, estimate_flops: 6 N of the weights of Linear + 12 L n (h // n) T per token",
        (
            Term(PARAMETER, linear, "numel B T of a weight of Linear", NANOCHAT + ":319-349"),
            ATTENTION_PRODUCTS.cite(NANOCHAT + ":319-339", WINDOW, ONE_WIDTH),
        ),
        forward=False,
        reads=("L", "h", "n"),
        refuses=nanochat_refuses,
    ),
    "levanter": Formula(
        "levanter, lm_flops_per_token: the products of a layer with heads of h / n, three operations per pair, and the head",
        (
            LAYER_PRODUCTS.cite(
                LEVANTER + ":10-38", EVEN_WIDTH, LEVANTER_KEYS, LEVANTER_TWO, ALL_ROUTED, NO_SHARED_WIDTH
            ),
            ROUTER_PRODUCT.cite(LEVANTER + ":10-38", ALL_ROUTED),
            ATTENTION_PRODUCTS.cite(LEVANTER + ":10-38", EVEN_WIDTH),
            Term(LAYER, softmax, "3 B n T^2", LEVANTER + ":10-38", cause=DIFFERS, plain=True, name="softmax"),
            HEAD_PRODUCT.cite(LEVANTER + ":10-38"),
        ),
        reads=SIZES,
        refuses=no_latent,
    ),
    "litgpt": Formula(
        "litgpt, estimate_flops: 6 N (4 N frozen) + 20 L h T per token, attention in both of its addends",
        (
            EVERY_PARAMETER.cite(LITGPT + ":449-479", ALL_EXPERTS),
            ATTENTION_PRODUCTS.cite(LITGPT + ":449-479", EVEN_WIDTH),
            Term(
                LAYER,
                attention_again,
                "2 B h T^2, in the addend for frozen weights",
                LITGPT + ":458-479",
                passes=(1, 2),
                cause=DIFFERS,
                name="attention again",
            ),
        ),
        reads=("L", "h", "n"),
        frozen=2,
    ),
    "olmo-core": Formula(
        "OLMo-core, num_flops_per_token: 6 N without tables and block norms + 12 L n d T per token",
        (
            Term(
                PARAMETER,
                no_block_norm,
                UNTIED_FORMULA + " or a layer's own norm; experts times top_k / E",
                OLMO + ":982-993",
            ),
            ATTENTION_PRODUCTS.cite(
                "allenai/OLMo-core@fa6c5014c9f6 src/olmo_core/nn/attention/__init__.py:791-809", WINDOW
            ),
        ),
        forward=False,
        reads=WIDTHS,
        refuses=lambda facts: windowless(facts) or no_latent(facts) or no_linear(facts),
    ),
    "llm-foundry": Formula(
        "llm-foundry, flops_per_batch: 6 N (without an untied table, active experts) + 12 L h T per token",
        (
            Term(PARAMETER, no_token_table, UNTIED_FORMULA + " of tokens; experts times a / E", FOUNDRY + ":1588-1604"),
            ATTENTION_PRODUCTS.cite(FOUNDRY + ":1606-1618", EVEN_WIDTH),
        ),
        forward=False,
        reads=("L", "h", "n"),
        refuses=lambda facts: "its source returns 0 for layers with windows of their own" if facts["windows"] else "",
    ),
    "verl": verl.FORMULA,
    "trl": Formula(
        "trl 1.16, compute_flops_per_token: the products of a layer with three matrices, attention, and the head",
        trl(TRL + ":1701-1758"),
        forward=False,
        reads=SIZES,
        refuses=trl_refuses,
    ),
    "trl-1.9": Formula(
        "trl 1.9, compute_flops_per_token: that of 1.16 and the look-up of an untied table",
        trl(OLD_TRL + ":1520-1575")
        + (Term(WHOLE, untied_lookup, LOGITS + "; 0 if tied", OLD_TRL + ":1520-1575", cause=LOOKUP, name="lookup"),),
        forward=False,
        reads=SIZES,
        refuses=old_trl_refuses,
    ),
    "nemo": Formula(
        "NeMo Automodel, flops_utils: a formula by the configuration's class; attention on T^2 / 2 pairs",
        (
            LAYER_PRODUCTS.cite(
                AUTOMODEL + ":49-247, 437-541",
                in_nemo(EVEN_WIDTH, "gpt3", "llama"),
                in_nemo(ALL_KEYS, "gpt3"),
                in_nemo(TWO, "gpt3"),
                in_nemo(FOUR_WIDE, "gpt3"),
                in_nemo(THREE, "llama", "qwen", "deepseek"),
                in_nemo(ALL_ROUTED, "llama", "qwen"),
                in_nemo(NEMO_LAYERS, "deepseek"),
                in_nemo(NO_SHARED, "llama", "qwen"),
                in_nemo(ONE_SHARED, "deepseek"),
            ),
            ATTENTION_PRODUCTS.cite(AUTOMODEL + ":49-247, 437-541", in_nemo(EVEN_WIDTH, "gpt3", "llama"), HALF),
            HEAD_PRODUCT.cite(AUTOMODEL + ":49-247, 437-541"),
        ),
        forward=False,
        reads=SIZES,
        refuses=nemo_refuses,
    ),
    "nemo-llama3": Formula(
        "NeMo 2, flops_formulas.llama3: heads of h / n, three matrices, a vocabulary of 128,256; attention on T^2 / 2 pairs",
        (
            LAYER_PRODUCTS.cite(NEMO + ":99-117", EVEN_WIDTH, THREE),
            ATTENTION_PRODUCTS.cite(NEMO + ":99-117", EVEN_WIDTH, HALF),
            HEAD_PRODUCT.cite(NEMO_SIZES + ":22-30", LLAMA3),
        ),
        forward=False,
        reads=SIZES,
        refuses=plain_only,
    ),
    "cookbook": Formula(
        "EleutherAI's calc_transformer_flops.py with checkpointing, its default: four times the layers of a forward pass",
        cookbook(True),
        reads=SIZES,
        refuses=no_latent,
    ),
    "cookbook-plain": Formula(
        "EleutherAI's calc_transformer_flops.py with --no-checkpoint-activations",
        cookbook(False),
        reads=SIZES,
        refuses=no_latent,
    ),
    "gpt-neox": Formula(
        "GPT-NeoX, get_forward_backward_flops: 72 h^2 L (1 + T / 6 h + V / 16 L h) per token",
        neox(False),
        forward=False,
        reads=SIZES,
        refuses=plain_only,
    ),
    "gpt-neox-hfu": Formula(
        "GPT-NeoX, get_actual_flops with checkpointing: 96 h^2 L (1 + T / 6 h + V / 16 L h) per token",
        neox(True),
        forward=False,
        reads=SIZES,
        refuses=plain_only,
    ),
}
