"""Caches of functions that models call: what one model leaves there would spare the next its work, or give it tensors on meta.

Python 3.6, torch 1.x and later.
"""

import functools
import gc
from typing import Any, Iterator, List

from .records import tensors_in

CACHE = type(functools.lru_cache()(int))  # type: Any


class Caches(object):
    """The caches of ``functools`` in this process, as they were before a model was made for the first time."""

    def __init__(self):
        # type: () -> None
        self._misses = {id(cache): cache.cache_info().misses for cache in _caches()}

    def forget(self):
        # type: () -> None
        """Empty each cache that got a tensor since then, and each that holds a tensor on meta."""
        for cache in _caches():
            devices = {tensor.device.type for result in _results(cache) for tensor in tensors_in(result)}
            if "meta" in devices or (devices and cache.cache_info().misses > self._misses.get(id(cache), 0)):
                cache.cache_clear()
                self._misses[id(cache)] = 0


def _caches():
    # type: () -> List[Any]
    return [value for value in gc.get_objects() if type(value) is CACHE]


def _results(cache):
    # type: (Any) -> Iterator[Any]
    """The results that it holds, and whatever else it refers to itself."""
    for value in gc.get_referents(cache):
        yield value
        if isinstance(value, dict):
            for result in value.values():
                yield result
