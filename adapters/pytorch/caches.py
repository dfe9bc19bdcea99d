"""Empties ``functools`` caches between runs of a model, so that no run reuses another run's results or gets its meta tensors.

In a worker, only caches that the model's own libraries make after ``watch`` are emptied; in the caller's own process all of
them that hold a tensor on meta.  ``imported_on`` sets the device for modules that are imported meanwhile.  Python 3.8, torch
1.x and later.
"""

import functools
import gc
import importlib
import sys
import weakref
from contextlib import contextmanager
from typing import Any, Iterator, List

_WATCHED: Any = weakref.WeakSet()
_MAKE = functools.lru_cache
_WENT_TO_META: List[bool] = []


def watch() -> None:
    """Note every cache that is made from now on. It remains the one that functools makes.

    Before Python 3.9 a cache cannot be noted without keeping it; the PyTorch of such a Python makes no model on meta.
    """
    if sys.version_info < (3, 9):
        return

    @functools.wraps(_MAKE)
    def lru_cache(*args: Any, **settings: Any) -> Any:
        made = _MAKE(*args, **settings)
        if hasattr(made, "cache_clear"):  # @lru_cache without parentheses
            _WATCHED.add(made)
            return made

        def decorate_function(function: Any) -> Any:
            cache = made(function)
            _WATCHED.add(cache)
            return cache

        return decorate_function

    functools.lru_cache = lru_cache


def forget() -> None:
    """Empty the watched caches that hold tensors or modules; others, such as a registry, stay."""
    for cache in list(_WATCHED):
        if cache.cache_info().currsize and any(_holds_tensors(value) for value in gc.get_referents(cache)):
            cache.cache_clear()


def went_to_meta() -> None:
    """Note that a model of this process runs on meta."""
    _WENT_TO_META[:] = [True]


def forget_meta() -> None:
    """Empty every cache of this process that holds a tensor on meta: a later call by the user would compute with it.

    It looks at every object in the process, so it does so only if a model ran on meta.
    """
    if not _WENT_TO_META:
        return
    _WENT_TO_META.clear()
    kind = type(_MAKE()(int))
    # by its own type: isinstance asks an object for its class, which a proxy of one that is gone answers by an error
    for cache in [held for held in gc.get_objects() if issubclass(type(held), kind)]:
        if cache.cache_info().currsize and any(_holds_tensors(value, True) for value in gc.get_referents(cache)):
            cache.cache_clear()


@contextmanager
def imported_on(device: str) -> Iterator[None]:
    """Meanwhile a module that is imported makes its own tensors on that device, whatever the default is where it is imported."""
    import torch

    loader = importlib._bootstrap_external._LoaderBasics  # type: ignore[attr-defined]
    execute = loader.exec_module

    def exec_module(self: Any, module: Any) -> None:
        with torch.device(device):
            execute(self, module)

    loader.exec_module = exec_module
    try:
        yield
    finally:
        loader.exec_module = execute


def _holds_tensors(value: Any, on_meta: bool = False) -> bool:
    import torch

    if isinstance(value, dict):
        return any(_holds_tensors(item, on_meta) for item in value.values())
    if isinstance(value, (tuple, list)):
        return any(_holds_tensors(item, on_meta) for item in value)
    if isinstance(value, torch.nn.Module):
        return not on_meta or any(tensor.is_meta for tensor in value.parameters())
    return isinstance(value, torch.Tensor) and (not on_meta or value.is_meta)
