"""Every pair's two models have the same gradients, with respect to inputs and weights, of the loss of a training step.

Those of a few pairs are compared in test_parity.py.
"""

from __future__ import annotations

import pytest

from reconcile.model_zoo.loading import zoo_names
from reconcile.products.gallery.run import APART
from tests.zoo.choice import STEPPED
from tests.zoo.proofs import hold_gradients, prove

pytestmark = [pytest.mark.frameworks, pytest.mark.heavy]

DIFFERENT = ("resnet50_v1_5",)
"""It says so itself: the two sides are other networks."""


@pytest.mark.parametrize("model", [n for n in zoo_names() if n not in (*STEPPED, *DIFFERENT)])
def test_gradients_are_equal(model):
    (found,) = prove(("find_gradients", model, ""))
    hold_gradients(found)


def test_two_other_networks_have_other_gradients():
    (data,) = prove(*(("find_gradients", model, "") for model in DIFFERENT))
    assert data["error"] > 1e-2


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
def test_it_can_fail(what):
    (data,) = prove(("find_gradients", "gru_demo", BREAKS[what]))
    assert data["error"] > APART
    assert bool(data["otherwise"]) == (what == "a weight scaled on its way")
