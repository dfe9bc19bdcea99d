"""Every zoo pair computes the same on both sides, and a single other weight tensor is noticed; so are other gradients."""

from __future__ import annotations

import pytest

from reconcile.model_zoo.loading import zoo_names
from tests.zoo.choice import PROVEN, STEPPED, chosen
from tests.zoo.proofs import hold_gradients, prove

pytestmark = pytest.mark.frameworks

DIFFERENT = ("resnet50_v1_5",)
"""It says so itself: the two sides are other networks."""


@pytest.fixture(scope="module")
def proven():
    """What every test run proves, in one process."""
    requests = [("find_parity", model, {}, True) for model in PROVEN]
    requests += [("find_gradients", model) for model in STEPPED]
    found = prove(*requests)
    return {(kind, model): data for (kind, model, *_), data in zip(requests, found, strict=True)}


@pytest.mark.parametrize("model", chosen(zoo_names(), PROVEN))
def test_outputs_are_equal_and_every_weight_matters(request, model):
    if model in PROVEN:
        found = request.getfixturevalue("proven")["find_parity", model]
    else:
        (found,) = prove(("find_parity", model, {}, True))
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


@pytest.mark.parametrize("model", STEPPED)
def test_gradients_are_equal_here(proven, model):
    hold_gradients(proven["find_gradients", model])


@pytest.mark.heavy
@pytest.mark.parametrize("model", [name for name in zoo_names() if name not in (*STEPPED, *DIFFERENT)])
def test_gradients_are_equal(model):
    (found,) = prove(("find_gradients", model))
    hold_gradients(found)


def test_every_weight_is_held(proven):
    """Elements compared: all weights (the words of the input are integers)."""
    units, vocabulary = 12, 30
    layer = 4 * units * (units + units + 1)
    found = proven["find_gradients", "lstm_lm"]
    assert found["elements"] == vocabulary * units + 2 * layer + vocabulary * (units + 1)
    assert found["alone"] == [f"lstm.bias_hh_l{i} (PyTorch): {4 * units} of {4 * units}" for i in (0, 1)]


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
    *found, post = prove(
        *(("find_parity", str(path), {"second": str(second)}, False) for second in errors),
        ("find_parity", "gru_demo", {"batch_first": "false"}, False),
    )
    assert [each["equal"][0] for each in found] == pytest.approx(list(errors.values()), abs=1e-5)
    assert post["equal"][0] > 1e-2


@pytest.mark.slow
def test_the_posts_layout_counts_the_same(collecting):
    post, ours = collecting("gru_demo", batch_first=False), collecting("gru_demo")
    for a, b in zip(post.ledgers, ours.ledgers, strict=True):
        assert (a.counter, a.total) == (b.counter, b.total)
