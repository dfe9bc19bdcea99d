"""Formulas by which training frameworks count a step from a model's configuration.

They are MaxText, nanochat, Levanter, LitGPT, OLMo-core, llm-foundry, TRL, NeMo, EleutherAI's cookbook and GPT-NeoX.
"""

from __future__ import annotations

from . import verl
from .indexed import EVERY_LAYER, INDEX, LONG_CHOSEN, PAIRED, SKIPPED, index_scores, index_weights
from .own import (
    GATE,
    LEVANTER_KEYS,
    LEVANTER_TWO,
    LLAMA3,
    LOCAL,
    LOCAL_HALF,
    NANOCHAT,
    NEMO_LAYERS,
    NO_SHARED_WIDTH,
    cookbook,
    in_nemo,
    linear,
    maxtext_refuses,
    nanochat_refuses,
    nemo_refuses,
    neox,
    no_block_norm,
    no_linear,
    no_token_table,
    old_trl_refuses,
    trl,
    trl_refuses,
    twice,
    unless_deepseek,
    windowless,
)
from .papers import ALL, EVERY, FULL, LOGITS, PRODUCTS, SIZES, UNTIED_FORMULA, WIDTHS, no_latent, plain_only
from .terms import (
    ALL_KEYS,
    ALL_ROUTED,
    ATTENTION,
    DIFFERS,
    EVEN_WIDTH,
    FOUR_WIDE,
    HALF,
    HEAD,
    INDEXER,
    LAYER,
    LOOKUP,
    NO_SHARED,
    ONE_SHARED,
    ONE_WIDTH,
    PARAMETER,
    ROUTER,
    SCORES,
    THREE,
    TWO,
    WEIGHTS,
    WHOLE,
    WINDOW,
    Formula,
    Term,
    attention,
    every,
    head,
    router,
    softmax,
    untied_lookup,
    weights,
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


TRAINERS: dict[str, Formula] = {
    "maxtext": Formula(
        "MaxText, calculate_tflops_training_per_device: the products of a layer, attention on T^2 / 2 pairs, and the head",
        (
            Term(
                WEIGHTS,
                weights,
                PRODUCTS,
                MAXTEXT + ":648-743, 1149-1392",
                (unless_deepseek(ALL_ROUTED), unless_deepseek(NO_SHARED)),
            ),
            Term(ROUTER, router, GATE, MAXTEXT + ":731-743, 1174-1178", (unless_deepseek(ALL_ROUTED),)),
            Term(
                ATTENTION, attention, FULL, MAXTEXT + ":283-353, 676-698, 1208-1235", (LOCAL, LONG_CHOSEN, LOCAL_HALF)
            ),
            Term(INDEXER, index_weights, INDEX, MAXTEXT + ":622-633, 676-698", (EVERY_LAYER, SKIPPED)),
            Term(SCORES, index_scores, PAIRED, MAXTEXT + ":635-645, 676-698", (EVERY_LAYER, SKIPPED, HALF)),
            Term(HEAD, head, LOGITS, MAXTEXT + ":1149-1392"),
        ),
        forward=False,
        reads=SIZES,
        refuses=maxtext_refuses,
    ),
    "nanochat": Formula(
        "nanochat, estimate_flops: 6 N of the weights of Linear + 12 L n (h // n) T per token",
        (
            Term(PARAMETER, linear, "numel B T of a weight of Linear", NANOCHAT + ":319-349"),
            Term(ATTENTION, attention, FULL, NANOCHAT + ":319-339", (WINDOW, ONE_WIDTH)),
        ),
        forward=False,
        reads=("L", "h", "n"),
        refuses=nanochat_refuses,
    ),
    "levanter": Formula(
        "levanter, lm_flops_per_token: the products of a layer with heads of h / n, three operations per pair, and the head",
        (
            Term(
                WEIGHTS,
                weights,
                PRODUCTS,
                LEVANTER + ":10-38",
                (EVEN_WIDTH, LEVANTER_KEYS, LEVANTER_TWO, ALL_ROUTED, NO_SHARED_WIDTH),
            ),
            Term(ROUTER, router, GATE, LEVANTER + ":10-38", (ALL_ROUTED,)),
            Term(ATTENTION, attention, FULL, LEVANTER + ":10-38", (EVEN_WIDTH,)),
            Term(LAYER, softmax, "3 B n T^2", LEVANTER + ":10-38", cause=DIFFERS, plain=True, name="softmax"),
            Term(HEAD, head, LOGITS, LEVANTER + ":10-38"),
        ),
        reads=SIZES,
        refuses=no_latent,
    ),
    "litgpt": Formula(
        "litgpt, estimate_flops: 6 N (4 N frozen) + 20 L h T per token, attention in both of its addends",
        (
            Term(PARAMETER, every, EVERY, LITGPT + ":449-479", ALL),
            Term(ATTENTION, attention, FULL, LITGPT + ":449-479", (EVEN_WIDTH,)),
            Term(
                LAYER,
                twice,
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
            Term(
                ATTENTION,
                attention,
                FULL,
                "allenai/OLMo-core@fa6c5014c9f6 src/olmo_core/nn/attention/__init__.py:791-809",
                (WINDOW,),
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
            Term(ATTENTION, attention, FULL, FOUNDRY + ":1606-1618", (EVEN_WIDTH,)),
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
            Term(
                WEIGHTS,
                weights,
                PRODUCTS,
                AUTOMODEL + ":49-247, 437-541",
                (
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
            ),
            Term(
                ATTENTION, attention, FULL, AUTOMODEL + ":49-247, 437-541", (in_nemo(EVEN_WIDTH, "gpt3", "llama"), HALF)
            ),
            Term(HEAD, head, LOGITS, AUTOMODEL + ":49-247, 437-541"),
        ),
        forward=False,
        reads=SIZES,
        refuses=nemo_refuses,
    ),
    "nemo-llama3": Formula(
        "NeMo 2, flops_formulas.llama3: heads of h / n, three matrices, a vocabulary of 128,256; attention on T^2 / 2 pairs",
        (
            Term(WEIGHTS, weights, PRODUCTS, NEMO + ":99-117", (EVEN_WIDTH, THREE)),
            Term(ATTENTION, attention, FULL, NEMO + ":99-117", (EVEN_WIDTH, HALF)),
            Term(HEAD, head, LOGITS, NEMO_SIZES + ":22-30", (LLAMA3,)),
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
