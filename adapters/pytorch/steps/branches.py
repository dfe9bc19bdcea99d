"""Operators that run functions of the program (``torch.cond``), within a step: they are called without PyTorch's compiler.

The compiler leaves frames alone that run beneath a recorder, but not the recorder's own.  The branch that a condition takes is
called as the program would call it: beneath the operator no gradients are followed, and PyTorch gives it those by compiling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

COMPILES = "_hop_compile_and_call"
"""The function of torch._higher_order_ops.utils that calls all of these."""
CONDITION = "_cond_op_wrapper"


@contextmanager
def uncompiled_branches(met: Callable[[str], None]) -> Iterator[None]:
    """Meanwhile nothing is compiled to run them; ``met`` is told of a condition."""
    try:
        from torch._higher_order_ops import utils as module
    except ImportError:
        yield
        return
    compiles = getattr(module, COMPILES, None)
    if compiles is None:  # an older PyTorch
        yield
        return

    def call_uncompiled(function: Any, args: Any, kwargs: Any = None) -> Any:
        if getattr(function, "__name__", "") != CONDITION:
            return function(*args, **(kwargs or {}))
        predicate, if_true, if_false, operands = args
        met("cond")
        return (if_true if predicate else if_false)(*operands)

    setattr(module, COMPILES, call_uncompiled)
    try:
        yield
    finally:
        setattr(module, COMPILES, compiles)
