"""Proofs of pairs that need both frameworks, in one process that has them: ``python -m tests.zoo.proofs`` with requests as JSON.

The tests' own process stays light, and free of the frameworks' warnings.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from reconcile.model_zoo import loading
from reconcile.model_zoo import pair as pairs
from reconcile.products.gallery.run import APART
from tests.programs import output_of

ROOT = Path(__file__).parents[2]

SINGLE = {"family_pooling", "moe", "whisper"}
"""TensorFlow has no 3-D pooling in 64 bits on the CPU; the others' own layers hold constants of 32 bits."""

ALONE = {"lstm_lm": ".bias_hh_l", "family_recurrent": ".bias_hh"}
"""PyTorch's second bias of a recurrent layer, where Keras has one: it stays 0, and nothing in TensorFlow is its gradient."""


def prove(*requests: tuple[Any, ...]) -> list[dict[str, Any]]:
    """What each request finds, one after another in one process: the name of a function below, and its arguments."""
    printed = output_of("-m", "tests.zoo.proofs", json.dumps(requests), TF_CPP_MIN_LOG_LEVEL="3")
    return [json.loads(line) for line in printed.splitlines()[-len(requests) :]]


def find_parity(model: str, overrides: dict[str, str], weighted: bool) -> dict[str, Any]:
    """How far the outputs are apart, and with each weight tensor changed in TensorFlow alone."""
    import numpy
    import tensorflow

    from reconcile.model_zoo.parity import Both

    tensorflow.keras.backend.clear_session()  # layers are numbered as in a process of their own
    pair = loading.load_pair(loading.pair_path(model))
    both = Both(pair, pairs.Params(loading.resolve(pair, dict(pair.proof, **overrides))))
    both.enliven()
    declared = pair.not_equivalent
    weights = both.tf_model.weights if weighted and not declared else []
    both.tf_model = tensorflow.function(both.tf_model)
    found: dict[str, Any] = {"equal": both.compare(), "changed": {}, "declared": declared}
    found["hidden"] = pair.without_effect
    found["weighted"] = any(True for _ in both.torch_model.parameters())
    theirs = both.theirs()  # the PyTorch side stays as it is
    for index, weight in enumerate(weights):
        held = weight.numpy()
        noise = numpy.random.RandomState(index).standard_normal(held.shape)
        name = getattr(weight, "path", weight.name)
        weight.assign(held + 0.5 * (abs(noise) if "variance" in name else noise))
        found["changed"][name] = both.compare(theirs).error
        weight.assign(held)
    return found


def find_gradients(model: str) -> dict[str, Any]:
    """Both sides' gradients."""
    from tests.zoo import gradient_parity

    module = loading.load_pair(loading.pair_path(model))
    found = gradient_parity.prove(module, module.proof)
    return {
        "model": model, "error": found.error, "bits": found.bits, "why": found.why, "alone": found.alone,
        "otherwise": found.otherwise, "vanishing": found.vanishing, "loss": found.loss,
        "names": [g.name for g in found.found], "elements": sum(g.elements for g in found.found),
        "worst": max(found.found, key=lambda g: g.apart / g.largest).name,
    }  # fmt: skip


def hold_gradients(data: dict[str, Any]) -> None:
    """What is said of one pair's."""
    name = data["model"]
    assert data["error"] < APART, data
    assert (data["bits"] == 32) == (name in SINGLE), data["why"]
    assert data["bits"] == 32 or data["error"] < 1e-6
    assert not data["otherwise"]  # what is copied is copied as it is: gradients are held element by element
    assert [each for each in data["alone"] if ALONE.get(name, "nothing") not in each] == []
    assert bool(data["alone"]) == (name in ALONE)
    # No gradient is nothing but that of a shift that a norm or a softmax takes away again.
    assert [each for each in data["vanishing"] if not each.endswith(("bias", "beta"))] == []
    assert data["names"]
    assert data["loss"][0] > 0


def main(requests: str) -> None:
    from reconcile.adapters.tensorflow.model import quiet

    quiet()
    for kind, *arguments in json.loads(requests):
        print(json.dumps(globals()[kind](*arguments)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
