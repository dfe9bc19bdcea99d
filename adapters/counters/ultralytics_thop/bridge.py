"""Bridge from an ultralytics-thop ledger to the PyTorch trace: first functions (function_bridge.py), then modules.

A ledger of ``get_flops`` may be of a smaller image, multiplied by the ratio of the areas (extrapolation.py).
"""

from __future__ import annotations

from dataclasses import replace

from ....core.causes import Cause
from ....core.records import Op, Trace
from ..bridge import Bridge, Item, View
from ..module_bridge import Hooks, bridge_modules
from .extrapolation import extrapolate_items
from .function_bridge import bridge_functions, is_function
from .rules import BOOK

COUNTED = "matmul, bmm, linear, einsum and attention"


def _why_not(module: Op) -> tuple[Cause, str]:
    if module.op.startswith("torch.nn.") and not module.op.startswith("torch.nn.modules.container."):
        return Cause.OP_NOT_COUNTED, f"ultralytics-thop has no rule for {module.op}"
    return Cause.CALL_NOT_SEEN, (
        f"a functional call in {module.op}.forward: ultralytics-thop counts only {COUNTED} there, and none of them inside of "
        "a module with a rule"
    )


HOOKS = Hooks("ultralytics-thop", BOOK, hides=False, containers=(), why_not=_why_not)


def bridge(view: View, trace: Trace) -> Bridge:
    """Items of the image that the trace ran; if the counter extrapolated from a smaller one, with the counts that this gave."""
    full = [s._replace(copies=1) for s in view.sightings if not s.copies]
    if not full:
        return Bridge(_items(view, trace))
    small = [s for s in view.sightings if s.copies]
    return Bridge(tuple(extrapolate_items(view, small, _items(replace(view, sightings=tuple(full)), trace))))


def _items(view: View, trace: Trace) -> tuple[Item, ...]:
    """Items of counted functions and the ops that they ran, then one per module with a rule, then the other ops."""
    items, left = bridge_functions(view, [s.op for s in view.sightings if is_function(s)], trace)
    modules = replace(view, sightings=tuple(s for s in view.sightings if not is_function(s)))
    return (*items, *bridge_modules(modules, trace._replace(ops=left), HOOKS).items)
