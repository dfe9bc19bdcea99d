"""Tells models that a counter cannot count, although they run, from a counter that is broken.  Python 3.8, standard library.

A counter raises BeyondCounter, with a sentence that says why and what to do, if it failed while it ran a model.  An error that
the user's own code or reconcile raises stays as it is, and so does one that the counter raises on every model.
"""

import os
from contextlib import contextmanager
from linecache import getline
from traceback import walk_tb
from typing import Any, Callable, Iterator, NamedTuple, Tuple

from ...core.message import text_of
from ..shared.refusal import BeyondCounter, CannotCount, FactoryError


class Limit(NamedTuple):
    """A limit of a counter: what its error's text or the places that the error passed through (``file.py:function``) contain,
    and the reason."""

    marks: Tuple[str, ...]
    reason: str


NO_VALUES = Limit(
    (
        "cannot be called on meta tensors",  # item, and a branch on a tensor
        "Cannot copy out of meta tensor",
        "convert meta device type tensor to numpy",
        "as a correct data-independent implementation does not exist",  # nonzero, and an index by a mask
        "to run this operator with Meta tensors, but there was no",  # the dispatcher, of one without a kernel
        "repeat_interleave a meta tensor",
        "operator has a data-dependent output shape",  # a library's operator, such as torchvision's nms
    ),
    "tensors on meta have no values, and this model needs values: make it and run it on the CPU (--device cpu)",
)
"""Limits of every counter: the device is the user's choice, or the model is larger than the memory."""

PACKED = Limit(
    ("'PackedSequence' object has no attribute 'shape'",),
    "its hook of recurrent layers reads the shape of the input, and packed sequences have none: give padded ones",
)
SCRIPTED = Limit(
    ("not supported on ScriptModules",),
    "it puts hooks on modules, and a ScriptModule takes none: give the module that it was made of",
)
"""Limits of counters that hook modules."""

OF_MACHINE = (FactoryError, CannotCount, ImportError, MemoryError, OSError)
"""Errors that say nothing about what the counter can count."""

OURS = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
"""The folder of this package."""

SHOWN = 160
"""Characters of an error's first line in a reason."""


@contextmanager
def explain_limits(limits: Tuple[Limit, ...], works: Callable[[], Any]) -> Iterator[None]:
    """Within this block a counter runs a model.  ``works()`` runs it on the smallest model, and raises if it is broken."""
    try:
        yield
    except OF_MACHINE:
        raise
    except Exception as error:
        reason = reason_of(error, limits)
        if not reason:
            if not _is_of_library(error):
                raise
            try:
                works()
            except Exception:  # whatever it raises, it raises it for every model
                raise error from None
            reason = f"its own code stops on this model, which runs without it ({_first_line(error)})"
        raise BeyondCounter(reason) from error


def reason_of(error: BaseException, limits: Tuple[Limit, ...]) -> str:
    """The reason of the first limit, of the counter's or of all, that matches this error; '' if none does."""
    marked = "\n".join([text_of(error)] + _places(error))
    every = limits + (NO_VALUES,)
    return next((limit.reason for limit in every if any(mark in marked for mark in limit.marks)), "")


def _places(error: BaseException) -> Any:
    codes = [frame.f_code for frame, _ in walk_tb(error.__traceback__)]
    return [code.co_filename.replace("\\", "/") + ":" + code.co_name for code in codes]


def _is_of_library(error: BaseException) -> bool:
    """Whether a library raised it, also from C++: neither our code, nor a ``raise`` or an ``assert`` of the user's."""
    frame, line = list(walk_tb(error.__traceback__))[-1]
    path = frame.f_code.co_filename
    if os.path.dirname(path).startswith(OURS):
        return False
    installed = "site-packages" in path or "dist-packages" in path
    return installed or not getline(path, line).strip().startswith(("raise", "assert"))


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in text_of(error).splitlines() if line.strip()]
    name = type(error).__name__
    return f"{name}: {lines[0][:SHOWN].rstrip('.:; ')}" if lines else name
