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
from ..core.framework import title
from ..core.protocol import ModelFile
from ..model_zoo.pair import Input
from . import user_models


def factories_of(models: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, ModelFile]]:
    """``module:function`` or a model file's path per framework, and what the files are.

    Raises UsageError for what cannot be named so.
    """
    names = {framework: _named(framework, model) for framework, model in models.items()}
    given = {framework: user_models.given(framework, name) for framework, name in names.items()}
    return names, {name: file for name, file in given.items() if isinstance(file, ModelFile)}


def inputs_of(inputs: Any) -> tuple[Input, ...]:
    """Shapes as the command line takes them: one text or several. Raises UsageError for tensors."""
    if inputs is None:
        return ()
    texts = [inputs] if isinstance(inputs, str) else inputs
    if isinstance(texts, (list, tuple)) and all(isinstance(text, str) for text in texts):
        return user_models.read_inputs(texts)
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
