"""S4: what "ResNet50 forward" and "backward by subtraction" really counted on TensorFlow 2.3.1, explained to the last unit."""

from __future__ import annotations

import pytest

from reconcile.core.causes import Cause
from reconcile.core.conventions import BUILT_IN, Conventions
from reconcile.engine.settle import settle
from reconcile.launch.environments.definitions import load as load_environments
from reconcile.launch.environments.provision import ensure
from reconcile.launch.request import RunRequest
from reconcile.launch.runner import collect
from reconcile.report.markdown import to_markdown
from reconcile.work import load as load_formulas

pytestmark = pytest.mark.matrix

# 53 convolutions by stage: (positions, multiply-adds per position and image), batch 1, 224 x 224, stride in the 1x1.
STAGES = ((56, 64, 3, 64), (28, 128, 4, 256), (14, 256, 6, 512), (7, 512, 3, 1024))
ONCE, TWICE = "tf.profiler@batch_none", "tf.profiler@built_twice"
PUBLISHED = 51_112_224
PUBLISHED_TWICE = 102_224_449


def convolutions():
    """Multiply-adds of all convolutions, and the weights of all layers: the network written out."""
    macs = 112 * 112 * 64 * 7 * 7 * 3
    kernels = 64 * 7 * 7 * 3
    for side, filters, blocks, width in STAGES:
        for block in range(blocks):
            pieces = [(width, filters, 1), (filters, filters, 3), (filters, 4 * filters, 1)]
            if block == 0:
                pieces.append((width, 4 * filters, 1))
            for inner, outer, kernel in pieces:
                macs += side * side * inner * outer * kernel * kernel
                kernels += inner * outer * kernel * kernel
            width = 4 * filters
    return macs, kernels


@pytest.fixture(scope="module")
def results():
    """What either recipe gives, under every convention, from one run each."""
    python = str(ensure(load_environments()["tf-2.3.1"]))
    load_formulas()
    found = {}
    for counter in (ONCE, TWICE):
        collected = collect(RunRequest("resnet50", {}, counters=(counter,), python=python))
        for name, convention in BUILT_IN.items():
            result = found[counter, name] = settle(collected, Conventions(convention))
            assert result.exit_code == 0
            assert result.statements[0].residual == 0
    return found


@pytest.fixture(scope="module")
def statements(results):
    return {counter: results[counter, "matmul"].statements[0] for counter in (ONCE, TWICE)}


def test_nothing_of_the_network_is_in_the_published_number(statements):
    macs, kernels = convolutions()
    dense = 2048 * 1000
    statement = statements[ONCE]
    assert statement.from_total == PUBLISHED
    assert statement.to_total == 2 * (macs + dense) == 7_715_946_496
    causes = statement.by_cause()
    weights = kernels + dense
    assert causes[Cause.INITIALIZER] == -(2 * weights + 54)  # random_uniform: Mul and Add each, and 54 scalar Subs
    assert causes[Cause.SHAPE_UNKNOWN] == statement.to_total  # every convolution and the dense layer
    # What is left is batch norm's moving averages, which inference never runs.
    assert causes == {
        Cause.DEAD_OP: -(PUBLISHED - 2 * weights - 54),
        Cause.INITIALIZER: -(2 * weights + 54),
        Cause.SHAPE_UNKNOWN: statement.to_total,
    }


def test_backward_by_subtraction_is_the_model_a_second_time(statements):
    once, twice = statements[ONCE], statements[TWICE]
    assert twice.from_total == PUBLISHED_TWICE == 2 * PUBLISHED + 1
    causes = twice.by_cause()
    assert causes[Cause.DUPLICATE_GRAPH] == -PUBLISHED
    assert causes[Cause.INTEGER_OP] == -1  # the one Maximum in the average pool's gradient, on its size
    assert causes[Cause.SHAPE_UNKNOWN] == twice.to_total
    for cause in (Cause.DEAD_OP, Cause.INITIALIZER):
        assert causes[cause] == once.by_cause()[cause]


def test_the_real_backward_stands_beside_it(results):
    """Gradients with respect to input and to weights do each product of the forward pass once; the image has none."""
    macs, _ = convolutions()
    first, dense = 112 * 112 * 64 * 7 * 7 * 3, 2048 * 1000
    result = results[TWICE, "matmul"]
    (trace,) = result.traces
    forward = 2 * (macs + dense)
    backward = 2 * (macs - first) + 2 * macs + 2 * 2 * dense
    assert result.by_phase(trace) == {"forward": forward, "backward": backward}
    assert (forward, backward) == (7_715_946_496, 15_195_865_088)
    assert result.statements[0].to_total == forward + backward
    text = to_markdown(result)
    assert "Pass: forward+backward." in text
    assert "forward 7,715,946,496, backward 15,195,865,088 FLOP." in text


def test_the_backward_of_a_layer_stands_at_that_layer(results):
    (trace,) = results[TWICE, "matmul"].traces
    products = {(row.layer, row.op): row.work.mac for row in trace.rows if row.work.mac}
    for layer in ("conv2_block1_2_conv", "conv5_block3_1_conv"):
        forward = products[layer, "Conv2D"]
        assert products[layer, "Conv2DBackpropInput"] == products[layer, "Conv2DBackpropFilter"] == forward > 0
    assert ("conv1_conv", "Conv2DBackpropInput") not in products
