"""keras-flops' own formulas by hand, from keras_flops/flops_registory.py of 0.1.2; tf.profiler's have cases of their own."""

from __future__ import annotations

from reconcile.core.causes import Cause
from reconcile.work import Work
from tests.adapters.counters.cases import Case, op

RELEASES = ("0.1.2",)

X, C = (2, 5, 5, 3), (3,)
N = 150
NORM = ([X, C, C, C, C], [X])

CASES = (
    # 2 per element, and per channel 5 for the variance and 1 for the mean: 6 channels' worth in all.
    Case(
        op("FusedBatchNormV3", *NORM, is_training=False),
        RELEASES,
        2 * N + 6 * 3,
        Work(mul=N + 2 * 3, add=N + 3 + 3, special=3, div=3),
    ),
    Case(op("FusedBatchNormV3", *NORM, is_training=True), RELEASES, missed=Cause.OP_NOT_COUNTED),
    Case(op("Max", [X, (2,)], [(2, 3)]), RELEASES, N - 6, Work(cmp=N - 6)),
    Case(op("Max", [(2, None, 3), (1,)], [(2, 3)]), RELEASES, missed=Cause.SHAPE_UNKNOWN),
    Case(op("AddV2", [X, C], [X]), RELEASES, N, Work(add=N)),
)

FAMILIES = {"keras_flops": (RELEASES, CASES)}
