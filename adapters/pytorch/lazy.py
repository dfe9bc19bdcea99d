"""Outputs that a model computes after its call returns: iterators and futures are run to the end, coroutines are refused.

Python 3.8.
"""

import inspect
from collections.abc import Mapping
from concurrent import futures
from typing import Any, Iterator, List

import torch

from ..shared.refusal import FactoryError

MODEL_RETURNS_LAZY = (
    "the model returns a %s, which computes nothing until your code %s: let it return what that gives, or count your own loop "
    "with reconcile.count."
)
PLAIN = ("builtins", "torch", "numpy")
"""Packages whose objects compute nothing when they are looked at."""
_FUTURES = (futures.Future, *filter(None, [getattr(getattr(torch, "_C", None), "Future", None)]))
_LAZY = (Iterator,) + _FUTURES


def take_lazy(outputs: Any) -> Any:
    """The outputs with all items of the iterators among them, and the results of futures; the same object if there are none.

    Raises FactoryError for a coroutine, for a generator that an object keeps, and for a function where no output is a tensor:
    nothing says what it is called with.
    """
    if any(map(inspect.isawaitable, parts_in(outputs))):
        raise FactoryError(MODEL_RETURNS_LAZY % ("coroutine", "awaits it"))
    taken = _take(outputs)
    parts = list(parts_in(taken))
    if any(map(_is_function, parts)) and not any(isinstance(part, torch.Tensor) for part in parts):
        raise FactoryError(MODEL_RETURNS_LAZY % ("function", "calls it"))
    if any(map(is_unbegun, parts)):
        raise FactoryError(MODEL_RETURNS_LAZY % ("generator in an object", "takes its items"))
    return taken


def refuse_idle(outputs: Any) -> None:
    """Raise FactoryError for an object of the model's own among the outputs of a call in which no operator ran: what computes
    when it is asked for something looks so."""
    for value in parts_in(outputs):
        if type(value).__module__.partition(".")[0] not in PLAIN:
            raise FactoryError(MODEL_RETURNS_LAZY % (type(value).__name__, "asks it for something"))


def find_unbegun(outputs: Any) -> List[Any]:
    """The generators and coroutines in these outputs of which nothing has run."""
    return list(filter(is_unbegun, parts_in(outputs)))


def is_unbegun(value: Any) -> bool:
    """Whether it is a generator or a coroutine of which nothing has run."""
    if inspect.isgenerator(value):
        return bool(inspect.getgeneratorstate(value) == inspect.GEN_CREATED)
    return inspect.iscoroutine(value) and inspect.getcoroutinestate(value) == inspect.CORO_CREATED


def _take(value: Any) -> Any:
    if isinstance(value, _FUTURES):
        return _take(value.result() if isinstance(value, futures.Future) else value.wait())
    if isinstance(value, Iterator):
        return tuple(map(_take, value))
    items = _items(value)
    if items is not None and any(isinstance(part, _LAZY) for part in parts_in(value)):
        return tuple(map(_take, items))
    return value


def parts_in(value: Any) -> Iterator[Any]:
    """What is in tuples, lists, sets, mappings and dataclasses, at any depth; after another object what it keeps unbegun."""
    items = _items(value)
    if items is None:
        yield value
        yield from filter(is_unbegun, getattr(value, "__dict__", {}).values())
    for item in items or ():
        yield from parts_in(item)


def _items(value: Any) -> Any:
    if isinstance(value, Mapping):
        return list(value.values())
    if hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        return [getattr(value, name, None) for name in value.__dataclass_fields__]
    return value if isinstance(value, (tuple, list, set, frozenset)) else None


def _is_function(value: Any) -> bool:
    return callable(value) and not isinstance(value, (type, torch.nn.Module, torch.Tensor))
