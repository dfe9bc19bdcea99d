"""Notes of a log's ledger: layers where oneDNN used another algorithm (such as Winograd) or padded tensors to whole blocks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ....core.records import Sighting
from . import PRODUCTS
from .log_lines import Product

PLAIN = ("", "convolution_direct", "deconvolution_direct", "vanilla_rnn", "vanilla_lstm", "vanilla_gru", "lbr_gru")
"""Algorithms that multiply what the sizes say."""
OTHER_ALGORITHM = (
    "oneDNN computes %s by %s, which makes other products than the sizes in its line say: the sizes are counted"
)
IN_BLOCKS = "oneDNN pads tensors of %s to whole blocks (%s): products with the padding are not in the sizes of its line"
SHOWN = 3


def notes_of(sightings: Sequence[Sighting]) -> tuple[str, ...]:
    """What the lines say of how products are computed, with the layers: another algorithm, and blocks with padding."""
    otherwise: dict[str, list[str]] = {}
    padded: dict[str, list[str]] = {}
    for op in (sighting.op for sighting in sightings):
        layer = op.layer or "the root"
        for product in (Product(*line) for line in op.attrs.get(PRODUCTS, ())):
            if product.algorithm not in PLAIN:
                otherwise.setdefault(product.algorithm, []).append(layer)
            if product.padded:
                padded.setdefault(layer, []).append(product.padded)
    notes = [OTHER_ALGORITHM % (_few(layers), name) for name, layers in otherwise.items()]
    if padded:
        notes.append(IN_BLOCKS % (_few(padded), _few([text for texts in padded.values() for text in texts])))
    return tuple(notes)


def _few(names: Iterable[str]) -> str:
    """The first three, and how many more."""
    found = list(dict.fromkeys(names))
    more = len(found) - SHOWN
    return ", ".join(found[:SHOWN]) + (f" and {more} more" if more > 0 else "")
