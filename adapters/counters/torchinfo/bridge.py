"""From a torchinfo ledger to the PyTorch trace: one item per module with a rule; ops that ran elsewhere one by one."""

from __future__ import annotations

from functools import partial

from ....core.causes import Cause
from ....core.records import Op
from ..module_bridge import Hooks, bridge_modules
from .rules import BOOK


def why_not(module: Op) -> tuple[Cause, str]:
    """Why it counts nothing of a module that was called."""
    if not module.attrs["leaf"]:
        return Cause.CALL_NOT_SEEN, f"work of {module.op} itself: torchinfo counts modules without children only"
    names = ", ".join(name for name, _, _ in module.attrs["parameters"])
    only = f"its parameters are named {names}, without weight or bias" if names else "it has none"
    return Cause.OP_NOT_COUNTED, f"torchinfo counts the parameters of {module.op}: {only}"


bridge = partial(bridge_modules, hooks=Hooks("torchinfo", BOOK, hides=False, containers=(), why_not=why_not))
