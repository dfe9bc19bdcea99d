"""Runs ``torch.cond`` and other operators with functions as arguments without torch.compile while a program's step is recorded.

The compiler skips frames that run beneath a recorder's mode, but not the recorder's own.  The branch that a condition selects is
called as a plain function, so that autograd follows it: beneath the operator it does not, and PyTorch gets the branch's gradients
by compiling it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..tracing.wrapped_functions import wrap_function

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
    if not hasattr(module, COMPILES):  # an older PyTorch
        yield
        return

    def call_uncompiled(function: Any, args: Any, kwargs: Any = None) -> Any:
        if getattr(function, "__name__", "") != CONDITION:
            return function(*args, **(kwargs or {}))
        predicate, if_true, if_false, operands = args
        met("cond")
        return (if_true if predicate else if_false)(*operands)

    with wrap_function(module, COMPILES, lambda _compiles: call_uncompiled):
        yield
