"""Formulas of Megatron-LM, with and without multi-token prediction and sparse attention, and of Megatron-Bridge.

Standard library only. Megatron-LM reads on its command line whether a model has these two: `megatron` assumes neither.
"""

from __future__ import annotations

from .sparse_attention import (
    ABSORBED,
    CHOSEN,
    CHOSEN_HALF,
    FURTHER_INDEXERS,
    FURTHER_LAYERS,
    INDEXER_PRODUCTS,
    INDEXER_SCORES,
    LATENT_NORMS,
    NO_SUM,
    ONE_MEAN_LENGTH,
    PREDICTS_ITSELF,
    SCHEDULE,
    SCORE_GRADIENTS,
    TEACHER,
    predicted_half,
    predicted_sparse,
)
from .terms import (
    ATTENTION_PRODUCTS,
    EXACT_HALF,
    HALF,
    HEAD_PRODUCT,
    LAYER_PRODUCTS,
    NO_LINEAR,
    ONE_SEQUENCE,
    PADDED,
    WINDOW,
    WINDOWLESS,
    Facts,
    formula,
)

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
        FURTHER_LAYERS.cite(MAIN + ":1042-1048, 1288-1303"),
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
        LAYER_PRODUCTS.cite(DSA + ":1159-1181, 1391-1418"),
        ATTENTION_PRODUCTS.cite(DSA + ":390-417, 522-547, 1349-1351", CHOSEN, CHOSEN_HALF),
        LATENT_NORMS.cite(DSA + ":1159-1181"),
        INDEXER_PRODUCTS.cite(DSA + ":420-519, 550-563, 1355-1364", SCHEDULE, passes=(1, 2)),
        INDEXER_SCORES.cite(DSA + ":420-519, 550-563, 1355-1364", SCHEDULE, NO_SUM, HALF),
        HEAD_PRODUCT.cite(DSA + ":1432-1438", PADDED),
        FURTHER_LAYERS.cite(DSA + ":1098-1106, 1349-1364, 1421-1438", count=predicted_sparse),
        FURTHER_INDEXERS.cite(DSA + ":1098-1106, 1355-1364"),
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
        FURTHER_LAYERS.cite(
            BRIDGE + ":1034-1040, 1557-1569", count=lambda f: 0 if f["model_type"] == GLM5 else predicted_half(f)
        ),
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
