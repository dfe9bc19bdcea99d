"""Every pair's two models have the same gradients, with respect to inputs and weights, of the loss of a training step."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from reconcile.model_zoo.loading import zoo_names
from reconcile.products.gallery.run import APART

pytestmark = pytest.mark.frameworks

QUICK = ("conv1x1", "lstm_lm", "family_attention", "dcgan")
"""Together in one process: a product, recurrent layers, attention, batch norms in train mode."""

# Both frameworks in one process, and neither in ours.
SCRIPT = """
import json, os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
from reconcile.adapters.tensorflow.model import quiet
quiet()
from tests.zoo.gradient_parity import prove
from reconcile.model_zoo import loading

for model in sys.argv[2:]:
    module = loading.load_pair(loading.pair_path(model))
    if sys.argv[1]:
        exec(sys.argv[1])
    found = prove(module, module.proof)
    print(json.dumps({
        "model": model, "error": found.error, "bits": found.bits, "why": found.why, "alone": found.alone,
        "otherwise": found.otherwise, "vanishing": found.vanishing, "loss": found.loss,
        "names": [g.name for g in found.found], "elements": sum(g.elements for g in found.found),
        "worst": max(found.found, key=lambda g: g.apart / g.largest).name,
    }), flush=True)
"""


def proven(*models, broken=""):
    command = [sys.executable, "-c", SCRIPT, broken, *models]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return {data["model"]: data for data in map(json.loads, done.stdout.splitlines()[-len(models) :])}


SINGLE = {"family_pooling", "moe", "whisper"}
"""TensorFlow has no 3-D pooling in 64 bits on the CPU; the others' own layers hold constants of 32 bits."""

ALONE = {"lstm_lm": ".bias_hh_l", "family_recurrent": ".bias_hh"}
"""PyTorch's second bias of a recurrent layer, where Keras has one: it stays 0, and nothing in TensorFlow is its gradient."""


def hold(data):
    """What is said of one pair."""
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


@pytest.fixture(scope="module")
def quick():
    return proven(*QUICK)


@pytest.mark.parametrize("model", QUICK)
def test_gradients_are_equal_here(quick, model):
    hold(quick[model])


DIFFERENT = ("resnet50_v1_5",)
"""It says so itself: the two sides are other networks."""


@pytest.mark.heavy
@pytest.mark.parametrize("model", [n for n in zoo_names() if n not in (*QUICK, *DIFFERENT)])
def test_gradients_are_equal(model):
    hold(proven(model)[model])


@pytest.mark.heavy
def test_two_other_networks_have_other_gradients():
    (data,) = proven(*DIFFERENT).values()
    assert data["error"] > 1e-2


def test_every_weight_is_held(quick):
    """Elements compared: all weights (the words of the input are integers)."""
    units, vocabulary = 12, 30
    layer = 4 * units * (units + units + 1)
    assert quick["lstm_lm"]["elements"] == vocabulary * units + 2 * layer + vocabulary * (units + 1)
    assert quick["lstm_lm"]["alone"] == [f"lstm.bias_hh_l{i} (PyTorch): {4 * units} of {4 * units}" for i in (0, 1)]


BREAKS = {
    "another function": "build = module.build_torch\n"
    "def other(p):\n"
    "    net = build(p)\n"
    "    net.sigmoid = __import__('torch').nn.Tanh()\n"
    "    return net\n"
    "module.build_torch = other\n",
    "one gradient stopped": "build = module.build_torch\n"
    "def other(p):\n"
    "    net = build(p)\n"
    "    net.conv.bias.register_hook(lambda g: g * (1 + 1e-3))\n"
    "    return net\n"
    "module.build_torch = other\n",
    "a weight scaled on its way": "copy = module.copy_weights\n"
    "def other(a, b):\n"
    "    copy(a, b)\n"
    "    b.dense.bias.data *= 0.5\n"
    "module.copy_weights = other\n",
}


@pytest.mark.parametrize("what", BREAKS)
@pytest.mark.heavy
def test_it_can_fail(what):
    (data,) = proven("gru_demo", broken=BREAKS[what]).values()
    assert data["error"] > APART
    assert bool(data["otherwise"]) == (what == "a weight scaled on its way")
