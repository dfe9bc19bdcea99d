"""Names the models that ``reconcile.run(..., isolated=True)`` is given, so that worker processes can import them.

A model is given as ``module:function``, as the function itself, or as a file. The caller's process imports no framework. Nothing
is pickled: a function is sent as its name, and a model object cannot be sent.
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


def name_models(models: Mapping[str, Any]) -> dict[str, str]:
    """``module:function``, or the path of a model file, for each framework. Raises UsageError for a model without such a name."""
    return {framework: _name_model(framework, model) for framework, model in models.items()}


def shapes(inputs: Any) -> tuple[str, ...]:
    """Input shapes as strings, in the syntax of --input: one or several. Raises UsageError for tensors."""
    texts = (inputs,) if isinstance(inputs, str) else () if inputs is None else inputs
    if isinstance(texts, (list, tuple)) and all(isinstance(text, str) for text in texts):
        return tuple(texts)
    raise UsageError(
        "inputs= holds tensors or other values, which cannot be sent to a worker process: give shapes such as "
        "'1,3,224,224', or let the function return (model, inputs)."
    )


def paths() -> tuple[str, ...]:
    """Folders from which the caller imports their own modules: those on the import path that are not installed."""
    installed = {os.path.realpath(path) for path in sysconfig.get_paths().values()}
    installed |= {os.path.realpath(prefix) for prefix in (sys.prefix, sys.base_prefix)}
    folders = (os.path.realpath(path or os.getcwd()) for path in sys.path)
    return tuple(dict.fromkeys(p for p in folders if os.path.isdir(p) and not _within(p, installed)))


def _within(path: str, folders: set[str]) -> bool:
    return any(path == folder or path.startswith(os.path.join(folder, "")) for folder in folders)


def _name_model(framework: str, model: Any) -> str:
    if isinstance(model, str):
        return model
    subject = f"{framework}= is "
    if not any(is_kind(model) for is_kind in (inspect.isfunction, inspect.isbuiltin, inspect.isclass)):
        kind = title(framework)
        raise UsageError(
            f"{subject}an object of the class {type(model).__name__}, and a model object cannot be sent to another process "
            f"without pickling: give the function or class that makes the {kind} model, or leave out isolated=True."
        )
    module, name = getattr(model, "__module__", None) or "", model.__qualname__
    if module == "__main__" or "<" in name:
        where = "in the main program" if module == "__main__" else "inside another function"
        raise UsageError(
            f"{subject}{name}, which is defined {where}, where a worker process cannot find it: move it to the top level of a "
            "separate module, or leave out isolated=True."
        )
    imported: Any = sys.modules.get(module)
    for part in name.split("."):
        imported = getattr(imported, part, None)
    if imported is not model:
        raise UsageError(
            f"{subject}{name}, but {module}:{name} is another object: give a function that its module has under its own name."
        )
    return f"{module}:{name}"
