"""Whether PyTorch follows a call, so that more comes of it than its result: gradients, tangents, a whole batch.

Such a call is never recorded as one op.  On meta a result that stands in would have no gradient function, and what a model
then takes gradients of would lead nowhere; and what torch.func.vmap calls gets one example of the batch that runs.
"""

from typing import Any, List

import torch


def is_followed(tensors):
    # type: (List[torch.Tensor]) -> bool
    """Whether a call on these tensors is followed: by autograd, by forward-mode differentiation or by torch.func."""
    by_autograd = torch.is_grad_enabled() and any(t.requires_grad for t in tensors)
    return by_autograd or is_transformed() or _with_tangents()


def is_transformed():
    # type: () -> bool
    """Whether a transform of torch.func runs: grad, vjp, jvp, vmap, functionalize.  PyTorch 1.13 has no such list."""
    functions = getattr(torch._C, "_functorch", None)  # type: Any
    stack = getattr(functions, "peek_interpreter_stack", None)
    return stack is not None and stack() is not None


def _with_tangents():
    # type: () -> bool
    """Whether a level of forward-mode differentiation is entered (torch.autograd.forward_ad.dual_level)."""
    forward = getattr(torch.autograd, "forward_ad", None)  # type: Any
    return getattr(forward, "_current_level", -1) >= 0
