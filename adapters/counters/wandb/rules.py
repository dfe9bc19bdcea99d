"""Rules of W&B's get_flops: those of tf.profiler and no others (wandb/integration/keras/keras.py:1085 of 0.27.0), for one sample.

A node is the trace's, and its formula lacks the other samples of the batch, only if every size of every node is that of the trace
or the same fraction of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....core.records import LIVE, Op, Trace
from ..bridge import Bridge, View
from ..node_bridge import bridge_nodes
from ..rulebook import RuleBook
from ..tf_profiler.rules import BOOK as PROFILER
from ..tf_profiler.rules import why_not
from . import COUNTERS

BOOK = RuleBook(COUNTERS[0].family, COUNTERS[0].versions_key, {}, base=PROFILER)


def bridge(view: View, trace: Trace) -> Bridge:
    """See ``bridge_nodes``."""
    return bridge_nodes(view, trace, BOOK, why_not, one_file=is_of_one_sample(view, trace))


def is_of_one_sample(view: View, trace: Trace) -> bool:
    """Whether the counter's nodes are the trace's with one sample of several."""
    ran = {op.id: op for op in trace.ops}
    met = ((s.op, ran[s.op.id]) for s in view.sightings if s.role == LIVE and s.op.id in ran)
    same = (pair for pair in met if pair[0].op == pair[1].op)  # of other kinds, bridge_nodes books none
    batches = {times for pair in same for times in _times(*pair)}
    return len(batches - {1}) == 1 and 0 not in batches


def _times(met: Op, ran: Op) -> Iterator[int]:
    """How many times as large the sizes of the trace's node are; 0 for one that is not a multiple."""
    for one, all_ in zip((*met.inputs, *met.outputs), (*ran.inputs, *ran.outputs), strict=False):
        if one.shape is None or all_.shape is None:
            continue
        if len(one.shape) != len(all_.shape):
            yield 0
        for less, more in zip(one.shape, all_.shape, strict=False):
            if less != more and less is not None and more is not None:
                yield more // less if less and more % less == 0 else 0
