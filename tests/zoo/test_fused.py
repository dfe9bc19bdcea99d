"""Layers that a framework runs as one op: what a counter leaves out is booked whole, under the reason that is true."""

from __future__ import annotations

import pytest

from reconcile.core.causes import Cause
from reconcile.core.conventions import BUILT_IN, Conventions
from reconcile.engine.settle import settle
from reconcile.model_zoo import loading
from tests.zoo.transformers import transformer

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]


def test_an_encoder_layer_as_one_op_is_not_counted(collecting):
    """flop_counter has rules for the products that ran, but saw none of them: 2 x 24 x 24 of the pooler is all it has."""
    proof = loading.load_pair(loading.pair_path("bert_base")).proof
    result = settle(collecting("bert_base", **proof), Conventions(BUILT_IN["matmul"]))
    statement = result.statement("flop_counter", "trace@torch")
    each = 2 * transformer(9, 9, 24, 40, 1)
    assert (statement.from_total, statement.residual) == (2 * 24**2, 0)
    assert statement.by_cause() == {Cause.OP_NOT_COUNTED: 2 * each}
    assert {a.layer for a in statement.adjustments} == {"layer_0", "layer_1"}
    reason = "aten._transformer_encoder_layer_fwd is not in flop_counter's registry"
    assert [e.formula for a in statement.adjustments for e in a.evidence if reason not in e.formula] == []
