"""Runs equal layers of a model on meta once: the further ones return what the first returned, and their work is as large.

Two calls are equal if their layers have the same structure (classes, attributes, shapes of weights) and get the same arguments:
on meta nothing else can decide what a layer runs. A layer knows its number, too (``layer_idx``): here no layer has it, so one
that uses its number raises an error, and the model is traced again with every layer (``EqualLayers.unfold``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack
from torch.utils._pytree import tree_flatten, tree_unflatten

from .....core.records import Trace
from ....pytorch.tracing.recorder import Recorder

ATTRIBUTE = "_reconcile_equal_layers"
"""Where a model keeps its ``EqualLayers``."""
FEWEST = 4
"""Layers of the shortest list that is worth it."""
PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.Size)


class NumberRead(Exception):
    """A layer asked for its number among the layers, so equal ones may differ by it."""


class _Number:
    """Stands for a layer's number: it can be passed on, and compared with None; Python refuses arithmetic with it."""

    def _refuse(self, *_given: Any) -> Any:
        raise NumberRead("a layer reads its number")

    __eq__ = __hash__ = __bool__ = __str__ = _refuse


NUMBER = _Number()


class EqualLayers:
    """The lists of layers of one model whose equal calls run once.

    Attributes:
        like: The path of the layer that ran, by that of each layer for which it stands; one that ran stands for itself.
        groups: The path of the layer that ran and the number of layers, by the path of the first of those that are alike for
            every formula, too (``group``).
    """

    def __init__(self, model: torch.nn.Module) -> None:
        self.like: dict[str, str] = {}
        self._calls = Counter[tuple[str, str]]()  # while they were recorded: of a layer, for which the other one ran
        self.groups: dict[str, tuple[str, int]] = {}
        self._ran: dict[str, dict[Any, tuple[str, Any]]] = {}
        self._undo: list[Callable[[], None]] = []
        for path, layers in list(model.named_modules()):
            inside = any(path.startswith(layer + ".") for layer in self.like)
            if isinstance(layers, torch.nn.ModuleList) and len(layers) >= FEWEST and not inside and _are_apart(layers):
                self._fold(path, layers)
        config: Any = getattr(model, "config", None)
        if getattr(config, "use_cache", False):  # a cache keeps what a layer made by the layer's number
            config.use_cache = False
            self._undo.append(partial(setattr, config, "use_cache", True))
        # a trace replaces the model's forward (call_adapter.py), and the next one has to find its own
        self._undo.append(partial(model.__dict__.pop, "forward", None))
        setattr(model, ATTRIBUTE, self)

    def _fold(self, path: str, layers: torch.nn.ModuleList) -> None:
        own = [dict(layer.named_modules()) for layer in layers]
        numbers: dict[tuple[str, str], bool] = {}
        for number, modules in enumerate(own):
            for name, module in modules.items():
                for attribute, value in vars(module).items():
                    if type(value) is int:
                        key = name, attribute
                        numbers[key] = numbers.get(key, True) and value == number
        for number, modules in enumerate(own):
            for name, attribute in (key for key, holds in numbers.items() if holds):
                if name in modules and attribute in vars(modules[name]):
                    modules[name].__dict__[attribute] = NUMBER
                    self._undo.append(partial(modules[name].__dict__.__setitem__, attribute, number))
        for number, layer in enumerate(layers):
            self.like[f"{path}.{number}"] = f"{path}.{number}"
            self._replace_class(layer, path, number)

    def _replace_class(self, layer: torch.nn.Module, path: str, number: int) -> None:
        """Give the layer a class whose forward looks for equal calls; an attribute would pass for a change of the model."""
        kind, structure = type(layer), structure_of(layer)

        def forward(own: Any, *given: Any, **named: Any) -> Any:
            return self._call(path, number, structure, partial(kind.forward, own), *given, **named)

        names = {"forward": forward, "__module__": kind.__module__, "__qualname__": kind.__qualname__}
        layer.__class__ = type(kind.__name__, (kind,), names)
        self._undo.append(partial(setattr, layer, "__class__", kind))

    def _call(
        self, path: str, number: int, structure: Any, forward: Callable[..., Any], *given: Any, **named: Any
    ) -> Any:
        """What the layer returns: its forward's outputs, or others like those of an equal call."""
        if not number:  # a further call of the model: what ran in the one before is not its own
            self._ran[path] = {}
        ran, own = self._ran.setdefault(path, {}), f"{path}.{number}"
        leaves, form = tree_flatten((given, named))
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        first = tensors[0] if tensors else None  # what the layer before returned
        described = (_kind(leaf) if leaf is first else _describe(leaf) for leaf in leaves)
        key = structure, str(form), tuple(described), torch.is_grad_enabled()
        if key in ran:
            like, (_, kinds, form) = ran[key]
            self._note(own, like)
            return tree_unflatten([_make_output(kind, tensors) for kind in kinds], form)
        versions = [tensor._version for tensor in tensors]
        made = forward(*given, **named)
        self._note(own, own)
        outputs, form = tree_flatten(made)
        plain = all(isinstance(leaf, (torch.Tensor, *PLAIN)) for leaf in leaves + outputs)
        if plain and versions == [tensor._version for tensor in tensors]:
            # the arguments are kept, so that no other gets their ids
            ran[key] = own, (leaves, [_output_kind(output, tensors) for output in outputs], form)
        return made

    def _note(self, own: str, like: str) -> None:
        if not any(isinstance(mode, Recorder) for mode in _get_current_dispatch_mode_stack()):
            return  # a trial, which may train nothing
        self._calls[own, like] += 1
        self.like[own] = like

    @property
    def is_uniform(self) -> bool:
        """Whether each layer was like one other at all of its calls, and was called as often as that one."""
        ran = {own: calls for (own, _), calls in self._calls.items()}
        return len(ran) == len(self._calls) and all(calls == ran.get(like) for (_, like), calls in self._calls.items())

    def unfold(self) -> None:
        """Let every layer run from now on."""
        for undo in self._undo:
            undo()
        self.like, self._undo = {}, []

    def group(self, kinds: Mapping[str, Any]) -> dict[str, tuple[str, int]]:
        """``groups``: of the layers for which one ran, those of one kind; ``kinds`` has what formulas count of a layer."""
        found: dict[Any, list[str]] = {}
        for path, like in self.like.items():
            found.setdefault((like, kinds.get(path)), []).append(path)
        self.groups = {paths[0]: (like, len(paths)) for (like, _), paths in found.items()}
        return self.groups

    def layer_of(self, path: str) -> str:
        """The layer that a module is in, or is; '' for none."""
        parts = path.split(".")
        return next((own for end in range(1, 1 + len(parts)) if (own := ".".join(parts[:end])) in self.like), "")

    def copies_of(self, path: str) -> int:
        """How many modules a module stands for: 1 outside of these layers, 0 if another one stands for it."""
        layer = self.layer_of(path)
        return self.groups.get(layer, ("", 0))[1] if layer else 1

    def expand(self, trace: Trace) -> Trace:
        """The trace with each op of a layer that ran in the layers of ``groups`` for which it ran, as often as there are such."""
        placed: dict[str, list[tuple[str, int]]] = {}
        for path, (like, number) in self.groups.items():
            placed.setdefault(like, []).append((path, number))
        ops = []
        for op in trace.ops:
            layer = self.layer_of(op.layer)
            for which, (path, number) in enumerate(placed.get(layer, [(layer, 1)])):
                own = path + op.layer[len(layer) :]
                ops.append(op._replace(id=f"{op.id}/{which}" if which else op.id, layer=own, calls=op.calls * number))
        return trace._replace(ops=tuple(ops), layers=tuple(dict.fromkeys(op.layer for op in ops)))


class _LikeEarlier(torch.autograd.Function):
    """A tensor like an earlier output, with gradients like the tensors that it is made of."""

    @staticmethod
    def forward(ctx: Any, earlier: torch.Tensor, *tensors: torch.Tensor) -> torch.Tensor:
        ctx.tensors = tensors
        return torch.empty_like(earlier)

    @staticmethod
    def backward(ctx: Any, _gradient: torch.Tensor) -> Any:
        needed = zip(ctx.tensors, ctx.needs_input_grad[1:], strict=True)
        return None, *(torch.empty_like(tensor) if needs else None for tensor, needs in needed)


def _are_apart(layers: torch.nn.ModuleList) -> bool:
    """Whether no parameter is in two of the layers, and no layer stands twice."""
    held = [id(tensor) for layer in layers for tensor in layer.parameters()]
    return len(held) == len(set(held)) and len({id(layer) for layer in layers}) == len(layers)


def _kind(value: torch.Tensor) -> Any:
    """What decides what is run on a tensor of meta."""
    return type(value), value.shape, value.stride(), value.dtype, value.requires_grad


def _describe(value: Any) -> Any:
    return (type(value), value) if isinstance(value, PLAIN) else id(value)


def _output_kind(output: Any, tensors: list[torch.Tensor]) -> Any:
    """Which argument an output is; or a tensor like it, or the value itself, and whether a gradient is taken of it."""
    if not isinstance(output, torch.Tensor):
        return output, False
    argument = next((position for position, tensor in enumerate(tensors) if output is tensor), None)
    return (output.detach(), output.requires_grad) if argument is None else argument


def _make_output(kind: Any, tensors: list[torch.Tensor]) -> Any:
    if isinstance(kind, int):
        return tensors[kind]
    made, differentiable = kind
    if not isinstance(made, torch.Tensor):
        return made
    return _LikeEarlier.apply(made, *tensors) if differentiable else torch.empty_like(made)


def structure_of(value: Any) -> Any:
    """What a layer is made of, equal for layers that run the same on the same arguments."""
    if isinstance(value, torch.nn.Module):
        return type(value), tuple((name, structure_of(each)) for name, each in sorted(vars(value).items()))
    if isinstance(value, torch.Tensor):
        return _kind(value)
    if isinstance(value, PLAIN):
        return type(value), value
    if isinstance(value, partial):
        return structure_of((value.func, value.args, value.keywords))
    if isinstance(value, Mapping):
        return type(value), tuple((structure_of(name), structure_of(each)) for name, each in value.items())
    if isinstance(value, (tuple, list)):
        return type(value), tuple(structure_of(each) for each in value)
    if isinstance(value, (set, frozenset)):
        return type(value), frozenset(structure_of(each) for each in value)
    return id(value)
