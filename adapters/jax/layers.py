"""Finds Flax nnx objects, and runs each nnx module and each Keras layer in a JAX name scope of its path: equations get layers.

A module carries its path as a static attribute, which is kept where ``nnx.scan``, ``nnx.vmap`` and ``nnx.remat`` split it and
build another object.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import jax

from ..shared import keras_model

LAYER = "layer:"
"""Prefix of a name scope that is added here and gives a layer's whole path."""
PATH = "layer_of_reconcile"
"""The attribute with a module's path, only on the objects that are made for a trace."""


def of_nnx(value: Any) -> Any:
    """The imported Python module ``flax.nnx`` if ``value`` is one of its ``Module`` objects, otherwise None."""
    nnx = sys.modules.get("flax.nnx")
    return nnx if nnx is not None and isinstance(value, nnx.Module) else None


def is_object(value: Any) -> bool:
    """Whether it is an object of Flax's nnx that a call may write to: a module, an optimiser, a metric."""
    nnx = sys.modules.get("flax.nnx")
    names = ("Module", "Optimizer", "Pytree", "Variable") if nnx is not None else ()
    return isinstance(value, tuple(getattr(nnx, name) for name in names if hasattr(nnx, name)))


def inside(tree: Any) -> Any:
    """The imported Python module ``flax.nnx`` if a tree holds an object as ``is_object`` finds them, otherwise None."""
    found = any(map(is_object, jax.tree.leaves(tree, is_leaf=is_object)))
    return sys.modules["flax.nnx"] if found else None


Way = Callable[[tuple[Any, ...]], tuple[Any, ...]]
"""Makes a module's path of the way to it through a tree."""


def run_in_scopes(made: Callable[[], Any], call: Callable[[Any], Any], nnx: Any, path: Way = tuple) -> Any:
    """``call(made())``, each module of that tree within a scope of its path; ``made`` makes new objects at every call."""
    tree = made()
    for module, its in _paths(tree, nnx, path):
        setattr(module, PATH, its)
    try:
        with _scope_calls(tree, nnx, {}):
            return call(tree)
    except Exception:  # it compares modules, and two at different paths differ now: then those taken apart have no name
        tree = made()
        with _scope_calls(tree, nnx, {id(module): its for module, its in _paths(tree, nnx, path)}):
            return call(tree)


def _paths(tree: Any, nnx: Any, path: Way) -> list[tuple[Any, str]]:
    return [(module, ".".join(map(str, path(way)))) for way, module in nnx.iter_modules(tree)]


def of_arguments(function: Any, objects: Sequence[Any], ways: Sequence[tuple[Any, ...]], nnx: Any) -> Way:
    """A function that gives the path of a module in one of a call's objects, which stand at these ``ways`` in (positional,
    named, others): without the name of the argument, unless several have modules."""
    several = len({way[:2] for way, made in zip(ways, objects, strict=True) if any(nnx.iter_modules(made))}) > 1
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        names = []

    def path(way: tuple[Any, ...]) -> tuple[Any, ...]:
        place, *within = way
        kind, argument, *above = ways[place]
        named = names[argument] if kind == 0 and argument < len(names) else argument
        return (*([named] if several else []), *above, *within)

    return path


def _scope_calls(tree: Any, nnx: Any, paths: dict[int, str]) -> ExitStack:
    """Meanwhile a call of a module that carries its path, or has one here, is within a scope of it, if its class is one of this
    tree's."""
    stack = ExitStack()
    makers = {_maker(type(module)) for _, module in nnx.iter_modules(tree)} - {None}
    for kind in makers:
        own = kind.__dict__["__call__"]

        def call_in_scope(self: Any, *args: Any, _own: Any = own, **kwargs: Any) -> Any:
            path = getattr(self, PATH, paths.get(id(self)))
            if path is None:
                return _own(self, *args, **kwargs)
            with jax.named_scope(LAYER + path):
                return _own(self, *args, **kwargs)

        kind.__call__ = functools.wraps(own)(call_in_scope)
        stack.callback(setattr, kind, "__call__", own)
    return stack


def keras_paths(model: Any) -> list[tuple[Any, str]]:
    """Every layer below a Keras model with its path; a recurrent layer's cell is part of that layer."""
    paths = keras_model.layer_paths(model)
    around = {id(layer.cell): path for layer, path in paths if hasattr(layer, "cell")}
    return [(layer, around.get(id(layer), path)) for layer, path in paths]


def of_keras(model: Any) -> AbstractContextManager[None]:
    """Meanwhile a call of a layer below this model is within a scope of its path: Keras' own is lost in a loop's gradient."""
    paths = {id(layer): path for layer, path in keras_paths(model)}
    return keras_model.within_calls(model, lambda layer, _: jax.named_scope(LAYER + paths[id(layer)]))


def _maker(kind: type) -> Any:
    """The class that defines how objects of ``kind`` are called."""
    return next((base for base in kind.__mro__ if "__call__" in base.__dict__), None)
