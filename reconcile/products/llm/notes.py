"""Notes of the page of ``reconcile llm``, in sentences: packing, recurrence, images, expert capacity, sparse attention."""

from __future__ import annotations

from fractions import Fraction

from ...core.text import multiple, number
from .comparison import Page

ELEMENTS = "hf-trainer"
"""The formula whose source takes the elements of the main input for tokens."""


def per_token(page: Page, flops: int) -> str:
    """``57,912,852,480`` of a token, or of an image; with two decimals if the step does not divide."""
    whole = Fraction(flops, page.units)
    return number(int(whole)) if whole.denominator == 1 else f"{float(whole):,.2f}"


def ratio(page: Page, flops: int) -> str:
    """``1.0545``: the ratio to the work that ran once. A ratio that only rounds to 1 adds the difference in FLOPs."""
    return multiple(flops, page.once)


def recurrence_note(page: Page) -> list[str]:
    """What of the work is a recurrence, as the model's own code computes it, in a sentence."""
    if not page.recurrent:
        return []
    return [
        f"Of what ran, {per_token(page, page.recurrent)} FLOPs per {page.unit} ({ratio(page, page.recurrent)}) are products that "
        "read no weight and are not attention's: a recurrence (linear attention, a state space model), as the model's own code "
        "computes it here. A fused kernel of the same layer may multiply others."
    ]


def packing_note(page: Page) -> list[str]:
    """How packed documents were run, in a sentence."""
    if not page.lengths:
        return []
    return [
        f"Documents of {page.documents} tokens: what ran is a call for each length, with attention inside a document alone, as "
        f"in kernels that are given the lengths. A kernel that masks other documents multiplies all {number(page.seq)} x "
        f"{number(page.seq)} pairs of a sequence: leave --lengths out to count these."
    ]


def both(page: Page) -> list[str]:
    """What a token is of an encoder with a decoder, in a sentence."""
    if not page.sides:
        return []
    return [
        f"The encoder and the decoder have {number(page.seq)} tokens each: a token is one of the encoder with one of the "
        "decoder. What ran has the decoder's attention on the encoder's tokens."
    ]


def image_note(page: Page) -> list[str]:
    """What a formula's token is of a model of images, or where the images of a language model stand, in a sentence."""
    if page.pictures:
        counted = any(quote.name == ELEMENTS and quote.step is not None for quote in page.quotes)
        but = f"; {ELEMENTS} takes the elements of its pixels, as its source does" if counted else ""
        return [
            f"A formula is given the {number(page.seq)} tokens that an image has in the layers for its T, and nothing else{but}. "
            "A weight whose product ran for others (a head, a class, a moment, a text) has the cause tokens-assumed."
        ]
    if not page.images:
        return []
    return [
        f"The images of a sequence have {number(page.taken)} of its {number(page.seq)} tokens, as many as the model makes of "
        "them. What ran has the encoder that makes them; a formula of layers has no term for it, and one of parameters "
        "multiplies its weights by the tokens of the sequence."
    ]


def capacity_note(page: Page) -> list[str]:
    """How experts with a capacity shared the tokens, in a sentence."""
    if not page.capacity:
        return []
    left = (
        f"so that {number(page.dropped)} of {number(page.seq)} meet none" if page.dropped else "which is enough for all"
    )
    return [
        "Which expert a token chooses depends on values, and meta has none: here the experts share the tokens of a sequence "
        f"evenly. Each takes {number(page.capacity)} at most, {left}. An uneven choice can leave more tokens without an expert."
    ]


def further(page: Page) -> list[str]:
    """That the model lacks the layers of its configuration that predict further tokens, in a sentence."""
    if not page.further:
        return []
    layers = f"{page.further} layers" if page.further > 1 else "a layer"
    return [
        f"The configuration states {layers} of multi-token prediction. The model that ran has none, so neither what ran nor MFU "
        "has its work; a formula that counts it has the cause prediction-layers-counted."
    ]


def sparse(page: Page) -> list[str]:
    """How sparse attention ran, in a sentence."""
    if not page.topk:
        return []
    told = [f"The indexer of sparse attention takes {per_token(page, page.indexer)} FLOPs per {page.unit}."]
    if page.attention and page.chosen != page.once:
        told.append(
            f"Attention on all keys ran, {per_token(page, page.attention)}, with a mask for those that it did not choose. A "
            f"kernel that reads {number(page.topk)} keys for a token at most makes that "
            f"{per_token(page, page.attention - page.once + page.chosen)}, and {per_token(page, page.chosen)} of the whole step: "
            "say which of both your MFU is."
        )
    return [" ".join(told)]


def notes(page: Page) -> list[str]:
    """What a reader of this model's numbers has to know, each in a sentence."""
    return [
        line
        for told in (packing_note, recurrence_note, both, image_note, capacity_note, further, sparse)
        for line in told(page)
    ]
