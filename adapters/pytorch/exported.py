"""Converts ExportedPrograms of torch.export, which a factory or a caller may give as a model, back to modules.

Python 3.8, torch 1.x and later.
"""

import sys
from typing import Any


def is_program(value: Any) -> bool:
    """Whether it is an ExportedProgram."""
    exports = sys.modules.get("torch.export")
    return hasattr(exports, "ExportedProgram") and isinstance(value, exports.ExportedProgram)  # type: ignore[union-attr]


def as_module(program: Any) -> Any:
    """The program as modules, which keep the paths of those that it was exported from."""
    import torch

    return torch.export.unflatten(program)


def inputs_of(program: Any) -> Any:
    """The positional and named inputs that it was exported with, or None if it does not have them."""
    return program.example_inputs or None


def follow_mode(module: Any) -> None:
    """Let the modules that ExportedProgram.module() makes take ``train()`` and ``eval()``, which they refuse: their graph keeps
    the mode that it was exported in."""
    for part in module.modules():
        for name in ("train", "eval"):
            method = part.__dict__.get(name)
            if getattr(method, "__module__", "").startswith("torch."):
                del part.__dict__[name]
