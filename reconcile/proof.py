"""Both models of a pair with the same weights on one input, at the pair's own size.

``main`` prints one line of JSON: ``error`` (largest difference relative to the largest output), ``spread``, ``weights``
(parameters of the PyTorch side). Needs both frameworks, so it runs in a process of its own.
"""

from __future__ import annotations

import json
from typing import Any

from .adapters.tf_model import quiet
from .model_zoo import pair as pairs


def proof(model: str) -> dict[str, Any]:
    """Compare the outputs of a pair's two models. Raises whatever building and running them raises."""
    quiet()
    from .model_zoo.parity import Both

    module = pairs.load_pair(pairs.pair_path(model))
    both = Both(module, pairs.Params(pairs.resolve(module.PAIR, {})))
    both.enliven()
    found = both.compare()
    weights = sum(parameter.numel() for parameter in both.torch_model.parameters())
    return {"error": float(f"{found.error:.1g}"), "spread": float(f"{found.spread:.1g}"), "weights": weights}


def main(model: str) -> None:
    """What a process that is started for this runs."""
    print(json.dumps(proof(model)))
