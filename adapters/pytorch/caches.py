"""Caches of functions that models call: what one run leaves there would spare the next its work, or give it tensors on meta.

Only caches of ``functools`` that are made after ``watch`` are known: those of the model's own libraries, in a worker.
Python 3.6, torch 1.x and later.
"""

import functools
import gc
import sys
import weakref
from typing import Any

_WATCHED = weakref.WeakSet()  # type: Any
_MAKE = functools.lru_cache


def watch():
    # type: () -> None
    """Note every cache that is made from now on. It remains the one that functools makes.

    Before Python 3.9 a cache cannot be noted without keeping it; the PyTorch of such a Python makes no model on meta.
    """
    if sys.version_info < (3, 9):
        return

    @functools.wraps(_MAKE)
    def lru_cache(*args, **settings):
        # type: (*Any, **Any) -> Any
        made = _MAKE(*args, **settings)
        if hasattr(made, "cache_clear"):  # @lru_cache without parentheses
            _WATCHED.add(made)
            return made

        def decorated(function):
            # type: (Any) -> Any
            cache = made(function)
            _WATCHED.add(cache)
            return cache

        return decorated

    functools.lru_cache = lru_cache


def forget():
    # type: () -> None
    """Empty the watched caches that hold tensors or modules; others, such as a registry, stay."""
    for cache in list(_WATCHED):
        if cache.cache_info().currsize and any(_holds_tensors(value) for value in gc.get_referents(cache)):
            cache.cache_clear()


def _holds_tensors(value):
    # type: (Any) -> bool
    import torch

    if isinstance(value, dict):
        return any(_holds_tensors(item) for item in value.values())
    if isinstance(value, (tuple, list)):
        return any(_holds_tensors(item) for item in value)
    return isinstance(value, (torch.Tensor, torch.nn.Module))
