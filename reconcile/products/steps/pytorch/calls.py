"""Hooks that report each call of a model and each optimizer step of a training loop, with a key of shapes and modes.

The callbacks of training libraries count the first step of each key and reuse its count for later steps with the same key.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from itertools import count
from typing import Any

import torch
from torch.optim import optimizer as optimizer_hooks

from ....adapters.pytorch.tracing.wrapped_functions import wrap_function

PLAIN = (bool, int, str)
NEVER_RUN = (torch.nn.ModuleList, torch.nn.ModuleDict, torch.nn.ParameterList, torch.nn.ParameterDict)
"""Modules that only hold others or weights: their mode says nothing."""
DEEPEST = 4
"""An object in a batch is looked into this far."""


_UNKNOWN = count()


def describe_tensors(value: Any, name: str = "", depth: int = 0) -> Iterator[str]:
    """Every tensor of a call or a batch by its type and shape, and the words and whole numbers that stand beside them.

    Numbers and words within lists are data, and so are fractions: they are left out. What cannot be looked into is like nothing
    else.
    """
    try:
        yield from _describe_tensors(value, name, depth)
    except Exception:  # whatever an object of the program does
        yield f"{name}{type(value).__name__} {next(_UNKNOWN)}"


def _describe_tensors(value: Any, name: str, depth: int) -> Iterator[str]:
    if getattr(value, "is_nested", False):
        value = list(value.unbind())
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        gradients = " requires_grad" if getattr(value, "requires_grad", False) else ""
        yield f"{name}{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)}{gradients}"
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from describe_tensors(item, f"{name}{key} ", depth + 1)
    elif isinstance(value, (list, tuple)):
        if depth:
            yield f"{name}{len(value)} of:"
        for item in value:
            if not isinstance(item, PLAIN):
                yield from describe_tensors(item, name, depth + 1)
    elif isinstance(value, PLAIN):
        yield f"{name}{value!r}"
    elif depth < DEEPEST and hasattr(value, "__dict__") and not callable(value):
        yield from describe_tensors(vars(value), f"{name}{type(value).__name__} ", depth + 1)


def outermost(model: torch.nn.Module) -> Iterator[torch.nn.Module]:
    """The modules that a model holds directly; a list of modules is never called, its modules are."""
    for child in model.children():
        if isinstance(child, (torch.nn.ModuleList, torch.nn.ModuleDict)):
            yield from outermost(child)
        else:
            yield child


class Calls:
    """Tells ``called`` of every call of a model, before it runs, and ``stepped`` of every step of an optimizer, until ``close``.

    ``called`` gets the call as ``described``, and a function that tells a step's context in which call it begins. ``stepped``
    gets the optimizer, and whether that was the step that made its state: it may run other ops than those after it. With
    ``inner`` calls of the modules that the model holds are told as well, for a model that is not called as a whole.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        called: Callable[[tuple[str, ...], Callable[[Any], None]], None],
        stepped: Callable[[Any, bool], None],
        inner: bool = False,
    ) -> None:
        self._called, self._stepped = called, stepped
        self._cold: list[bool] = []
        self._model = model
        self._compiled = False  # whether what torch.compile made of the model runs
        self.refresh()
        hooked = {model: None, **dict.fromkeys(outermost(model) if inner else ())}
        self._handles = [m.register_forward_pre_hook(self._before, with_kwargs=True, prepend=True) for m in hooked]
        self._handles += [
            optimizer_hooks.register_optimizer_step_pre_hook(self._note_step_begin),
            optimizer_hooks.register_optimizer_step_post_hook(self._note_step_end),
        ]
        self._uncompile = self._follow_compiled()

    def close(self) -> None:
        """Take the hooks away."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self._uncompile()

    def state(self) -> tuple[Any, ...]:
        """What changes a step of the same shapes: which weights take part, which have a gradient already that another is added
        to, and which modules are in training mode."""
        weights = tuple([(w.requires_grad, w.grad is None) for w in self._weights])
        return weights, tuple([m.training for m in self._modules])

    def refresh(self) -> None:
        """Find the model's modules again, which may be made in its first call."""
        self._weights = list(self._model.parameters())
        self._modules = [m for m in self._model.modules() if not isinstance(m, NEVER_RUN)]

    def _follow_compiled(self) -> Callable[[], None]:
        """Be told where what torch.compile made of the model is called: hooks of the model itself are compiled with it."""
        if "torch._dynamo" not in sys.modules:
            return lambda: None
        from torch._dynamo.eval_frame import OptimizedModule

        def watch(call: Callable[..., Any]) -> Callable[..., Any]:
            def call_compiled(compiled: Any, *args: Any, **kwargs: Any) -> Any:
                if compiled._orig_mod is not self._model or self._compiled:
                    return call(compiled, *args, **kwargs)
                self._tell(args, kwargs, lambda _step: None)  # its context is told of this call
                self._compiled = True
                try:
                    return call(compiled, *args, **kwargs)
                finally:
                    self._compiled = False

            return call_compiled

        stack = ExitStack()
        stack.enter_context(wrap_function(OptimizedModule, "__call__", watch))
        return stack.close

    def _before(self, module: torch.nn.Module, args: Any, kwargs: Any) -> None:
        if torch.compiler.is_compiling() or torch._C._current_autograd_node() is not None:
            return  # a compiler reads the hook, and a checkpoint calls the module again
        if not (self._compiled and module is self._model):
            self._tell(args, kwargs, lambda step: step.inside(module, args, kwargs))

    def _tell(self, args: Any, kwargs: Any, inside: Callable[[Any], None]) -> None:
        mode = () if torch.is_grad_enabled() else ("no_grad",)
        self._called((*describe_tensors(args), *describe_tensors(kwargs), *mode), inside)

    def _note_step_begin(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        self._cold.append(not optimizer.state)

    def _note_step_end(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        self._stepped(optimizer, self._cold.pop() if self._cold else False)
