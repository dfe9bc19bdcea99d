"""Wraps a PyTorch model whatever its signature is: a counter passes a flat list of tensors, the model gets its own arguments.

Python 3.8.
"""

import random
import sys
from typing import Any, Dict, List, Mapping, Tuple

import torch

from ..shared import keras_model, nested
from . import decoding
from .lazy import parts_in, take_lazy


def is_leaf(value: Any) -> bool:
    """Whether an argument is a tensor: one at hand (PyTorch's or numpy's), or the shape and dtype of one to make."""
    return isinstance(value, torch.Tensor) or (hasattr(value, "shape") and hasattr(value, "dtype"))


def hooked_before(module: torch.nn.Module, hook: Any, **how: Any) -> Any:
    """Hooks a module before its forward, also a ScriptModule, whose own register_* refuses; returns the hook's handle."""
    _pass_by(module._forward_pre_hooks)
    return torch.nn.Module.register_forward_pre_hook(module, hook, **how)


def hooked_after(module: torch.nn.Module, hook: Any, **how: Any) -> Any:
    """As ``hooked_before``, but after the module's forward."""
    _pass_by(module._forward_hooks)
    return torch.nn.Module.register_forward_hook(module, hook, **how)


def _pass_by(hooks: Mapping[int, Any]) -> None:
    """A ScriptModule's hooks have the numbers from 0 on, which the next handles of this process would take from them."""
    from torch.utils.hooks import RemovableHandle

    RemovableHandle.next_id = max(RemovableHandle.next_id, 1 + max(hooks, default=-1))


def same_numbers() -> None:
    """Seed the random generators, so that all calls draw equal numbers: where they decide sizes, all count the same work."""
    torch.manual_seed(0)
    random.seed(0)
    numbers = sys.modules.get("numpy.random")
    if numbers is not None:
        numbers.seed(0)


class CallAdapter:
    """Replaces the ``forward`` of a model with any signature: a counter passes tensors one by one, the model gets its arguments.

    Its results are tensors in tuples: TorchScript's tracer, which fvcore uses, takes nothing else, and passing results
    on is no work.  It replaces ``forward`` rather than hook the module (see ModulePath), except where the module has
    hooks of its own, which get the same arguments and results as without it.
    """

    def __init__(self, module: torch.nn.Module, arguments: nested.Arguments) -> None:
        self.arguments = arguments
        self.forward = module.forward
        self.returned: Any = None  # by the last call, with what is no tensor
        self.hooked_before = bool(module._forward_pre_hooks)
        self.hooked_after = bool(module._forward_hooks)
        self.inside = False
        if self.hooked_before:
            hooked_before(module, self._before, with_kwargs=True, prepend=True)
        if self.hooked_after:
            hooked_after(module, self._after)
        module.forward = self._forward

    def _before(self, _module: Any, tensors: Tuple[Any, ...], named: Dict[str, Any]) -> nested.Arguments:
        return (tensors, named) if self.inside else self._fill_arguments(tensors)

    def _fill_arguments(self, tensors: Tuple[Any, ...]) -> nested.Arguments:
        """The arguments of one call: a cache is as it was before the first, although every call appends to its own."""
        same_numbers()
        positional, named = nested.fill_leaves(self.arguments, is_leaf, tensors)
        return positional, {name: decoding.copy_cache(value) for name, value in named.items()}

    def _after(self, _module: Any, _inputs: Any, outputs: Any) -> Any:
        return outputs if self.inside else self._give_tensors(outputs)

    def _forward(self, *given: Any, **named: Any) -> Any:
        if self.inside:  # a model that calls itself knows how
            return self.forward(*given, **named)
        if not self.hooked_before:
            given, named = self._fill_arguments(given)
        self.inside = True
        try:
            outputs = self.forward(*given, **named)
        finally:
            self.inside = False
        return outputs if self.hooked_after else self._give_tensors(outputs)

    def _give_tensors(self, outputs: Any) -> Any:
        """The tensors of these outputs as a tuple, where there is more to them than tensors in tuples; all of a generator."""
        self.returned = outputs = take_lazy(outputs)
        found = tuple(tensors_out(outputs))
        return found if found and not _is_plain(outputs) else outputs


class KerasCallAdapter(CallAdapter):
    """The same for a Keras model, whose ``__call__`` checks arguments before ``forward``: a subclass replaces ``__call__``."""

    def __init__(self, module: Any, arguments: nested.Arguments) -> None:
        self.arguments = arguments
        self.inside = False
        made = type(module)

        def __call__(model: Any, *given: Any, **named: Any) -> Any:
            if self.inside:
                return made.__call__(model, *given, **named)
            same_numbers()
            positional, named = keras_model.as_taken(model, *nested.fill_leaves(self.arguments, is_leaf, given))
            if model.training:  # PyTorch's mode, which Keras ignores
                named = dict(named, training=True)
            self.inside = True
            try:
                return self._give_tensors(made.__call__(model, *positional, **named))
            finally:
                self.inside = False

        told = {"__call__": __call__, "__module__": made.__module__, "__qualname__": made.__qualname__}
        module.__class__ = type(made.__name__, (made,), told)


def find_returned(module: torch.nn.Module, result: Any) -> Any:
    """All that the model's own forward returned in the last call, whose result this is."""
    adapter = getattr(module.forward, "__self__", None)
    return adapter.returned if isinstance(adapter, CallAdapter) else result


def find_objects(module: torch.nn.Module) -> List[Any]:
    """Objects among a model's arguments, which each call gets as they are."""
    adapter = getattr(module.forward, "__self__", None)
    given = adapter.arguments if isinstance(adapter, CallAdapter) else ()
    return nested.leaves(given, lambda value: not (is_leaf(value) or isinstance(value, (tuple, list, Mapping))))


def _is_plain(value: Any) -> bool:
    return isinstance(value, torch.Tensor) or (type(value) in (tuple, list) and all(_is_plain(item) for item in value))


def tensors_out(value: Any) -> List[torch.Tensor]:
    """Tensors in a model's outputs: a tensor, or tuples, lists, sets, mappings and dataclasses of them."""
    return [part for part in parts_in(value) if isinstance(part, torch.Tensor)]
