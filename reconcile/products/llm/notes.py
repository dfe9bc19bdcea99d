"""Notes of the page of ``reconcile llm``: what is special about the model or its step (``notes``), in sentences.

``per_token`` and ``ratio`` write the numbers of the page.
"""

from __future__ import annotations

from fractions import Fraction

from ...core.number_format import multiple, number
from .comparison import Comparison

ELEMENTS = "hf-trainer"
"""The formula whose source takes the elements of the main input for tokens."""


def per_token(found: Comparison, flops: int) -> str:
    """``57,912,852,480`` of a token, or of an image; with two decimals if the step does not divide."""
    whole = Fraction(flops, found.units)
    return number(int(whole)) if whole.denominator == 1 else f"{float(whole):,.2f}"


def ratio(found: Comparison, flops: int) -> str:
    """``1.0545``: the ratio to the work that ran once. A ratio that only rounds to 1 adds the difference in FLOPs."""
    return multiple(flops, found.ran_once)


def recurrence_note(found: Comparison) -> list[str]:
    """What of the work is a recurrence, as the model's own code computes it, in a sentence."""
    if not found.recurrent:
        return []
    return [
        f"Of what ran, {per_token(found, found.recurrent)} FLOPs per {found.unit} ({ratio(found, found.recurrent)}) are products "
        "that read no weight and are not attention's: a recurrence (linear attention, a state space model), as the model's own "
        "code computes it here. A fused kernel of the same layer may multiply others."
    ]


def packing_note(found: Comparison) -> list[str]:
    """How packed documents were run, in a sentence."""
    if not found.lengths:
        return []
    return [
        f"Documents of {found.documents} tokens: what ran is a call for each length, with attention inside a document alone, as "
        f"in kernels that are given the lengths. A kernel that masks other documents multiplies all {number(found.seq)} x "
        f"{number(found.seq)} pairs of a sequence: leave --lengths out to count these."
    ]


def encoder_decoder_note(found: Comparison) -> list[str]:
    """What a token is of an encoder with a decoder, in a sentence."""
    if not found.encoder_decoder:
        return []
    return [
        f"The encoder and the decoder have {number(found.seq)} tokens each: a token is one of the encoder with one of the "
        "decoder. What ran has the decoder's attention on the encoder's tokens."
    ]


def image_note(found: Comparison) -> list[str]:
    """What a formula's token is of a model of images, or where the images of a language model stand, in a sentence."""
    if found.images_only:
        counted = any(quote.name == ELEMENTS and quote.step is not None for quote in found.quotes)
        but = f"; {ELEMENTS} takes the elements of its pixels, as its source does" if counted else ""
        return [
            f"A formula is given the {number(found.seq)} tokens that an image has in the layers for its T, and nothing "
            f"else{but}. A weight whose product ran for others (a head, a class, a moment, a text) has the cause tokens-assumed."
        ]
    if not found.images:
        return []
    return [
        f"The images of a sequence have {number(found.image_tokens)} of its {number(found.seq)} tokens, as many as the model "
        "makes of them. What ran has the encoder that makes them; a formula of layers has no term for it, and one of "
        "parameters multiplies its weights by the tokens of the sequence."
    ]


def capacity_note(found: Comparison) -> list[str]:
    """How experts with a capacity shared the tokens, in a sentence."""
    if not found.capacity:
        return []
    left = (
        f"so that {number(found.dropped)} of {number(found.seq)} meet none"
        if found.dropped
        else "which is enough for all"
    )
    return [
        "Which expert a token chooses depends on values, and meta has none: here the experts share the tokens of a sequence "
        f"evenly. Each takes {number(found.capacity)} at most, {left}. An uneven choice can leave more tokens without an expert."
    ]


def prediction_layers_note(found: Comparison) -> list[str]:
    """That the model lacks the layers of its configuration that predict further tokens, in a sentence."""
    if not found.configured_mtp_layers:
        return []
    layers = f"{found.configured_mtp_layers} layers" if found.configured_mtp_layers > 1 else "a layer"
    return [
        f"The configuration states {layers} of multi-token prediction. The model that ran has none, so neither what ran nor MFU "
        "has its work; a formula that counts it has the cause prediction-layers-counted."
    ]


def sparse_attention_note(found: Comparison) -> list[str]:
    """How sparse attention ran, in a sentence."""
    if not found.topk:
        return []
    told = [f"The indexer of sparse attention takes {per_token(found, found.indexer)} FLOPs per {found.unit}."]
    if found.attention and found.with_chosen_keys != found.ran_once:
        told.append(
            f"Attention on all keys ran, {per_token(found, found.attention)}, with a mask for those that it did not choose. A "
            f"kernel that reads {number(found.topk)} keys for a token at most makes that "
            f"{per_token(found, found.attention - found.ran_once + found.with_chosen_keys)}, and "
            f"{per_token(found, found.with_chosen_keys)} of the whole step: say which of both your MFU is."
        )
    return [" ".join(told)]


NOTES = (
    packing_note, recurrence_note, encoder_decoder_note, image_note, capacity_note, prediction_layers_note,
    sparse_attention_note,
)  # fmt: skip


def notes(found: Comparison) -> list[str]:
    """What a reader of this model's numbers has to know, each in a sentence."""
    return [line for note in NOTES for line in note(found)]
