"""Models that run in worker processes of their own, named in Python: by ``module:function``, by the function itself, or by
a file.

The caller's process imports no framework. Nothing is pickled: a function travels by its name, a model at hand not at all.
"""

from __future__ import annotations

import inspect
import os
import sys
import sysconfig
from collections.abc import Mapping
from typing import Any

from ..core.errors import UsageError
from ..core.registry import title


def named(models: Mapping[str, Any]) -> dict[str, str]:
    """``module:function``, or a model file's path, per framework. Raises UsageError for a model that has no such name."""
    return {framework: _named(framework, model) for framework, model in models.items()}


def shapes(inputs: Any) -> tuple[str, ...]:
    """Shapes as the command line takes them: one text or several. Raises UsageError for tensors."""
    texts = (inputs,) if isinstance(inputs, str) else () if inputs is None else inputs
    if isinstance(texts, (list, tuple)) and all(isinstance(text, str) for text in texts):
        return tuple(texts)
    raise UsageError(
        "inputs= are values at hand, which do not travel to a worker process: give shapes such as '1,3,224,224', or let the "
        "function return (model, inputs)."
    )


def paths() -> tuple[str, ...]:
    """Folders where the caller finds modules of their own: what is on the import path and not installed."""
    installed = {os.path.realpath(path) for path in sysconfig.get_paths().values()}
    installed |= {os.path.realpath(prefix) for prefix in (sys.prefix, sys.base_prefix)}
    found = (os.path.realpath(path or os.getcwd()) for path in sys.path)
    return tuple(dict.fromkeys(p for p in found if os.path.isdir(p) and not _within(p, installed)))


def _within(path: str, folders: set[str]) -> bool:
    return any(path == folder or path.startswith(os.path.join(folder, "")) for folder in folders)


def _named(framework: str, model: Any) -> str:
    if isinstance(model, str):
        return model
    what = f"{framework}= is "
    if not (inspect.isroutine(model) or inspect.isclass(model)) or inspect.ismethod(model):
        kind = title(framework)
        raise UsageError(
            f"{what}an object of the class {type(model).__name__}, and a model at hand does not travel to another process "
            f"without being pickled: give the function or class that makes the {kind} model, or leave isolated=True out."
        )
    module, name = getattr(model, "__module__", None) or "", model.__qualname__
    if module == "__main__" or "<" in name:
        where = "in the main program" if module == "__main__" else "inside another function"
        raise UsageError(
            f"{what}{name}, which is defined {where}, where a worker process cannot find it: put it at the top level of a "
            "module of its own, or leave isolated=True out."
        )
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not model:
        raise UsageError(
            f"{what}{name}, which is not what {module}:{name} is: give the name of a function of a module."
        )
    return f"{module}:{name}"
