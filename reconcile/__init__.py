"""reconcile: why two FLOP counters disagree about a model, down to the last unit.

``reconcile.run`` and what products add are imported when they are asked for. Workers in legacy environments import this file as
well: Python 3.6 syntax, and no import of a large package.
"""

__version__ = "1.0.0"


_HOMES = {
    "run": "api",
    "Run": "api.results",
    "ReconcileError": "core.errors",
    "UsageError": "core.errors",
    "NotInResult": "core.errors",
    "PackageMissing": "core.errors",
}


def __getattr__(name):  # Python 3.7 and later: the core's functions and those of products, only when they are asked for
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module("." + _HOMES[name], __name__), name)
    if not name.startswith("_"):
        from .core.registry import product_function

        found = product_function(name)
        if found is not None:
            return found
    raise AttributeError(f"module 'reconcile' has no attribute {name!r}")
