"""Caches of functions that a model calls while it is made: what they keep of a model on meta is of no use to one in memory.

Python 3.6, torch 1.x and later.
"""

import functools
import gc
from typing import Any, Iterator

from .records import tensors_in

CACHE = type(functools.lru_cache()(int))  # type: Any


def forget_meta():
    # type: () -> None
    """Empty every cache of ``functools`` that holds a tensor on meta."""
    for cache in [value for value in gc.get_objects() if type(value) is CACHE]:
        if any(tensor.device.type == "meta" for result in _results(cache) for tensor in tensors_in(result)):
            cache.cache_clear()


def _results(cache):
    # type: (Any) -> Iterator[Any]
    """The results that it holds, and whatever else it refers to itself."""
    for value in gc.get_referents(cache):
        yield value
        if isinstance(value, dict):
            for result in value.values():
                yield result
