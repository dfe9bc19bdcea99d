"""The call of a JAX model as a function of shapes: plain functions, Flax (nnx and linen), callable pytrees (Equinox), Keras.

Nothing is computed or allocated: parameters and inputs are ``jax.ShapeDtypeStruct``.
"""

from __future__ import annotations

import functools
import importlib.metadata
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import jax

from ..shared import adapter, keras_model
from . import closures, layers
from .devices import FLAG

KEYS = ("params", "dropout")
"""Purposes for which a module of Flax linen may draw random numbers."""
DISTRIBUTIONS = ("jax", "jaxlib", "flax", "equinox", "dm-haiku", "keras")


class Call(NamedTuple):
    """One call of a model: ``function(*arguments)`` on shapes, which returns the model's outputs and whatever it writes.

    ``root`` is the scope that stands for the whole model, or ''.  The floating arrays of the first argument are what a training
    step trains; ``paths`` are their names.  ``linen`` is a module of Flax linen with the arguments of its call.  ``devices`` is
    how many devices are told apart: 1 where the call is taken as a whole.  ``values`` are the arrays that the leaves of
    ``arguments`` stand for, None where there is none: what decides how often a loop runs may need them.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    root: str = ""
    paths: tuple[str, ...] = ()
    linen: tuple[Any, tuple[Any, ...], dict[str, Any]] | None = None
    devices: int = 1
    values: tuple[Any, ...] = ()


def versions() -> dict[str, str]:
    """Versions of JAX and of the libraries that are imported."""
    found = {}
    for name in DISTRIBUTIONS:
        if {"dm-haiku": "haiku"}.get(name, name) in sys.modules:
            found[name] = importlib.metadata.version(name)
    return found


def abstract(leaf: Any) -> Any:
    """An array, or an input that a pair states, as its shape and dtype; anything else unchanged. One that lies on several devices
    says so: where it lies is a part of the program."""
    if not adapter.is_leaf(leaf) or isinstance(leaf, jax.ShapeDtypeStruct):
        return leaf
    sharding = None if isinstance(leaf, jax.core.Tracer) else getattr(leaf, "sharding", None)
    several = sharding is not None and len(sharding.device_set) > 1
    return jax.ShapeDtypeStruct(tuple(leaf.shape), leaf.dtype, **({"sharding": sharding} if several else {}))


def of_linen(value: Any) -> bool:
    """Whether it is a module of Flax linen."""
    linen = sys.modules.get("flax.linen")
    return linen is not None and isinstance(value, linen.Module)


def is_tree(value: Any) -> bool:
    """Whether it is a container of arrays that can be called, as modules of Equinox are."""
    return callable(value) and not jax.tree_util.all_leaves([value])


def holds_arrays(value: Any) -> bool:
    """Whether all of its arrays can be reached from outside: a function may close over some."""
    return layers.of_nnx(value) is not None or of_linen(value) or is_tree(value)


def without_arrays(value: Any) -> Any:
    """A model with shapes in the place of its arrays."""
    nnx = layers.of_nnx(value)
    if nnx is not None:
        graph, state = nnx.split(value)
        return nnx.merge(graph, jax.tree.map(abstract, state))
    return jax.tree.map(abstract, value) if is_tree(value) else value


_values_wanted: ContextVar[bool] = ContextVar("_values_wanted", default=False)


@contextmanager
def make_values() -> Iterator[None]:
    """Within this block models and arguments are made as they are, not on shapes."""
    before = _values_wanted.set(True)
    try:
        yield
    finally:
        _values_wanted.reset(before)


def fits_in_memory(call: Call) -> bool:
    """Whether the arrays of a call take at most half of the memory that is free."""
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError):  # another system
        return False
    leaves = (leaf for leaf in jax.tree.leaves(call.arguments) if adapter.is_leaf(leaf))
    return sum(math.prod(leaf.shape) * getattr(leaf.dtype, "itemsize", 8) for leaf in leaves) <= free // 2


def apart() -> bool:
    """Whether the user, or --ranks, made several devices of the host, so that it matters on which of them an array lies."""
    return FLAG in os.environ.get("XLA_FLAGS", "") and jax.device_count() > 1


def shape_factory(maker: Callable[..., Any]) -> Callable[..., Any]:
    """A factory that allocates nothing: it runs on shapes where the model keeps its arrays itself, otherwise as it is. With
    several devices of the host it runs as it is: shapes do not say on which of them an array lies."""

    @functools.wraps(maker)
    def make_on_shapes(*positional: Any, **named: Any) -> Any:
        return on_shapes(lambda: maker(*positional, **named), _abstract_model)

    return make_on_shapes


def _abstract_model(made: Any) -> Any:
    """A model, alone or with its inputs, on shapes; None of one that does not keep its arrays itself."""
    model, *inputs = made if isinstance(made, tuple) and len(made) in (2, 3) else (made,)
    if not holds_arrays(model):
        return None
    shapes = without_arrays(model)
    return (shapes, *jax.tree.map(abstract, tuple(inputs))) if inputs else shapes


def _abstract_values(made: Any) -> Any:
    """Values on shapes; None of those with objects of nnx."""
    return jax.tree.map(abstract, made, is_leaf=adapter.is_leaf) if layers.inside(made) is None else None


def on_shapes(function: Callable[[], Any], to_shapes: Callable[[Any], Any] = _abstract_values) -> Any:
    """What a function returns, with shapes in the place of arrays where ``to_shapes`` does not return None."""
    if apart() or _values_wanted.get():
        return function()
    results: list[Any] = []

    def run_call() -> None:
        results.append(to_shapes(function()))

    try:
        jax.eval_shape(run_call)
    except Exception:  # it needs values, or is broken: then the real run says so
        results.clear()
    return results[0] if results and results[0] is not None else function()


def call(model: Any, positional: tuple[Any, ...], named: dict[str, Any], training: bool = False) -> Call:
    """One call with these arguments, in train mode if the library has one and it is requested.

    Leaves without a shape and a dtype are constants of the program.  A plain function trains its first argument, as
    ``jax.grad`` does, if it has another one.
    """
    around = [] if holds_arrays(model) or keras_model.keras_of(model, "Layer") else closures.find_places(model)
    nnx = layers.inside((positional, named, [place.value for place in around]))
    if nnx is not None and not holds_arrays(model):
        return _of_modules(model, (positional, named), around, nnx)
    leaves, tree = jax.tree.flatten((positional, named), is_leaf=adapter.is_leaf)
    held = [leaf for leaf in leaves if adapter.is_leaf(leaf)]
    arrays = list(map(abstract, held))
    constants = [None if adapter.is_leaf(leaf) else leaf for leaf in leaves]
    where = [adapter.is_leaf(leaf) for leaf in leaves]

    def give_values(values: Any) -> Any:
        rest = iter(values)
        return jax.tree.unflatten(tree, [next(rest) if w else c for w, c in zip(where, constants, strict=True)])

    if keras_model.keras_of(model, "Layer"):
        made = _keras(model, give_values, arrays, training)
    elif layers.of_nnx(model) is not None:
        made = _nnx(model, give_values, arrays, training)
    elif of_linen(model):
        made = _linen(model, give_values, arrays, held)
    elif is_tree(model):
        made = _tree(model, give_values, arrays)
    else:
        made = _function(model, give_values, arrays, positional, named)
    own = made.values or [None] * (len(jax.tree.leaves(made.arguments)) - len(held))
    return made._replace(values=tuple(map(array_or_none, [*own, *held])))


def array_or_none(leaf: Any) -> Any:
    """An array itself, None for what stands for one."""
    has_values = isinstance(leaf, jax.Array) or hasattr(leaf, "__array__")
    return leaf if has_values and not isinstance(leaf, jax.core.Tracer) else None


def _function(
    model: Callable[..., Any], give_values: Callable[[Any], Any], arrays: Any, positional: Any, named: Any
) -> Call:
    """A call of a plain function, which trains its first argument if it has another one."""
    several = len(positional) + len(named) > 1
    first = jax.tree.leaves(positional[:1], is_leaf=adapter.is_leaf) if several else []
    count = sum(map(adapter.is_leaf, first))

    def function(trained: Any, rest: Any) -> Any:
        args, kwargs = give_values([*trained, *rest])
        return model(*args, **kwargs), None

    return Call(function, (arrays[:count], arrays[count:]), "", paths_of(positional[0]) if count else ())


def paths_of(tree: Any) -> tuple[str, ...]:
    """The path of every array in a tree, dots between levels."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree, is_leaf=adapter.is_leaf)
    return tuple(
        jax.tree_util.keystr(path, simple=True, separator=".") for path, leaf in leaves if adapter.is_leaf(leaf)
    )


def parameters(model: Any, call: Call) -> dict[str, int]:
    """The elements of what each module of a model trains; {} for a function, whose first argument may hold more than that."""
    found: dict[str, int] = {}
    leaves = jax.tree.leaves(call.arguments[0]) if holds_arrays(model) else []
    for path, leaf in zip(call.paths, leaves, strict=True) if len(call.paths) == len(leaves) else ():
        owner = path.rpartition(".")[0]
        found[owner] = found.get(owner, 0) + math.prod(leaf.shape)
    return found


def anew(tree: Any) -> Any:
    """The same tree with new variables of nnx: those that were made outside of a gradient may not be written to inside it."""
    return jax.tree.map(lambda leaf: leaf, tree)


def _nnx(model: Any, given: Callable[[Any], Any], arrays: Any, training: bool) -> Call:
    """A call of the merged module; what it writes into its own variables is a result as well."""
    nnx = layers.of_nnx(model)
    graph, trained, rest = nnx.split(model, nnx.Param, ...)

    def function(trained: Any, rest: Any, values: Any) -> Any:
        args, kwargs = given(values)

        def call(merged: Any) -> Any:
            if training:
                merged.train()
            return merged(*args, **kwargs), nnx.state(merged)

        return layers.run_in_scopes(lambda: nnx.merge(graph, *anew((trained, rest))), call, nnx)

    paths = tuple(".".join(map(str, path)) for path, _ in nnx.to_flat_state(trained))
    shapes = (jax.tree.map(abstract, trained), jax.tree.map(abstract, rest))
    return Call(function, (*shapes, arrays), "", paths, values=tuple(jax.tree.leaves((trained, rest))))


def _of_modules(model: Callable[..., Any], arguments: Any, around: Sequence[closures.Place], nnx: Any) -> Call:
    """A call of a function that is given objects of nnx, or reaches them ``around`` it, and what it writes into them: their new
    state is a result as well."""
    whole = (*arguments, {place.name: place.value for place in around})
    found, tree = jax.tree_util.tree_flatten_with_path(
        whole, is_leaf=lambda v: layers.is_object(v) or adapter.is_leaf(v)
    )
    objects = {at: leaf for at, (_, leaf) in enumerate(found) if layers.is_object(leaf)}
    arrays = {at: abstract(leaf) for at, (_, leaf) in enumerate(found) if at not in objects and adapter.is_leaf(leaf)}
    keys = [
        tuple(key.key if hasattr(key, "key") else getattr(key, "idx", str(key)) for key in found[at][0])
        for at in objects
    ]
    graph, trained, rest = nnx.split(list(objects.values()), nnx.Param, ...)
    path = layers.of_arguments(model, list(objects.values()), keys, nnx)

    def function(trained: Any, rest: Any, values: Any) -> Any:
        def call(ours: Any) -> Any:
            given = {**dict(zip(objects, ours, strict=True)), **dict(zip(arrays, values, strict=True))}
            args, kwargs, others = jax.tree.unflatten(tree, [given.get(at, leaf) for at, (_, leaf) in enumerate(found)])
            jax.clear_caches()  # a program that was kept holds objects of an earlier trace
            with closures.hold_values(around, [others[place.name] for place in around]):
                result = model(*args, **kwargs)
            return nnx.state([result]) if layers.inside(result) else result, nnx.state(ours)

        return layers.run_in_scopes(lambda: nnx.merge(graph, *anew((trained, rest))), call, nnx, path)

    paths = tuple(".".join(map(str, path(way))) for way, _ in nnx.to_flat_state(trained))
    shapes = (jax.tree.map(abstract, trained), jax.tree.map(abstract, rest))
    values = [*jax.tree.leaves((trained, rest)), *(found[at][1] for at in arrays)]
    return Call(function, (*shapes, list(arrays.values())), "", paths, values=tuple(map(array_or_none, values)))


def _linen(model: Any, given: Callable[[Any], Any], arrays: Any, held: Any) -> Call:
    """``apply`` with variables of the shapes that ``init`` makes, and with their values where these are wanted. What it writes
    into collections other than the parameters, as a batch norm in training does, is a result as well."""
    keys = {name: jax.eval_shape(lambda: jax.random.key(0)) for name in KEYS}

    def initial(keys: Any, values: Any) -> Any:
        args, kwargs = given(values)
        return model.init(keys, *args, **kwargs)

    rest = dict(jax.eval_shape(initial, keys, arrays))
    trained = rest.pop("params", {})

    def function(trained: Any, rest: Any, keys: Any, values: Any) -> Any:
        args, kwargs = given(values)
        return model.apply({"params": trained, **rest}, *args, rngs=keys, mutable=list(rest), **kwargs)

    args, kwargs = given(arrays)
    whole = (model, args, kwargs)
    values: tuple[Any, ...] = ()
    if _values_wanted.get() and all(array_or_none(leaf) is not None for leaf in held):
        own = {name: jax.random.key(0) for name in KEYS}
        made = dict(jax.jit(initial)(own, held))
        values = tuple(jax.tree.leaves((made.pop("params", {}), made, own)))
    name = model.name or type(model).__name__
    return Call(function, (trained, rest, keys, arrays), name, paths_of(trained), whole, values=values)


def _tree(model: Any, given: Callable[[Any], Any], arrays: Any) -> Call:
    """A call of a container of arrays, with shapes in their place."""
    leaves, tree = jax.tree.flatten(model)
    held = [adapter.is_leaf(leaf) for leaf in leaves]

    def function(own: Any, values: Any) -> Any:
        args, kwargs = given(values)
        rest = iter(own)
        whole = jax.tree.unflatten(tree, [next(rest) if h else leaf for h, leaf in zip(held, leaves, strict=True)])
        return whole(*args, **kwargs), None

    own = tuple(leaf for leaf, h in zip(leaves, held, strict=True) if h)
    return Call(function, (list(map(abstract, own)), arrays), "", paths_of(model), values=own)


def _keras(model: Any, given: Callable[[Any], Any], arrays: Any, training: bool) -> Call:
    """``stateless_call`` of a Keras model; in training it also returns the new values of its non-trainable variables."""
    if not model.built:
        args, kwargs = keras_model.as_taken(model, *given(arrays))
        model.build(*(tuple(a.shape) for a in args), **{f"{name}_shape": tuple(a.shape) for name, a in kwargs.items()})
    states = [[v.value for v in some] for some in (model.trainable_variables, model.non_trainable_variables)]

    def function(trainable: Any, others: Any, values: Any) -> Any:
        args, kwargs = keras_model.as_taken(model, *given(values))
        if training and getattr(model, "_call_has_training_arg", True):
            kwargs = {**kwargs, "training": True}
        with layers.of_keras(model):
            outputs, changed = model.stateless_call(trainable, others, *args, **kwargs)
        return outputs, changed if training else None

    owners = {id(v): path for layer, path in layers.keras_paths(model) for v in layer.trainable_variables}
    paths = tuple(".".join(filter(None, (owners.get(id(v), ""), v.name))) for v in model.trainable_variables)
    shapes = [list(map(abstract, some)) for some in states]
    return Call(function, (*shapes, arrays), model.name, paths, values=tuple(states[0] + states[1]))
