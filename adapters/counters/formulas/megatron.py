"""Formulas of Megatron-LM, with and without multi-token prediction and sparse attention, and of Megatron-Bridge.

Standard library only. Megatron-LM reads on its command line whether a model has these two: `megatron` assumes neither.
"""

from __future__ import annotations

from .papers import SIZES
from .refusals import no_linear, windowless
from .sparse_attention import (
    ABSORBED,
    CHOSEN,
    CHOSEN_HALF,
    INDEX,
    INDEXER_PRODUCTS,
    INDEXER_SCORES,
    NO_SUM,
    SCHEDULE,
    bridge_predicted,
    bridge_refuses,
    dsa_refuses,
    mtp_refuses,
    predicted_half,
    predicted_index,
    predicted_sparse,
    score_gradients,
    teacher,
)
from .terms import (
    ATTENTION_PRODUCTS,
    DIFFERS,
    EXACT_HALF,
    HALF,
    HEAD_PRODUCT,
    LAYER,
    LAYER_PRODUCTS,
    NORMS,
    ONE_SEQUENCE,
    PADDED,
    PREDICTED,
    WHOLE,
    WINDOW,
    Facts,
    Formula,
    Term,
    latent_norms,
)

MAIN = "NVIDIA/Megatron-LM@d98e8a64ddf3 megatron/training/training.py"
DSA = "NVIDIA/Megatron-LM@9bc555a4b4c1 megatron/training/training.py"
BRIDGE = "NVIDIA-NeMo/Megatron-Bridge@067f987df03b src/megatron/bridge/training/utils/flop_utils.py"
LATENT_NORMS = Term(LAYER, latent_norms, "(r_q + r_kv) B T", "", cause=NORMS, name="norms")
FURTHER_LAYERS = Term(
    WHOLE, predicted_half, "a layer, 2 h^2 + 3 h and h V for each of nextn further tokens", "", cause=PREDICTED,
    name="multi-token prediction",
)  # fmt: skip
FURTHER_INDEXERS = Term(
    WHOLE, predicted_index, INDEX + " for each of nextn further tokens", "", passes=(1, 2), cause=PREDICTED, name="its indexers"
)  # fmt: skip
SCORE_GRADIENTS = Term(
    LAYER, score_gradients, "B hi (di + 1) pairs of the keys chosen", "", passes=(0, 2), cause=DIFFERS, name="score gradients"
)  # fmt: skip
TEACHER = Term(
    LAYER, teacher, "B n (r_kv + d_rope) pairs of the keys chosen", "", passes=(0, 1), cause=DIFFERS, name="teacher"
)  # fmt: skip


def exceeds_window(facts: Facts) -> bool:
    """Whether a sequence is longer than the layer's window."""
    return bool(facts.get("window")) and int(facts["window"]) < int(facts["T"])


BRIDGE_SEQUENCE = ONE_SEQUENCE._replace(
    facts=lambda f: ONE_SEQUENCE.facts(f) if exceeds_window(f) else {},
    formula="the whole sequence, where it is longer than a layer's window",
)
BRIDGE_HALF = HALF._replace(
    facts=lambda f: (EXACT_HALF if exceeds_window(f) or f.get("topk") else HALF).facts(f),
    formula="attention on T^2 / 2 of the T^2 pairs; with a window of w < T, or w keys chosen, w (w + 1) / 2 + (T - w) w",
)


def of_all_keys(predicts: bool) -> tuple:
    """The terms of a model without sparse attention, with that of multi-token prediction if it ``predicts`` further tokens."""
    further = FURTHER_LAYERS.cite(MAIN + ":1042-1048, 1288-1303")
    return (
        LAYER_PRODUCTS.cite(MAIN + ":1070, 1076-1162, 1262-1283"),
        ATTENTION_PRODUCTS.cite(MAIN + ":1164-1170, 1309", HALF),
        LATENT_NORMS.cite(MAIN + ":1076-1137"),
        HEAD_PRODUCT.cite(MAIN + ":1302-1303", PADDED),
    ) + ((further,) if predicts else ())


MEGATRON: dict[str, Formula] = {
    "megatron": Formula(
        "Megatron-LM, num_floating_point_operations: the products of a layer, attention on T^2 / 2 pairs, and the head",
        of_all_keys(False),
        reads=SIZES,
        packed=True,
        refuses=no_linear,
    ),
    "megatron-mtp": Formula(
        "Megatron-LM with --mtp-num-layers: the same, and a layer, a product that joins it and logits for each further token",
        of_all_keys(True),
        reads=SIZES,
        packed=True,
        refuses=lambda facts: no_linear(facts) or mtp_refuses(facts),
    ),
    "megatron-dsa": Formula(
        "Megatron-LM#6148, sparse attention that trains its indexer: the keys chosen, all scores, and multi-token prediction",
        (
            LAYER_PRODUCTS.cite(DSA + ":1159-1181, 1391-1418"),
            ATTENTION_PRODUCTS.cite(DSA + ":390-417, 522-547, 1349-1351", CHOSEN, CHOSEN_HALF),
            LATENT_NORMS.cite(DSA + ":1159-1181"),
            INDEXER_PRODUCTS.cite(DSA + ":420-519, 550-563, 1355-1364", SCHEDULE, passes=(1, 2)),
            INDEXER_SCORES.cite(DSA + ":420-519, 550-563, 1355-1364", SCHEDULE, NO_SUM, HALF),
            HEAD_PRODUCT.cite(DSA + ":1432-1438", PADDED),
            FURTHER_LAYERS.cite(DSA + ":1098-1106, 1349-1364, 1421-1438", count=predicted_sparse),
            FURTHER_INDEXERS.cite(DSA + ":1098-1106, 1355-1364"),
        ),
        reads=SIZES,
        packed=True,
        refuses=dsa_refuses,
    ),
    "megatron-bridge": Formula(
        "Megatron-Bridge, num_floating_point_operations: that of Megatron-LM, with windows and sparse attention of its own",
        (
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
            FURTHER_LAYERS.cite(BRIDGE + ":1034-1040, 1557-1569", count=bridge_predicted),
        ),
        forward=False,
        reads=SIZES,
        packed=True,
        refuses=lambda facts: windowless(facts) or no_linear(facts) or bridge_refuses(facts),
    ),
}
