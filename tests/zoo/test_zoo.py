"""Every pair of the zoo reconciles under every convention, at small settings, and its work has a closed form."""

from __future__ import annotations

from collections import Counter

import pytest

from reconcile.core.conventions import BUILT_IN, Conventions
from reconcile.engine.settle import settle
from reconcile.model_zoo import loading
from reconcile.model_zoo import pair as pairs
from tests.run.closing import follows_from_evidence, reconciles
from tests.work.held import HELD, fused
from tests.zoo import transformers
from tests.zoo.choice import chosen
from tests.zoo.convolutional import (
    conv,
    convnext_tiny,
    dcgan,
    densenet121,
    dlrm,
    efficientnet_b0,
    mobilenet_v2,
    mobilenet_v3_small,
    pointnet,
    resnet50,
    unet,
    vgg16,
)
from tests.zoo.family_forms import FAMILIES, family

pytestmark = pytest.mark.frameworks

MODELS = [name for name in loading.zoo_names() if name != "gru_demo"]  # tests/run has that one

FOLLOWING = [name for name in MODELS if "layers_for" in vars(loading.load_pair(loading.pair_path(name)))]


def small(name):
    """The pair's settings for proofs, or none where its own are small."""
    return dict(loading.load_pair(loading.pair_path(name)).proof)


@pytest.mark.parametrize("name", chosen(MODELS))
def test_reconciles_under_every_convention(collecting, name):
    reconciles(collecting(name, **small(name)))


def crnn(columns, scale, units, classes):
    """MACs of the seven convolutions on 32 rows, two levels and two directions of GRU, the dense layer."""
    total, width, rows = 0, 1, 32
    for filters, kernel, pool in (
        (64, 9, (2, 2)), (128, 9, (2, 2)), (256, 9, (1, 1)), (256, 9, (2, 1)), (512, 9, (1, 1)), (512, 9, (2, 1)),
    ):  # fmt: skip
        total, width = total + conv(rows, columns, filters // scale, kernel, width), filters // scale
        rows, columns = rows // pool[0], columns // pool[1]
    rows, columns = rows - 1, columns - 1
    total += conv(rows, columns, width, 4, width)
    total += columns * 2 * 3 * units * (rows * width + units + 2 * units + units)
    return total + columns * 2 * units * classes


@pytest.mark.parametrize("name", chosen(MODELS))
def test_every_amount_follows_from_its_evidence(collecting, name):
    """No cause is a remainder by another name."""
    follows_from_evidence(collecting(name, **small(name)))


@pytest.mark.parametrize("name", chosen(MODELS))
def test_every_fused_op_is_held_to_its_parts_somewhere(collecting, name):
    (trace,) = (t for t in collecting(name, **small(name)).traces if t.framework == "torch")
    assert fused(trace.ops) <= HELD


FORMS = {
    **transformers.FORMS,
    "conv1x1": (25, 25),
    "conv_only": (97 * 127 * 32 * 16,) * 2,
    "matmul_init": (25 * 16 * 9,) * 2,
    "mobilenet_v2": (mobilenet_v2(32, 10),) * 2,
    "mobilenet_v3_small": (mobilenet_v3_small(32, 10),) * 2,
    "efficientnet_b0": (efficientnet_b0(32, 10),) * 2,
    "densenet121": (densenet121(32, 10),) * 2,
    "convnext_tiny": (convnext_tiny(32, 10),) * 2,
    "dcgan": (dcgan(6, 2),) * 2,
    "dlrm": (dlrm(3, 8, 8),) * 2,
    "pointnet": (pointnet(7, 5, 8, batch=2),) * 2,
    "lstm_lm": (2 * 7 * 4 * 12 * 24 + 7 * 12 * 30,) * 2,
    "crnn": (crnn(20, 16, 6, 5),) * 2,
    "unet": (unet(32, 4, 2),) * 2,
    "vgg16": (vgg16(32, 10),) * 2,
    "resnet50": (resnet50(32, 10),) * 2,
    "resnet50_v1_5": (resnet50(32, 10), resnet50(32, 10, v1_5=True)),
    **{f"family_{name}": family(name) for name in FAMILIES},
}
"""MACs at the small settings: TensorFlow's side, PyTorch's side."""


@pytest.mark.parametrize("name", chosen(MODELS))
def test_matmul_work_is_its_closed_form(collecting, name):
    result = settle(collecting(name, **small(name)), Conventions(BUILT_IN["matmul"]))
    assert tuple(t.totals["matmul"] for t in result.traces) == tuple(2 * macs for macs in FORMS[name])


DIFFERING = {
    "resnet50_v1_5": {f"{stage}_block1_1_conv" for stage in ("conv3", "conv4", "conv5")},
    "family_convolution": {"conv1d_dilated", "conv2d_dilated"},
}
"""Layers whose products differ in number, for pairs that declare it."""

EQUAL_OUTPUTS = {"family_convolution"}
"""Those of them that compute the same nevertheless: TensorFlow fills a dilated convolution up."""


@pytest.mark.parametrize("name", chosen(MODELS))
def test_every_layer_does_equal_work_unless_the_pair_says_not(collecting, name):
    module = loading.load_pair(loading.pair_path(name))
    assert bool(module.not_equivalent) == (name in DIFFERING.keys() - EQUAL_OUTPUTS)
    result = settle(collecting(name, **small(name)), Conventions(BUILT_IN["matmul"]))
    ours, theirs = (macs_by_layer(trace) for trace in result.traces)
    assert {layer for layer in ours | theirs if ours[layer] != theirs[layer]} == DIFFERING.get(name, set())
    assert set(ours) == set(theirs)


@pytest.mark.parametrize("name", chosen(FOLLOWING))
def test_rows_follow_the_parameters(collecting, name):
    """No layer is left without a row, and no row without a layer that does something."""
    module = loading.load_pair(loading.pair_path(name))
    rows = module.layers_for(pairs.Params(loading.resolve(module, small(name))))
    result = settle(collecting(name, **small(name)), Conventions(BUILT_IN["matmul"]))
    idle = transformers.WITHOUT_ARITHMETIC.get(name, ())
    assert [row.layer for row in result.layers] == [row.name for row in rows if row.name not in idle]


def macs_by_layer(trace):
    found = Counter()
    for row in trace.rows:
        if row.work.mac:
            found[row.layer] += row.work.mac
    return found
