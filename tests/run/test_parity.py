"""Every zoo pair computes the same on both sides, and a single other weight tensor is noticed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from reconcile.model_zoo.pair import zoo_names
from tests.zoo.choice import PROVEN, chosen

pytestmark = pytest.mark.frameworks

# Both frameworks in one process, and neither in ours: the tests' own process stays light and free of their warnings.
SCRIPT = """
import json, os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy, tensorflow
from reconcile.model_zoo import pair as pairs
from reconcile.model_zoo.parity import Both

pair = pairs.load_pair(pairs.pair_path(sys.argv[1]))
overrides = dict(pair.proof, **json.loads(sys.argv[2]))
both = Both(pair, pairs.Params(pairs.resolve(pair, overrides)))
both.enliven()
declared = pair.not_equivalent
weights = both.tf_model.weights if sys.argv[3] == "weights" and not declared else []
both.tf_model = tensorflow.function(both.tf_model)
found = {"equal": both.compare(), "changed": {}, "declared": declared}
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
print(json.dumps(found))
"""


def _parity(model, overrides=None, weights=True):
    command = [sys.executable, "-c", SCRIPT, model, json.dumps(overrides or {}), "weights" if weights else ""]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("model", chosen(zoo_names(), PROVEN))
def test_outputs_are_equal_and_every_weight_matters(model):
    found = _parity(model)
    error, spread = found["equal"]
    if found["declared"]:  # and it is so: a declaration that no longer holds fails
        assert error > 1e-2
        return
    assert error < 1e-4
    assert spread > 1e-3  # a constant output would be equal whatever the weights
    assert bool(found["changed"]) == found["weighted"]
    for name, changed in found["changed"].items():
        if name.endswith(tuple(found["hidden"])):  # and it is so: an entry that no longer holds fails
            assert changed < 1e-4, f"{name} is said to have no effect"
        else:
            assert changed > 1e-4, f"{name} was changed in TensorFlow alone and nobody noticed"
    for end in found["hidden"]:
        assert any(name.endswith(end) for name in found["changed"])


TWO_OUTPUTS = """
from reconcile.model_zoo.pair import Input, Pair

PAIR = Pair("two_outputs", {"second": 2.0}, ())


def inputs(p):
    return [Input("x", (2, 3))]


def build_tf(p):
    import tensorflow as tf

    x = tf.keras.Input(batch_shape=(2, 3))
    return tf.keras.Model(x, [1000.0 * x, 2.0 * x])


def build_torch(p):
    import torch

    class Two(torch.nn.Module):
        def forward(self, x):
            return 1000.0 * x, p.second * x

    return Two()


def copy_weights(tf_model, torch_model):
    pass
"""


@pytest.mark.parametrize(("second", "error"), [(2.0, 0.0), (2.002, 0.001), (0.0, 1.0)])
def test_an_output_is_held_against_its_own_largest_value(tmp_path, second, error):
    """Beside an output five hundred times as large, it would not be noticed."""
    path = tmp_path / "two_outputs.py"
    path.write_text(TWO_OUTPUTS)
    assert _parity(str(path), {"second": str(second)})["equal"][0] == pytest.approx(error, abs=1e-5)


def test_the_posts_layout_is_another_computation():
    """nn.GRU without batch_first reads 97 steps as one step of a batch of 97: same counts, other outputs."""
    assert _parity("gru_demo", {"batch_first": "false"}, weights=False)["equal"][0] > 1e-2


def test_the_posts_layout_counts_the_same(collecting):
    post, ours = collecting("gru_demo", batch_first=False), collecting("gru_demo")
    for a, b in zip(post.ledgers, ours.ledgers, strict=True):
        assert (a.counter, a.total) == (b.counter, b.total)
