"""Inspects Python's stack in a recorded step: the PyTorch function called, a module's named arguments, and what is at work."""

from __future__ import annotations

import sys
from typing import Any

PROGRAM = "(program)"
"""Layer of what the program itself computes, outside of any function of a library."""
LIBRARY = "torch"
OURS = __name__.partition(".")[0]
WRAPPERS = ("decorate_context", "inner")
"""Functions of PyTorch around those that a program calls."""
CALL = "_call_impl"
"""The function of torch.nn.Module in which a hook before a call finds the call's named arguments."""


def called_function() -> str:
    """``(clip_grad_norm_)``: the function of PyTorch that the program calls and in which this op runs."""
    frame: Any = sys._getframe(1)
    name = ""
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.partition(".")[0] == LIBRARY:
            shown = frame.f_code.co_name
            if not shown.startswith("_") and shown not in WRAPPERS:
                name = shown
        elif module.partition(".")[0] == OURS:
            name = ""  # PyTorch calls us, by functions of its own
        else:
            break
        frame = frame.f_back
    return f"({name})" if name else PROGRAM


def named_arguments() -> dict[str, Any]:
    """The named arguments of the module's call that is running this hook; PyTorch does not pass them to hooks of the process."""
    frame: Any = sys._getframe(1)
    for _ in range(8):
        frame = frame.f_back
        if frame is None:
            break
        if frame.f_code.co_name in (CALL, "inner") and isinstance(frame.f_locals.get("kwargs"), dict):
            return dict(frame.f_locals["kwargs"])
    return {}


def runs(wanted: Any) -> bool:
    """Whether this call comes from that frame; an exception may have ended it since."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame is wanted:
            return True
        frame = frame.f_back
    return False


def called_by(package: str) -> bool:
    """Whether a module of this package is at work in this call."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if f"{frame.f_globals.get('__name__', '')}.".startswith(package + "."):
            return True
        frame = frame.f_back
    return False
