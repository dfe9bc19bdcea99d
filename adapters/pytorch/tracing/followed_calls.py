"""Tells whether autograd, forward mode or torch.func (grad, vmap) follows a call, and which operators compute tangents.

A call that is followed is recorded op by op, never as one fused op.  On meta an empty result would have no gradient function, and
gradients that the model then takes would stop there; and a call under torch.func.vmap sees one example of the batch that runs.

In forward mode one call of the program runs the operators of the values and then those of the tangents: ``Tangents`` tells the
latter apart, and the trace marks them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


def is_followed(tensors: list[torch.Tensor]) -> bool:
    """Whether a call on these tensors is followed: by autograd, by forward-mode differentiation or by torch.func."""
    by_autograd = torch.is_grad_enabled() and any(t.requires_grad for t in tensors)
    return by_autograd or is_transformed() or with_tangents()


def is_transformed() -> bool:
    """Whether a transform of torch.func runs: grad, vjp, jvp, vmap, functionalize.  PyTorch 1.13 has no such list."""
    functions: Any = getattr(torch._C, "_functorch", None)
    stack = getattr(functions, "peek_interpreter_stack", None)
    return stack is not None and stack() is not None


def with_tangents() -> bool:
    """Whether a level of forward-mode differentiation is entered (torch.autograd.forward_ad.dual_level)."""
    forward: Any = getattr(torch.autograd, "forward_ad", None)
    return getattr(forward, "_current_level", -1) >= 0


def is_dual(tensor: torch.Tensor) -> bool:
    """Whether a tensor has a tangent at the level that is entered, asked beneath autograd, where a mode of operators stands."""
    here: Any = torch._C
    if not hasattr(here, "_PreserveDispatchKeyGuard"):  # before PyTorch 2.1
        return False
    with pass_autograd():
        return torch._VF._unpack_dual(tensor, level=0)[1] is not None


@contextmanager
def pass_autograd() -> Iterator[None]:
    """Within this, beneath autograd, what is called passes autograd first."""
    here: Any = torch._C
    with here._PreserveDispatchKeyGuard():
        for key in ABOVE:
            here._dispatch_tls_set_dispatch_key_excluded(key, False)
        yield


ABOVE = ("AutogradFunctionality", "ADInplaceOrView")
"""What autograd has passed before a mode of operators is asked."""


class Tangents:
    """Tells the operators that compute tangents: autograd calls them after that of the values, in one call of the program."""

    def __init__(self) -> None:
        self._follow = False

    def begin(self) -> None:
        """The program calls a function."""
        self._follow = False

    def has(self, tensors: list[torch.Tensor]) -> bool:
        """Whether an operator on these computes a tangent."""
        if not with_tangents():
            return False
        if any(map(is_dual, tensors)):
            self._follow = True
            return False
        return self._follow
