"""Formulas of scaling-law papers (Kaplan, PaLM, Chinchilla), nanoGPT and torchtitan, and those of 6 N (also Trainer, AWS)."""

from __future__ import annotations

from . import terms
from .terms import Assumption, Refusal, Term, formula

NANOGPT = "karpathy/nanoGPT@3adf61e154c3 model.py"
NOTEBOOK = "karpathy/nanoGPT@3adf61e154c3 scaling_laws.ipynb cell:10"
TRAINER = "huggingface/transformers 5.23.0 src/transformers/trainer.py"
TITAN = "pytorch/torchtitan@b5bcd76c66d0 torchtitan/models/utils.py"
TITAN_HF = "pytorch/torchtitan@b5bcd76c66d0 torchtitan/experiments/transformers_modeling_backend/model.py"
MAIN = "pytorch/torchtitan@01c01c88fe7a torchtitan/models/utils.py"
AWS = "AWS Fine-Tuning FLOPs Meter sagemaker_code/flops_meter.py:40-66"
LAWS = "arXiv:2001.08361 section 2.1"
KAPLAN = "arXiv:2001.08361 table 1"
PALM = "arXiv:2204.02311 appendix B"
CHINCHILLA = "arXiv:2203.15556 appendix F"

ONE_PRODUCT = Assumption(
    "one product", lambda f: {"dqk": f["d"], "dv": 0}, "head_dim once, for one of attention's two products"
)
ELEMENTS = Assumption(
    "elements",
    lambda f: {"tokens": f.get("elements") or f["tokens"]},
    "the elements of the main input, such as an image's pixels, for its tokens",
    "tokens-assumed",
)
NO_MAIN_INPUT: Refusal = (
    lambda f: not f.get("elements"),
    "its source counts the elements of input_ids, or of what a model of transformers names; this one takes neither",
)
"""The Trainer gives 0 for a batch without the main input that its model names."""


def _chinchilla(source: str) -> tuple[Term, ...]:
    return (
        terms.LAYER_PRODUCTS.cite(source, terms.ONE_WIDTH, terms.ALL_KEYS, terms.TWO),
        terms.ATTENTION_PRODUCTS.cite(source, terms.ONE_WIDTH),
        terms.SOFTMAX.cite(source),
    )


PAPERS = {
    "6n": formula(
        "6 N: every parameter once per token, forward and twice backward",
        terms.EVERY_PARAMETER.cite(LAWS, terms.ALL_EXPERTS),
        forward=True,
    ),
    "6n-nonembedding": formula(
        "6 N without the tables of nn.Embedding", terms.WITHOUT_TABLES.cite(LAWS, terms.ALL_EXPERTS), forward=True
    ),
    "6n-active": formula(
        "6 N with the active experts alone",
        terms.EVERY_PARAMETER.cite(LAWS, formula="numel B T; experts times a / E"),
        forward=True,
    ),
    "hf-trainer": formula(
        "Trainer of transformers, floating_point_ops: 6 N without the tables of nn.Embedding",
        terms.WITHOUT_TABLES.cite(TRAINER + ":4229-4233", terms.ALL_EXPERTS, ELEMENTS),
        refusals=[NO_MAIN_INPUT],
    ),
    "aws": formula(
        "AWS, Fine-Tuning FLOPs Meter: 4 N + 2 N of trainable parameters, for tokens that are no padding",
        terms.EVERY_PARAMETER.cite(AWS, terms.ALL_EXPERTS),
        frozen=2,
    ),
    "kaplan": formula(
        "Kaplan et al. 2020, table 1: 2 N + 2 L T q per token, N the matrices of the layers",
        terms.parameters(" of a matrix inside a layer", lambda f: not f["inside"] or len(f["shape"]) < 2).cite(KAPLAN),
        terms.ATTENTION_PRODUCTS.cite(KAPLAN, terms.HALF),
        forward=True,
        refusals=[terms.NO_LATENT],
    ),
    "palm": formula(
        "PaLM, appendix B: 6 N + 12 L n d T per token",
        terms.EVERY_PARAMETER.cite(PALM, terms.ALL_EXPERTS),
        terms.ATTENTION_PRODUCTS.cite(PALM),
        refusals=[terms.NO_LATENT],
    ),
    "chinchilla": formula(
        "Chinchilla, appendix F as printed: three projections of h x h, two matrices, softmax, look-up and logits",
        *_chinchilla(CHINCHILLA),
        terms.LOOKUP_PRODUCT.cite(CHINCHILLA),
        terms.HEAD_PRODUCT.cite(CHINCHILLA),
        forward=True,
        refusals=terms.PLAIN_ONLY,
    ),
    "chinchilla-ipynb": formula(
        "Chinchilla as in nanoGPT's notebook: without the look-up and without the logits",
        *_chinchilla(NOTEBOOK),
        forward=True,
        refusals=terms.PLAIN_ONLY,
    ),
    "nanogpt": formula(
        "nanoGPT, estimate_mfu: 6 N + 12 L n (h // n) T per token, N without the position table",
        terms.parameters("; 0 for the position table", lambda f: f["embedding"] and f["positions"]).cite(
            NANOGPT + ":150-160, 293-297", terms.ALL_EXPERTS
        ),
        terms.ATTENTION_PRODUCTS.cite(NANOGPT + ":293-297", terms.ONE_WIDTH),
    ),
    "torchtitan": formula(
        "torchtitan: 6 (N - embeddings unless tied, active experts) + 6 L n (d_qk + d_v) T per token",
        terms.parameters(
            "; 0 for every table if none is tied; experts times a / E", lambda f: f["embedding"] and not f["tied"]
        ).cite(TITAN + ":434-456, 511-533"),
        terms.ATTENTION_PRODUCTS.cite(TITAN + ":443-456, 534-543", count=terms.count_full_attention),
    ),
    "torchtitan-main": formula(
        "torchtitan after 0.3.0: 6 (N - tables but the head's, active experts) + 6 L n (d_qk + d_v) min(window, T) per token",
        terms.parameters("; 0 for an untied table; experts times a / E", terms.is_untied).cite(MAIN + ":547-581"),
        terms.ATTENTION_PRODUCTS.cite(MAIN + ":490-493", terms.WINDOW, count=terms.count_full_attention),
        Term(
            terms.LAYER,
            lambda f: 3 * terms.count_state(f),
            "3 d_k d_v n_v B T of linear attention",
            MAIN + ":496-531",
            name="recurrence",
        ),
    ),
    "torchtitan-hf": formula(
        "torchtitan for models of transformers: 6 N, of all experts, + 6 L n d T per token",
        terms.EVERY_PARAMETER.cite(TITAN_HF + ":517-526", terms.ALL_EXPERTS),
        terms.ATTENTION_PRODUCTS.cite(TITAN_HF + ":493-526", ONE_PRODUCT),
    ),
}
"""Each formula by its name."""
