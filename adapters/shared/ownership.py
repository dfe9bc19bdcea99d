"""Which framework a user's value belongs to, by the top-level packages of its class or function.

Python 3.6 and standard library only.
"""

import functools
import types
from typing import Any, Set

from . import keras_model

KERAS = {"keras", "tf_keras"}
"""Packages whose objects belong to the framework that Keras runs on."""


def is_function(value: Any) -> bool:
    """Whether it is a function, a method or a partial call: it may make a model of another framework than the one that it is
    from. What a library compiled is an object of its own."""
    return isinstance(value, (types.FunctionType, types.BuiltinFunctionType, types.MethodType, functools.partial))


def packages_of(value: Any) -> Set[str]:
    """The top-level packages of a value's class and its bases; of a function, those that define and decorate it; of a method,
    those of its object."""
    if isinstance(value, functools.partial):
        return packages_of(value.func)
    if isinstance(value, types.MethodType):
        return packages_of(value.__self__)
    modules = [getattr(base, "__module__", None) for base in type(value).__mro__]
    if is_function(value):  # a decorator copies the name of its function's module, but has its own globals
        modules += [getattr(value, "__module__", None), getattr(value, "__globals__", {}).get("__name__")]
    return {name.partition(".")[0] for name in modules if isinstance(name, str)}


def belongs(value: Any, packages: Set[str], backend: str) -> bool:
    """Whether a value comes from one of these packages, or from Keras on this ``backend``; '' for none."""
    found = packages_of(value)
    if not found & KERAS:
        return bool(found & packages)
    return bool(backend) and ((keras_model.backend() if "keras" in found else "") or "tensorflow") == backend
