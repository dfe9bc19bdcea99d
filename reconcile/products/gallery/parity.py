"""Checks that both models of a pair compute the same: same weights, one input, at the pair's own size.

run.py calls ``proof`` in a separate process, as it needs both frameworks.
"""

from __future__ import annotations

from typing import Any

from ...adapters.tensorflow.model import quiet
from ...model_zoo import loading
from ...model_zoo import pair as pairs

VARIES, ROUNDING = 1e-3, 1e-9
"""Two limits. If the largest minus the smallest output is below VARIES, equality says nothing: a constant is equal for any
weights. A difference below ROUNDING is smaller than rounding errors of a sum of products: the output is saturated or exact."""


def proof(model: str) -> dict[str, Any]:
    """Compare the outputs of a pair's two models: ``error`` (largest difference relative to the largest output), whether the
    output ``varies``, and ``weights`` (parameters of the PyTorch side). Raises the errors of building and running them.

    If the output at the pair's own size does not vary or is saturated (no difference at all), the models are compared at
    the pair's settings for proofs; ``at`` holds these.
    """
    quiet()
    from ...model_zoo.parity import Both

    pair = loading.load_pair(loading.pair_path(model))

    def compare_pair(overrides: dict[str, str]) -> tuple[Both, Any]:
        both = Both(pair, pairs.Params(loading.resolve(pair, overrides)))
        both.enliven()
        return both, both.compare()

    both, comparison = compare_pair({})
    weights = sum(parameter.numel() for parameter in both.torch_model.parameters())
    at: dict[str, str] = {}
    if (comparison.spread < VARIES or comparison.error < ROUNDING) and pair.proof:
        at = dict(pair.proof)
        _, comparison = compare_pair(at)
    return {
        "error": float(f"{comparison.error:.1g}"),
        "varies": comparison.spread >= VARIES,
        "weights": weights,
        "at": at,
    }
