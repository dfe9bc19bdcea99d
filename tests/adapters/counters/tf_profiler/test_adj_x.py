"""The statistics of BatchMatMul read transpose_a, which the op does not have: the tool finds it where adj_x is set."""

from __future__ import annotations

import numpy
import pytest
import tensorflow as tf

import reconcile
from reconcile.core.causes import Cause

B, K, M, N = 2, 7, 3, 5


@pytest.mark.parametrize("turned", [True, False])
def test_products_with_the_first_operand_turned_are_miscounted(turned: bool) -> None:
    """2 x (3, 7) @ (7, 5): 2 * 2*3*5*7 operations; of a (7, 3) that is turned, it takes the last axis, 3, for k."""
    a = numpy.ones((B, K, M) if turned else (B, M, K), "float32")
    b = numpy.ones((B, K, N), "float32")

    def net(x: object, y: object) -> object:
        return tf.matmul(x, y, transpose_a=turned)

    result = reconcile.run(tf=net, inputs=(a, b), counters=("tf.profiler@function",)).result
    (ledger,) = result.ledgers
    assert (ledger.total, ledger.mismatches) == (2 * B * M * N * (M if turned else K), ())
    (statement,) = result.statements
    lost = 2 * B * M * N * (K - M)
    found = [(line.cause, line.op, line.amount) for line in statement.adjustments]
    assert found == ([(Cause.FORMULA_DIFFERS, "BatchMatMulV2", lost)] if turned else [])
    assert (statement.to_total, statement.residual) == (2 * B * M * N * K, 0)
