"""From an ultralytics-thop ledger to the PyTorch trace: functions first (functions.py), then modules (module_bridge.py)."""

from __future__ import annotations

from dataclasses import replace

from ....core.causes import Cause
from ....core.records import Op, Trace
from ..bridge import Bridge, View
from ..module_bridge import Hooks, bridge_modules
from .extrapolation import extrapolated, of_all_functions
from .functions import bridge_functions, is_function
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
    """Items of counted functions and the ops that they ran, then one per module with a rule, then the other ops."""
    multiplied = [s.copies for s in view.sightings if s.copies != 1]
    once = replace(view, sightings=tuple(s._replace(copies=1) for s in view.sightings))
    functions = [s.op for s in once.sightings if is_function(s)]
    modules = replace(once, sightings=tuple(s for s in once.sightings if not is_function(s)))
    items, left = (of_all_functions if multiplied else bridge_functions)(view, functions, trace)
    all_items = (*items, *bridge_modules(modules, trace._replace(ops=left), HOOKS).items)
    if multiplied:
        return Bridge(tuple(extrapolated(item, multiplied[0]) if item.entry else item for item in all_items))
    return Bridge(all_items)
