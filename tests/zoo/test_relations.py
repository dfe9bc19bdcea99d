"""Relations that no formula makes true by itself, with the real counters run again for each of their sides.

Twice the batch is twice the work of everything but what computes on weights alone; twice the steps are twice the
products of a recurrent layer.
"""

from __future__ import annotations

from collections import Counter

import pytest

from reconcile.align.alignment import Alignment
from reconcile.core.records import Layer
from reconcile.model_zoo import loading
from reconcile.work import ZERO, Work, work_of
from tests.run.closing import reconciles
from tests.zoo.choice import chosen as of_pairs

pytestmark = pytest.mark.frameworks


def key(op):
    """What an op is, but for its id: two runs number their ops alike only where they have the same ones."""
    return (op.layer, op.op, op.inputs, op.outputs, repr(sorted(op.attrs.items())), op.calls)


def without_common(trace, other):
    """Work per layer, of ops that are not in the other trace just as they are in this one, and how much of it is on weights.

    Not per kind of op: Keras adds a matrix of one row as it adds a bias, so one sample has other kinds than two.
    """
    common = Counter(map(key, trace.ops)) & Counter(map(key, other.ops))
    found: dict[str, Work] = {}
    weights: dict[str, Work] = {}
    for op in trace.ops:
        if common[key(op)]:
            common[key(op)] -= 1
            continue
        found[op.layer] = found.get(op.layer, ZERO) + work_of(op) * op.calls
        weights[op.layer] = weights.get(op.layer, ZERO) + of_weights(op) * op.calls
    return {layer: work for layer, work in found.items() if work}, weights


def of_weights(op):
    """What a batch norm in one op does once per channel, whatever the batch: 1 / sqrt(var + eps) folded into a scale
    and a shift, two products and two sums; for no other op is work on weights hidden among work on the batch."""
    if op.op not in ("aten.native_batch_norm", "aten.batch_norm"):
        return ZERO
    channels = op.inputs[0].shape[1]
    return Work(add=2 * channels, special=channels, mul=(2 if op.given("weight") else 1) * channels)


BATCHES = ["family_recurrent", "family_norm", "family_attention", "family_convolution", "lstm_lm"]


@pytest.mark.parametrize("model", of_pairs(BATCHES, ("family_norm", "lstm_lm")))
def test_twice_the_batch_is_twice_the_work(collecting, model):
    module = loading.load_pair(loading.pair_path(model))
    settings = module.proof
    once = reconciles(collecting(model, **settings))
    twice = reconciles(collecting(model, **settings, batch=2 * module.params["batch"]))
    for one, two in zip(once.traces, twice.traces, strict=True):
        (single, weights), (double, same) = without_common(one, two), without_common(two, one)
        assert single
        assert single.keys() == double.keys()
        for layer, work in single.items():
            assert double[layer] - same[layer] == (work - weights[layer]) * 2, (one.framework, layer)


def test_the_work_on_weights_is_found(collecting):
    """The relation has an exception to make: without it, batch norms would not double."""
    once, twice = collecting("family_norm"), collecting("family_norm", batch=4)
    ours, theirs = once.traces
    _, weights = without_common(theirs, twice.traces[1])
    assert [layer for layer, work in weights.items() if work], weights
    common = Counter(map(key, ours.ops)) & Counter(map(key, twice.traces[0].ops))
    assert [op for op in ours.ops if common[key(op)] and work_of(op)], common


LSTM = loading.load_pair(loading.pair_path("lstm_lm")).proof
STEPS = {
    "gru_demo": ({"frames": 13, "bins": 16}, {"frames": 23, "bins": 16}, {"gru"}),  # a kernel of 4: 10 steps, 20 steps
    "lstm_lm": (LSTM, {**LSTM, "steps": "14"}, {"lstm"}),  # 7 of its own
    "family_recurrent": ({}, {"steps": 10}, None),  # 5 of its own
}
"""Settings, settings of twice as many steps, and the recurrent layers (none: all)."""


@pytest.mark.parametrize("model", of_pairs(STEPS, ("lstm_lm",)))
def test_twice_the_steps_are_twice_a_recurrent_layers_products(collecting, model):
    first, second, layers = STEPS[model]
    once, twice = (reconciles(collecting(model, **settings)) for settings in (first, second))
    for one, two in zip(once.traces, twice.traces, strict=True):
        single, double = (products(trace, once.meta) for trace in (one, two))
        chosen = layers or set(single)
        assert chosen
        assert {name: 2 * single[name] for name in chosen} == {name: double[name] for name in chosen}


def products(trace, meta):
    """Multiply-adds per layer of the pair."""
    align, found = Alignment(list(map(Layer.from_list, meta["layers"]))), Counter()
    for op in trace.ops:
        found[align.layer(trace.framework, op.layer)] += work_of(op).mac * op.calls
    return +found
