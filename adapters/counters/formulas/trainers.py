"""Formulas by which training frameworks count a step, some a forward pass.

They are MaxText, nanochat, Levanter, LitGPT, OLMo-core, llm-foundry, TRL, NeMo, EleutherAI's cookbook and GPT-NeoX.
"""

from __future__ import annotations

from . import terms, verl
from .megatron import EVERY_LAYER, INDEXER_PRODUCTS, INDEXER_SCORES, LONG_CHOSEN, SKIPPED
from .terms import Assumption, Facts, Refusal, Term, formula

MAXTEXT = "AI-Hypercomputer/maxtext@e591f30cbbf2 src/maxtext/utils/maxtext_utils.py"
LEVANTER = "stanford-crfm/levanter@9263f81e8b45 src/levanter/utils/flop_utils.py:10-38"
LITGPT = "Lightning-AI/litgpt@26857050fe3f litgpt/utils.py"
OLMO = "allenai/OLMo-core@fa6c5014c9f6 src/olmo_core/nn"
FOUNDRY = "mosaicml/llm-foundry@8c8dd48f7216 llmfoundry/models/mpt/modeling_mpt.py"
TRL = "huggingface/trl 1.16.0 trl/trainer/utils.py:1701-1758"
OLD_TRL = "huggingface/trl@f2cd57710ae3 trl/trainer/utils.py:1520-1575"
NEMO = "NVIDIA/NeMo@6a5ad765bc75 nemo/utils/flops_formulas.py:99-117"
NEMO_SIZES = "NVIDIA/NeMo@6a5ad765bc75 nemo/collections/common/parts/perf_metrics_utils.py:22-30"
AUTOMODEL = "NVIDIA-NeMo/Automodel@36044ad3d139 nemo_automodel/components/utils/flops_utils.py:49-247, 437-541"
COOKBOOK = "EleutherAI/cookbook@827ee3b293a6 calc/calc_transformer_flops.py"
NANOCHAT = "karpathy/nanochat@92d63d4e8bb4 nanochat/gpt.py"
NEOX = "EleutherAI/gpt-neox@ea7aefd8f8e1 megatron/logging.py"

# MaxText

OWN_TERMS: Refusal = (
    lambda f: f["model_type"].startswith(("llama4", "gemma4", "qwen3_next", "qwen3_5", "deepseek_v4")),
    "its source counts model_type {model_type!r} by terms of its own, which are not written here",
)
"""Types of models of which MaxText counts attention by a function of their own (maxtext_utils.py:1233-1257, 1281-1302)."""
PATTERNS = {"gemma2": 2, "gemma3": 6, "gemma3_text": 6, "gpt_oss": 2}


def local_windows(facts: Facts) -> Facts:
    """MaxText's windows: each layer has one except the last of a pattern (its length depends on the model); others have none."""
    pattern = PATTERNS.get(facts["model_type"], 1)
    return terms.with_window(facts, facts["sliding"] if (int(facts["index"]) + 1) % pattern else 0)


LOCAL = terms.WINDOW._replace(
    facts=local_windows, formula="min(window, T) keys in the layers that Gemma 2, Gemma 3 and gpt-oss have local"
)
ROUTED, WITHOUT_SHARED = (
    assumption.when(lambda f: not ("dense" in f or f.get("rkv")), ", but for DeepSeek")
    for assumption in (terms.ALL_ROUTED, terms.NO_SHARED)
)
"""DeepSeek's decoder alone has dense layers before those of experts there."""

# nanochat

LINEAR = terms.parameters(
    " of a weight of Linear", lambda f: not {"Linear", "Conv1D"} & set(f["kinds"]) or len(f["shape"]) < 2
)
"""GPT-2 has a Conv1D for each Linear; a tied table is the head's weight."""
NO_NANOCHAT = (*terms.PLAIN_ONLY, terms.WINDOWLESS)

# Levanter

LEVANTER_TWO = terms.TWO.when(lambda f: f["model_type"].startswith(("gemma", "mistral")))._replace(
    formula="two matrices for Gemma and Mistral, whose configurations there say glu=False"
)
LEVANTER_KEYS = terms.ALL_KEYS.when(lambda f: f["model_type"] == "mistral")._replace(
    formula="all heads are key heads for Mistral"
)
NO_SHARED_WIDTH = Assumption(
    "shared width", lambda f: {"fs": 0}, "shared experts as wide as the others, as many as n_shared_experts says"
)

# TRL

SPARSE_STEP = Assumption(
    "layers with experts",
    lambda f: {"moe": int(f["index"]) % int(f.get("sparse") or 1) == 0},
    "experts in the layers that decoder_sparse_step divides, counted from 0",
).when(lambda f: f.get("a"))


def lacks(field: str, fact: str = "h") -> Refusal:
    """A configuration without a field that trl reads, where it raises an AttributeError, of models with such a fact."""
    return (
        lambda f: f.get(fact) and field not in f["stated"],
        f"its source reads config.{field}, which this model lacks, and raises there",
    )


NO_TRL = (
    lacks("num_key_value_heads"),
    lacks("intermediate_size"),
    *(lacks(field, "a") for field in ("num_local_experts", "moe_intermediate_size", "decoder_sparse_step")),
    terms.NO_LATENT,
)


def trl(source: str) -> tuple[Term, ...]:
    """The terms that both releases of TRL have, with the lines of one."""
    return (
        terms.LAYER_PRODUCTS.cite(source, terms.THREE, SPARSE_STEP, terms.NO_SHARED),
        terms.ROUTER_PRODUCT.cite(source, SPARSE_STEP),
        terms.ATTENTION_PRODUCTS.cite(source),
        terms.HEAD_PRODUCT.cite(source),
    )


# NeMo

FORMS = {
    "GPT2Config": "gpt3", "LlamaConfig": "llama", "MixtralConfig": "llama", "Qwen2Config": "qwen", "Qwen3Config": "qwen",
    "Qwen3MoeConfig": "qwen", "DeepseekV3Config": "deepseek",
}  # fmt: skip
"""Which of Automodel's formulas is that of a class of configurations: it goes by their names."""
NO_FORM: Refusal = (
    lambda f: f["config_class"] not in FORMS,
    "its source counts by the configuration's class, and its formula for {config_class} is not read yet",
)
NEMO_LAYERS = Assumption(
    "layers with experts",
    lambda f: {"moe": int(f["index"]) % int(f["frequency"]) == 0} if f.get("frequency") else {},
    "experts in the layers that moe_layer_freq divides, if it is stated, and not after first_k_dense_replace",
)
ONE_SHARED = Assumption("one shared expert", lambda f: {"ns": min(int(f.get("ns", 0)), 1)}, "one shared expert")
LLAMA3 = Assumption("vocabulary", lambda f: {"V": 128256}, "a vocabulary of 128,256, whatever the configuration says")


def in_nemo(assumption: Assumption, *forms: str) -> Assumption:
    """The assumption, made only where the form of the configuration's class is one of these."""
    return assumption.when(lambda f: FORMS.get(f["config_class"]) in forms)


# EleutherAI

WIDE_EXPERTS = Assumption(
    "experts", lambda f: {"fe": 4 * int(f["h"])}, "experts of 4 h, whatever the configuration says"
).when(lambda f: f.get("E"))
THREE_QUARTERS = Assumption("quarter", lambda f: {"quarters": 3}, "16 in the divisor of V also without checkpointing")


def again(source: str, *layer: Term) -> Term:
    """A forward pass of a layer with these terms, which is taken to be made again, of a whole sequence."""
    words = "one more forward pass of the layers: their activations are taken to be recomputed"
    return Term(
        terms.RECOMPUTED,
        lambda f: sum(terms.count_whole(term, dict(f, lengths=())) for term in layer),
        words,
        source,
        passes=(0, 1),
    )


COOKBOOK_TERMS = (
    terms.LAYER_PRODUCTS.cite(
        COOKBOOK + ":91-130", terms.EVEN_WIDTH, terms.FOUR_WIDE, WIDE_EXPERTS, terms.ALL_ROUTED, terms.NO_SHARED
    ),
    terms.ROUTER_PRODUCT.cite(COOKBOOK + ":127-129", terms.ALL_ROUTED),
    terms.ATTENTION_PRODUCTS.cite(COOKBOOK + ":91-130", terms.EVEN_WIDTH),
    terms.HEAD_PRODUCT.cite(COOKBOOK + ":91-130", passes=(1, 1)),
    Term(
        terms.WHOLE, lambda f: 4 * f["h"] * f["tokens"], "4 h B T", COOKBOOK + ":91-130", passes=(1, 1),
        plain=True, name="embedding",
    ),
)  # fmt: skip


def neox(source: str, *padding: Assumption) -> tuple[Term, ...]:
    """The terms of both of GPT-NeoX's functions, with the lines of one."""
    return (
        terms.LAYER_PRODUCTS.cite(source, terms.EVEN_WIDTH, terms.ALL_KEYS, terms.TWO, terms.FOUR_WIDE),
        terms.ATTENTION_PRODUCTS.cite(source, terms.EVEN_WIDTH),
        terms.HEAD_PRODUCT.cite(source, *padding),
    )


TRAINERS = {
    "maxtext": formula(
        "MaxText, calculate_tflops_training_per_device: the products of a layer, attention on T^2 / 2 pairs, and the head",
        terms.LAYER_PRODUCTS.cite(MAXTEXT + ":648-743, 1149-1392", ROUTED, WITHOUT_SHARED),
        terms.ROUTER_PRODUCT.cite(MAXTEXT + ":731-743, 1174-1178", ROUTED),
        terms.ATTENTION_PRODUCTS.cite(MAXTEXT + ":283-353, 676-698, 1208-1235", LOCAL, LONG_CHOSEN, terms.LOCAL_HALF),
        INDEXER_PRODUCTS.cite(MAXTEXT + ":622-633, 676-698", EVERY_LAYER, SKIPPED),
        INDEXER_SCORES.cite(MAXTEXT + ":635-645, 676-698", EVERY_LAYER, SKIPPED, terms.HALF),
        terms.HEAD_PRODUCT.cite(MAXTEXT + ":1149-1392"),
        refusals=[OWN_TERMS, terms.WINDOWLESS],
    ),
    "nanochat": formula(
        "nanochat, estimate_flops: 6 N of the weights of Linear + 12 L n (h // n) T per token",
        LINEAR.cite(NANOCHAT + ":319-349"),
        terms.ATTENTION_PRODUCTS.cite(NANOCHAT + ":319-339", terms.WINDOW, terms.ONE_WIDTH),
        refusals=NO_NANOCHAT,
    ),
    "levanter": formula(
        "levanter, lm_flops_per_token: the products of a layer with heads of h / n, three operations per pair, and the head",
        terms.LAYER_PRODUCTS.cite(LEVANTER, terms.EVEN_WIDTH, LEVANTER_KEYS, LEVANTER_TWO, terms.ALL_ROUTED, NO_SHARED_WIDTH),
        terms.ROUTER_PRODUCT.cite(LEVANTER, terms.ALL_ROUTED),
        terms.ATTENTION_PRODUCTS.cite(LEVANTER, terms.EVEN_WIDTH),
        terms.SOFTMAX.cite(LEVANTER),
        terms.HEAD_PRODUCT.cite(LEVANTER),
        forward=True,
        refusals=[terms.NO_LATENT],
    ),
    "litgpt": formula(
        "litgpt, estimate_flops: 6 N (4 N frozen) + 20 L h T per token, attention in both of its addends",
        terms.EVERY_PARAMETER.cite(LITGPT + ":449-479", terms.ALL_EXPERTS),
        terms.ATTENTION_PRODUCTS.cite(LITGPT + ":449-479", terms.EVEN_WIDTH),
        Term(
            terms.LAYER, lambda f: terms.attention(dict(f, lengths=(), **terms.EVEN_WIDTH.facts(f))),
            "2 B h T^2, in the addend for frozen weights", LITGPT + ":458-479", passes=(1, 2),
            name="attention again",
        ),
        forward=True,
        frozen=2,
    ),
    "olmo-core": formula(
        "OLMo-core, num_flops_per_token: 6 N without tables and block norms + 12 L n d T per token",
        terms.parameters(
            "; 0 for an untied table or a layer's own norm; experts times top_k / E",
            lambda f: f["block_norm"] or terms.is_untied(f),
        ).cite(OLMO + "/transformer/model.py:982-993"),
        terms.ATTENTION_PRODUCTS.cite(OLMO + "/attention/__init__.py:791-809", terms.WINDOW),
        refusals=[terms.WINDOWLESS, terms.NO_LATENT, terms.NO_LINEAR],
    ),
    "llm-foundry": formula(
        "llm-foundry, flops_per_batch: 6 N (without an untied table, active experts) + 12 L h T per token",
        terms.parameters(
            "; 0 for an untied table of tokens; experts times a / E",
            lambda f: terms.is_untied(f) and f["shape"][0] == f.get("V"),
        ).cite(FOUNDRY + ":1588-1604"),
        terms.ATTENTION_PRODUCTS.cite(FOUNDRY + ":1606-1618", terms.EVEN_WIDTH),
        refusals=[(lambda f: f["windows"], "its source returns 0 for layers with windows of their own")],
    ),
    "verl": verl.FORMULA,
    "trl": formula(
        "trl 1.16, compute_flops_per_token: the products of a layer with three matrices, attention, and the head",
        *trl(TRL),
        refusals=NO_TRL,
    ),
    "trl-1.9": formula(
        "trl 1.9, compute_flops_per_token: that of 1.16 and the look-up of an untied table",
        *trl(OLD_TRL),
        terms.LOOKUP_PRODUCT.cite(OLD_TRL, count=lambda f: 0 if f["tied"] else terms.lookup(f), formula="h V B T; 0 if tied"),
        refusals=(lacks("head_dim"), *NO_TRL),
    ),
    "nemo": formula(
        "NeMo Automodel, flops_utils: a formula by the configuration's class; attention on T^2 / 2 pairs",
        terms.LAYER_PRODUCTS.cite(
            AUTOMODEL,
            in_nemo(terms.EVEN_WIDTH, "gpt3", "llama"),
            *(in_nemo(assumption, "gpt3") for assumption in (terms.ALL_KEYS, terms.TWO, terms.FOUR_WIDE)),
            in_nemo(terms.THREE, "llama", "qwen", "deepseek"),
            in_nemo(terms.ALL_ROUTED, "llama", "qwen"),
            in_nemo(NEMO_LAYERS, "deepseek"),
            in_nemo(terms.NO_SHARED, "llama", "qwen"),
            in_nemo(ONE_SHARED, "deepseek"),
        ),
        terms.ATTENTION_PRODUCTS.cite(AUTOMODEL, in_nemo(terms.EVEN_WIDTH, "gpt3", "llama"), terms.HALF),
        terms.HEAD_PRODUCT.cite(AUTOMODEL),
        refusals=[NO_FORM, (lambda f: f.get("rkv") and FORMS[f["config_class"]] != "deepseek", terms.NO_LATENT[1])],
    ),
    "nemo-llama3": formula(
        "NeMo 2, flops_formulas.llama3: heads of h / n, three matrices, a vocabulary of 128,256; attention on T^2 / 2 pairs",
        terms.LAYER_PRODUCTS.cite(NEMO, terms.EVEN_WIDTH, terms.THREE),
        terms.ATTENTION_PRODUCTS.cite(NEMO, terms.EVEN_WIDTH, terms.HALF),
        terms.HEAD_PRODUCT.cite(NEMO_SIZES, LLAMA3),
        refusals=terms.PLAIN_ONLY,
    ),
    "cookbook": formula(
        "EleutherAI's calc_transformer_flops.py with checkpointing, its default: four times the layers of a forward pass",
        *COOKBOOK_TERMS,
        again(COOKBOOK + ":91-130", *COOKBOOK_TERMS[:3]),
        forward=True,
        refusals=[terms.NO_LATENT],
    ),
    "cookbook-plain": formula(
        "EleutherAI's calc_transformer_flops.py with --no-checkpoint-activations",
        *COOKBOOK_TERMS,
        forward=True,
        refusals=[terms.NO_LATENT],
    ),
    "gpt-neox": formula(
        "GPT-NeoX, get_forward_backward_flops: 72 h^2 L (1 + T / 6 h + V / 16 L h) per token",
        *neox(NEOX + ":163-237", terms.PADDED, THREE_QUARTERS),
        refusals=terms.PLAIN_ONLY,
    ),
    "gpt-neox-hfu": formula(
        "GPT-NeoX, get_actual_flops with checkpointing: 96 h^2 L (1 + T / 6 h + V / 16 L h) per token",
        *neox(NEOX + ":83-160", terms.PADDED),
        again(NEOX + ":83-160", *neox("")[:2]),
        refusals=terms.PLAIN_ONLY,
    ),
}  # fmt: skip
"""Each formula of a trainer by its name."""
