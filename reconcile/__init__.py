"""reconcile: why two FLOP counters disagree about a model, down to the last unit.

Imported inside legacy environments too: Python 3.6 syntax, and nothing heavy.
"""

__version__ = "0.1.0"


_HOMES = {
    "run": "api",
    "Run": "api.results",
    "count": "steps.count",
    "Step": "steps.count",
    "llm": "api.language",
    "LanguageModel": "api.language",
    "polynomials": "api",
    "Formula": "api.results",
    "ReconcileError": "core.errors",
    "UsageError": "core.errors",
    "NotInResult": "core.errors",
    "PackageMissing": "core.errors",
}


def __getattr__(name):  # Python 3.7 and later: api/__init__.py, and what it imports, only when it is asked for
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module("." + _HOMES[name], __name__), name)
    raise AttributeError(f"module 'reconcile' has no attribute {name!r}")
