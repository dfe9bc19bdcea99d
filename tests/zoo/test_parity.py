"""Every zoo pair computes the same on both sides, and a single other weight tensor is noticed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from reconcile.model_zoo.loading import zoo_names
from tests.zoo.choice import PROVEN, chosen

pytestmark = pytest.mark.frameworks

# Both frameworks in one process, and neither in ours: the tests' own process stays light and free of their warnings.
SCRIPT = """
import json, os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy, tensorflow
from reconcile.model_zoo import loading
from reconcile.model_zoo import pair as pairs
from reconcile.model_zoo.parity import Both


def parity(model, overrides, weighted):
    tensorflow.keras.backend.clear_session()  # layers are numbered as in a process of their own
    pair = loading.load_pair(loading.pair_path(model))
    overrides = dict(pair.proof, **overrides)
    both = Both(pair, pairs.Params(loading.resolve(pair, overrides)))
    both.enliven()
    declared = pair.not_equivalent
    weights = both.tf_model.weights if weighted and not declared else []
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
    return found


for request in json.loads(sys.argv[1]):
    print(json.dumps(parity(*request)), flush=True)
"""


def _parities(*requests):
    """What is found for each (model, settings, whether each weight is changed), one after another in one process."""
    command = [sys.executable, "-c", SCRIPT, json.dumps(requests)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()[-len(requests) :]]


@pytest.fixture(scope="module")
def proven():
    """The pairs that every test run proves."""
    return dict(zip(PROVEN, _parities(*((model, {}, True) for model in PROVEN)), strict=True))


@pytest.mark.parametrize("model", chosen(zoo_names(), PROVEN))
def test_outputs_are_equal_and_every_weight_matters(request, model):
    found = request.getfixturevalue("proven")[model] if model in PROVEN else _parities((model, {}, True))[0]
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
            assert changed > 1e-4, f"{name} was changed in TensorFlow alone, without a visible effect"
    for end in found["hidden"]:
        assert [name for name in found["changed"] if name.endswith(end)], (end, list(found["changed"]))


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


@pytest.mark.slow
def test_what_is_another_computation_is_noticed(tmp_path):
    """An output is compared with its own largest value: beside one five hundred times as large, an error would not be noticed.
    nn.GRU without batch_first reads 97 steps as one step of a batch of 97: same counts, other outputs."""
    path = tmp_path / "two_outputs.py"
    path.write_text(TWO_OUTPUTS)
    errors = {2.0: 0.0, 2.002: 0.001, 0.0: 1.0}
    *found, post = _parities(
        *((str(path), {"second": str(second)}, False) for second in errors),
        ("gru_demo", {"batch_first": "false"}, False),
    )
    assert [each["equal"][0] for each in found] == pytest.approx(list(errors.values()), abs=1e-5)
    assert post["equal"][0] > 1e-2


@pytest.mark.slow
def test_the_posts_layout_counts_the_same(collecting):
    post, ours = collecting("gru_demo", batch_first=False), collecting("gru_demo")
    for a, b in zip(post.ledgers, ours.ledgers, strict=True):
        assert (a.counter, a.total) == (b.counter, b.total)
