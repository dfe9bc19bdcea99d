"""Bridge from a ledger of ptflops to the PyTorch trace, for its backends "pytorch" and "aten"."""

from __future__ import annotations

from dataclasses import replace

from ....core.causes import Cause
from ....core.records import Op, Sighting, Trace
from ..bridge import Bridge, Item, View, make_item
from ..op_bridge import bridge_ops
from ..patched_functions.bridge import FunctionCalls, bridge_calls
from . import AVERAGE
from .rules import BOOK

KNOWN = {rule.op.rpartition(".")[2] for rule in BOOK.rules()}
"""Names of functions that ptflops patches, and of ops that they are."""
FUNCTIONS = {"torch.nn.functional": "functions", "torch": "products", "torch.Tensor": "products"}
"""Where functions are whose counts ptflops adds without dividing them by the batch, and which sum each belongs to."""


def bridge(view: View, trace: Trace) -> Bridge:
    """Items of ptflops@aten by op; of ptflops@pytorch by module and patched function, and one for the division by the batch."""
    if view.counter == "ptflops@aten":
        return bridge_ops(view, trace, BOOK, lambda op: f"{op.op} is not among the six ops of ptflops/aten_ops.py:109")
    calls = replace(view, sightings=tuple(s for s in view.sightings if s.op.op != AVERAGE))
    items = bridge_calls(calls, trace, FunctionCalls("ptflops", BOOK, _why_not)).items
    return Bridge((*items, *(_make_average_item(s, calls) for s in view.sightings if s.op.op == AVERAGE)))


def _why_not(op: Op) -> tuple[Cause, str]:
    name = op.op.rpartition(".")[2]
    if name in KNOWN:
        return Cause.CALL_NOT_SEEN, f"this {name} is an operator or ran in a function that ptflops does not patch"
    return Cause.OP_NOT_COUNTED, f"ptflops neither hooks a module nor patches a function of {name}"


def _make_average_item(sighting: Sighting, calls: View) -> Item:
    """The item of what ptflops' total lacks of its calls, as it divides the sum over modules by the batch (rules.py: AVERAGE)."""
    sums = {"modules": 0, "functions": 0, "products": 0}
    for call in calls.sightings:
        if call.entry:
            kind = FUNCTIONS.get(call.op.op.rpartition(".")[0], "modules")
            sums[kind] += sum(BOOK.counts(call.op, calls.versions)) * call.op.calls
    op = sighting.op._replace(attrs={**sighting.op.attrs, **sums})
    rule, counted = BOOK.of(op, calls.versions), BOOK.counts(op, calls.versions)
    cause = Cause.AVERAGED_OVER_BATCH
    return make_item(op, rule, layer="", op=AVERAGE, counted=counted, seen=1, cause=cause, entry=sighting.entry)
