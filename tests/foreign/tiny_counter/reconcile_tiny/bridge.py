"""From its ledger to the trace."""

from reconcile.adapters.counters.module_bridge import Hooks, bridge_modules

from .rules import BOOK


def bridge(view, trace):
    """It hooks exact classes, and modules below a hooked one, too."""
    return bridge_modules(view, trace, Hooks("tiny", BOOK, hides=False))
