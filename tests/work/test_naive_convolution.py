"""Three published formulas for one convolution, as conventions, over the naive convolution executed with counting numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcile.adapters.counters.rulebook import apply
from reconcile.adapters.counters.tf_profiler.rules import BOOK
from reconcile.core.conventions import BUILT_IN, Conventions, load_conventions
from tests.work.counting import Tally
from tests.work.oracle import conv
from tests.work.records_by_hand import make

FILE = Path(__file__).parents[2] / "docs/conventions/naive_convolution.toml"
CONVENTIONS = load_conventions(FILE)
FORMULAS = {
    "starts-at-first-product": (lambda k: 2 * k - 1, lambda k: 2 * k),
    "post": (lambda k: 2 * k - 1, lambda k: 2 * k + 1),
    "registered": (lambda k: 2 * k, lambda k: 2 * k + 1),
}
"""FLOPs per output element of K products: without a bias, with one."""


def conv_forward(image, filters, biases, stride):
    """Executes the post's loops, over batch, filter, row and column; returns what was computed and what that took."""
    tally = Tally()
    bias = None if biases is None else tally.array(biases)
    found = conv(tally, tally.array(image), tally.array(filters), bias, (stride, stride), (0, 0), (1, 1), 1)
    return found, tally.work()


@settings(max_examples=25, deadline=None)
@given(
    batch=st.integers(1, 2),
    channels=st.integers(1, 3),
    filters=st.integers(1, 3),
    kernel=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    stride=st.integers(1, 2),
    biased=st.booleans(),
)
def test_each_formula_is_its_convention_on_the_executed_loops(batch, channels, filters, kernel, stride, biased):
    image, weights = np.ones((batch, channels, 5, 4)), np.ones((filters, channels, *kernel))
    found, work = conv_forward(image, weights, np.ones(filters) if biased else None, stride)
    k = channels * kernel[0] * kernel[1]
    assert {item.value for item in found.flat} == {k + biased}
    assert (work.mac, work.accumulators, work.add) == (found.size * k, found.size, found.size * biased)
    assert set(CONVENTIONS) == set(FORMULAS)
    for name, formulas in FORMULAS.items():
        assert CONVENTIONS[name].flops(work) == found.size * formulas[biased](k)
    assert BUILT_IN["textbook"].flops(work) == CONVENTIONS["starts-at-first-product"].flops(work)
    assert BUILT_IN["all"].flops(work) == CONVENTIONS["registered"].flops(work)
    assert _registered(image.shape, weights.shape, found.shape, biased) == CONVENTIONS["registered"].flops(work)


def _registered(image, weights, output, biased):
    """What tf.profiler's rules count of the Conv2D and of the BiasAdd node."""
    nhwc, (batch, filters, rows, columns) = [image[i] for i in (0, 2, 3, 1)], output
    kernel = (*weights[2:], weights[1], weights[0])
    out = (batch, rows, columns, filters)
    nodes = [make("Conv2D", [tuple(nhwc), kernel], [out], data_format="NHWC")]
    nodes += [make("BiasAdd", [out, (filters,)], [out], data_format="NHWC")] if biased else []
    counted = [apply(BOOK.find(node.op, {"tensorflow": "2.21.0"}), node, str) for node in nodes]
    assert [missed for _, missed in counted] == [None] * len(nodes)
    return sum(BUILT_IN["all"].flops(work) for work, _ in counted)


def test_one_product_is_1_by_textbook_and_2_by_accumulator():
    """A 1x1 convolution of one channel and one pixel: the question that the post's readers ask."""
    _, work = conv_forward(np.ones((1, 1, 1, 1)), np.ones((1, 1, 1, 1)), None, 1)
    assert [CONVENTIONS[name].flops(work) for name in FORMULAS] == [1, 1, 2]


@pytest.mark.slow
@pytest.mark.parametrize("name", list(FORMULAS))
def test_a_run_reconciles_under_each(collecting, name):
    """The demo's convolution: 97 x 127 x 32 outputs of 16 products, with a bias; its relu weighs nothing here."""
    from reconcile.engine.settle import settle

    result = settle(collecting("conv_only"), Conventions(CONVENTIONS[name], {**BUILT_IN, **CONVENTIONS}))
    outputs, k = 97 * 127 * 32, 16
    assert [t.totals[name] for t in result.traces] == [outputs * FORMULAS[name][1](k)] * 2
    assert [s.residual for s in result.statements] == [0] * len(result.statements)
    assert result.exit_code == 0
