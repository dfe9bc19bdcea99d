"""Rules of keras-flops: those of tf.profiler, and three that it registers with TensorFlow when it is imported.

Source: F = keras_flops/flops_registory.py (lines of 0.1.2). ``N``: elements of the first input, ``O``: of the output.
"""

from __future__ import annotations

from functools import partial

from ....core.causes import Cause
from ....core.records import Op
from ....work import Work
from ..node_bridge import bridge_nodes
from ..rulebook import NotCounted, RuleBook, size
from ..tf_profiler.rules import BOOK as PROFILER
from ..tf_profiler.rules import why_not
from . import COUNTERS

BOOK = RuleBook(
    COUNTERS[0].family, COUNTERS[0].versions_key, {"F": "keras_flops/flops_registory.py"}, base=PROFILER
)  # fmt: skip


@BOOK.rule("FusedBatchNormV3", source="F:10", formula="2N + 5 numel(variance) + numel(mean), in inference only")
def _batch_norm(op: Op) -> Work:
    if op.attrs.get("is_training"):
        raise NotCounted(Cause.OP_NOT_COUNTED, "FusedBatchNormV3 is counted in inference only")
    n, mean, variance = (size(op.inputs[index].shape) for index in (0, 3, 4))
    # Per element a multiplication and an add; per channel 1 / sqrt(variance + epsilon), two products and a difference.
    return Work(mul=n + 2 * variance, add=n + variance + mean, special=variance, div=variance)


@BOOK.rule("Max", source="F:32", formula="N - O")
def _max(op: Op) -> Work:
    return Work(cmp=size(op.inputs[0].shape) - size(op.outputs[0].shape))


@BOOK.rule("AddV2", source="F:39", formula="O")
def _add(op: Op) -> Work:
    return Work(add=size(op.outputs[0].shape))


bridge = partial(bridge_nodes, book=BOOK, why_not=why_not)
