"""Both models of a pair with the same weights on one input, at the pair's own size.

``main`` prints one line of JSON: ``error`` (largest difference relative to the largest output), whether the output
``varies``, ``weights`` (parameters of the PyTorch side) and the settings it is ``at``. It needs both frameworks, so it runs
in a process of its own.
"""

from __future__ import annotations

import json
from typing import Any

from ..adapters.tensorflow.model import quiet
from ..model_zoo import pair as pairs

VARIES, ROUNDING = 1e-3, 1e-9
"""Largest minus smallest output below which equality says nothing (a constant is equal whatever the weights); and a
difference below what rounding makes of a sum of products: the output is saturated, or has nothing to round."""


def proof(model: str) -> dict[str, Any]:
    """Compare the outputs of a pair's two models; raises whatever building and running them raises.

    Where the output of the model at its own size does not vary or is saturated, which shows as no difference at all, at
    its settings for proofs: ``at`` says which.
    """
    quiet()
    from ..model_zoo.parity import Both

    pair = pairs.load_pair(pairs.pair_path(model))

    def compared(overrides: dict[str, str]) -> tuple[Both, Any]:
        both = Both(pair, pairs.Params(pairs.resolve(pair, overrides)))
        both.enliven()
        return both, both.compare()

    both, found = compared({})
    weights = sum(parameter.numel() for parameter in both.torch_model.parameters())
    at: dict[str, str] = {}
    if (found.spread < VARIES or found.error < ROUNDING) and pair.proof:
        at = dict(pair.proof)
        _, found = compared(at)
    return {"error": float(f"{found.error:.1g}"), "varies": found.spread >= VARIES, "weights": weights, "at": at}


def main(model: str) -> None:
    """What a process that is started for this runs."""
    print(json.dumps(proof(model)))
