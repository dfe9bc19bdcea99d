"""The names of a module's public functions that can be called without arguments.

For a process of its own: it imports the standard library and that module alone.
"""

from __future__ import annotations

import importlib
import inspect
import os


def names(module_name: str, backend: str) -> list[str]:
    """Those that can be called without arguments, sorted; Keras is for ``backend``, unless that is ''. Raises ImportError."""
    if backend:
        os.environ.setdefault("KERAS_BACKEND", backend)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        if not error.name or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise ImportError(f"there is no module {error.name}") from error
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    found = []
    for name in getattr(module, "__all__", None) or dir(module):
        value = getattr(module, name, None)
        if not name.startswith("_") and inspect.isfunction(value):
            parameters = inspect.signature(value).parameters.values()
            if all(p.default is not p.empty or p.kind in several for p in parameters):
                found.append(name)
    return sorted(found)
