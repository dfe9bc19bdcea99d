"""Formulas of scaling-law papers (Kaplan, PaLM, Chinchilla), nanoGPT and torchtitan, and those of 6 N (also Trainer, AWS)."""

from __future__ import annotations

from .refusals import no_latent, plain_only
from .terms import (
    ALL_EXPERTS,
    ALL_KEYS,
    ATTENTION_PRODUCTS,
    DIFFERS,
    EVERY,
    EVERY_PARAMETER,
    HALF,
    HEAD_PRODUCT,
    LAYER,
    LAYER_PRODUCTS,
    LOGITS,
    LOOKUP,
    ONE_WIDTH,
    PARAMETER,
    TWO,
    WHOLE,
    WINDOW,
    Assumption,
    Facts,
    Formula,
    Term,
    count_full_attention,
    every,
    lookup,
    products_only,
    softmax,
    without_embeddings,
    without_positions,
    without_tables,
    without_untied_tables,
)

NANOGPT = "karpathy/nanoGPT@3adf61e154c3 model.py"
NOTEBOOK = "karpathy/nanoGPT@3adf61e154c3 scaling_laws.ipynb cell:10"
TRAINER = "huggingface/transformers 5.23.0 src/transformers/trainer.py"
TITAN = "pytorch/torchtitan@b5bcd76c66d0 torchtitan/models/utils.py"
TITAN_HF = "pytorch/torchtitan@b5bcd76c66d0 torchtitan/experiments/transformers_modeling_backend/model.py"
MAIN = "pytorch/torchtitan@01c01c88fe7a torchtitan/models/utils.py"
AWS = "AWS Fine-Tuning FLOPs Meter sagemaker_code/flops_meter.py:40-66"
KAPLAN = "arXiv:2001.08361 table 1"
PALM = "arXiv:2204.02311 appendix B"
CHINCHILLA = "arXiv:2203.15556 appendix F"

WIDTHS = ("L", "h", "n", "d")
SIZES = ("L", "h", "n", "d", "k", "f", "V", "m")
ONE_PRODUCT = Assumption(
    "one product", DIFFERS, lambda f: {"dqk": f["d"], "dv": 0}, "head_dim once, for one of attention's two products"
)
ELEMENTS = Assumption(
    "elements",
    "tokens-assumed",
    lambda f: {"tokens": f.get("elements") or f["tokens"]},
    "the elements of the main input, such as an image's pixels, for its tokens",
)
UNTIED_FORMULA = "numel B T; 0 for an untied table"


def _no_main_input(facts: Facts) -> str:
    """The Trainer gives 0 for a batch without the main input that its model names."""
    if facts.get("elements"):
        return ""
    return (
        "its source counts the elements of input_ids, or of what a model of transformers names; this one takes neither"
    )


def count_delta_rule(facts: Facts) -> int:
    """Three products for each element of the state of linear attention; none for another recurrence, such as Mamba's."""
    if not (facts.get("linear") and facts.get("lkd")):
        return 0
    return 3 * int(facts["lkd"]) * int(facts["lvd"]) * int(facts["lv"]) * int(facts["tokens"])


def _chinchilla(source: str) -> tuple:
    return (
        LAYER_PRODUCTS.cite(source, ONE_WIDTH, ALL_KEYS, TWO),
        ATTENTION_PRODUCTS.cite(source, ONE_WIDTH),
        Term(LAYER, softmax, "3 B n T^2", source, cause=DIFFERS, plain=True, name="softmax"),
    )


PAPERS: dict[str, Formula] = {
    "6n": Formula(
        "6 N: every parameter once per token, forward and twice backward",
        (EVERY_PARAMETER.cite("arXiv:2001.08361 section 2.1", ALL_EXPERTS),),
    ),
    "6n-nonembedding": Formula(
        "6 N without the tables of nn.Embedding",
        (
            Term(
                PARAMETER,
                without_tables,
                EVERY + "; 0 for a weight of nn.Embedding",
                "arXiv:2001.08361 section 2.1",
                (ALL_EXPERTS,),
            ),
        ),
    ),
    "6n-active": Formula(
        "6 N with the active experts alone",
        (Term(PARAMETER, every, EVERY + "; experts times a / E", "arXiv:2001.08361 section 2.1"),),
    ),
    "hf-trainer": Formula(
        "Trainer of transformers, floating_point_ops: 6 N without the tables of nn.Embedding",
        (
            Term(
                PARAMETER,
                without_tables,
                EVERY + "; 0 for a weight of nn.Embedding",
                TRAINER + ":4229-4233",
                (ALL_EXPERTS, ELEMENTS),
            ),
        ),
        forward=False,
        refuses=_no_main_input,
    ),
    "aws": Formula(
        "AWS, Fine-Tuning FLOPs Meter: 4 N + 2 N of trainable parameters, for tokens that are no padding",
        (EVERY_PARAMETER.cite(AWS, ALL_EXPERTS),),
        forward=False,
        frozen=2,
    ),
    "kaplan": Formula(
        "Kaplan et al. 2020, table 1: 2 N + 2 L T q per token, N the matrices of the layers",
        (
            Term(PARAMETER, products_only, "numel B T of a matrix inside a layer", KAPLAN),
            ATTENTION_PRODUCTS.cite(KAPLAN, HALF),
        ),
        reads=WIDTHS,
        refuses=no_latent,
    ),
    "palm": Formula(
        "PaLM, appendix B: 6 N + 12 L n d T per token",
        (EVERY_PARAMETER.cite(PALM, ALL_EXPERTS), ATTENTION_PRODUCTS.cite(PALM)),
        forward=False,
        reads=WIDTHS,
        refuses=no_latent,
    ),
    "chinchilla": Formula(
        "Chinchilla, appendix F as printed: three projections of h x h, two matrices, softmax, look-up and logits",
        _chinchilla(CHINCHILLA)
        + (
            Term(WHOLE, lookup, LOGITS, CHINCHILLA, cause=LOOKUP, name="lookup"),
            HEAD_PRODUCT.cite(CHINCHILLA),
        ),
        reads=SIZES,
        refuses=plain_only,
    ),
    "chinchilla-ipynb": Formula(
        "Chinchilla as in nanoGPT's notebook: without the look-up and without the logits",
        _chinchilla(NOTEBOOK),
        reads=SIZES,
        refuses=plain_only,
    ),
    "nanogpt": Formula(
        "nanoGPT, estimate_mfu: 6 N + 12 L n (h // n) T per token, N without the position table",
        (
            Term(
                PARAMETER,
                without_positions,
                EVERY + "; 0 for the position table",
                NANOGPT + ":150-160, 293-297",
                (ALL_EXPERTS,),
            ),
            ATTENTION_PRODUCTS.cite(NANOGPT + ":293-297", ONE_WIDTH),
        ),
        forward=False,
        reads=("L", "h", "n"),
    ),
    "torchtitan": Formula(
        "torchtitan: 6 (N - embeddings unless tied, active experts) + 6 L n (d_qk + d_v) T per token",
        (
            Term(
                PARAMETER,
                without_untied_tables,
                "numel B T; 0 for every table if none is tied; experts times a / E",
                TITAN + ":434-456, 511-533",
            ),
            ATTENTION_PRODUCTS.cite(TITAN + ":443-456, 534-543", count=count_full_attention),
        ),
        forward=False,
        reads=WIDTHS,
    ),
    "torchtitan-main": Formula(
        "torchtitan after 0.3.0: 6 (N - tables but the head's, active experts) + 6 L n (d_qk + d_v) min(window, T) per token",
        (
            Term(PARAMETER, without_embeddings, UNTIED_FORMULA + "; experts times a / E", MAIN + ":547-581"),
            ATTENTION_PRODUCTS.cite(MAIN + ":490-493", WINDOW, count=count_full_attention),
            Term(
                LAYER,
                count_delta_rule,
                "3 d_k d_v n_v B T of linear attention",
                MAIN + ":496-531",
                cause=DIFFERS,
                name="recurrence",
            ),
        ),
        forward=False,
        reads=WIDTHS,
    ),
    "torchtitan-hf": Formula(
        "torchtitan for models of transformers: 6 N, of all experts, + 6 L n d T per token",
        (
            EVERY_PARAMETER.cite(TITAN_HF + ":517-526", ALL_EXPERTS),
            ATTENTION_PRODUCTS.cite(TITAN_HF + ":493-526", ONE_PRODUCT),
        ),
        forward=False,
        reads=WIDTHS,
    ),
}
