"""Detects steps that FlopCounterMode by itself would stop, because its tracker of modules fails on some tensors.

The tracker (module_tracker.py of PyTorch) hooks each tensor that a module takes or returns and that requires a gradient.  It asks
for the gradient function of each, and a view that was made without gradients has none.  Once its hook runs in a backward pass, it
asks whether these functions will run: in autograd.grad, PyTorch refuses to answer that for a leaf whose gradient is wanted.  Here
nothing is hooked, and the same questions are asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn.modules import module as module_hooks
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_flatten
from torch.utils.weak import WeakTensorKeyDictionary

from ....adapters.pytorch.phases import ENGINE
from ....adapters.pytorch.tracing.wrapped_functions import wrap_function
from ....core.message import text_of

RAISES_IN_STEP = (
    "FlopCounterMode raises in this step, because its tracker of modules cannot follow %s: leave flop_counter out"
)
GRADIENT_OF_LEAF = "autograd.grad with respect to a leaf tensor that a module took or returned"
NO_GRADIENT_FUNCTION = "a tensor that a module took or returned without a gradient function (%s)"


@contextmanager
def watch_tracker(stops: Callable[[str], None]) -> Iterator[None]:
    """Within it, ``stops`` is called with the reason if the tracker would stop the program."""
    leaves = WeakTensorKeyDictionary()

    def follow(values: Any) -> None:
        try:
            for tensor in tree_flatten(values)[0]:
                if isinstance(tensor, torch.Tensor) and tensor.requires_grad and tensor.grad_fn is None:
                    with _disable_current_modes():
                        torch.autograd.graph._get_grad_fn_or_grad_acc(tensor)
                    leaves[tensor] = None
        except Exception as error:  # whatever it is, the tracker meets it, too
            stops(RAISES_IN_STEP % (NO_GRADIENT_FUNCTION % text_of(error).rstrip(".")))

    def watch(run: Any) -> Any:
        def run_backward(roots: Any, *args: Any, **kwargs: Any) -> Any:
            gradients = run(roots, *args, **kwargs)
            if not kwargs.get("accumulate_grad") and leaves:
                inputs = args[3] if len(args) > 3 else ()
                reached = [t for t, gradient in zip(inputs, gradients, strict=False) if gradient is not None]
                if any(isinstance(t, torch.Tensor) and t in leaves for t in reached):
                    stops(RAISES_IN_STEP % GRADIENT_OF_LEAF)
            return gradients

        return run_backward

    handles = [
        module_hooks.register_module_forward_pre_hook(lambda _module, inputs: follow(inputs)),
        module_hooks.register_module_forward_hook(lambda _module, _inputs, outputs: follow(outputs)),
    ]
    try:
        with wrap_function(torch.autograd, ENGINE, watch):
            yield
    finally:
        for handle in handles:
            handle.remove()
