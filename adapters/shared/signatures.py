"""Inspects a function's signature: which arguments it takes, and how to split given ones into positional and named.

Python 3.6 and standard library only.
"""

import inspect
from typing import Any, Callable, Dict, Mapping, Tuple


def parameters(function: Callable[..., Any]) -> Tuple[Any, ...]:
    """The parameters of a function; () if it does not say which it has."""
    try:
        return tuple(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return ()


def needs_arguments(function: Callable[..., Any], named: Any = ()) -> bool:
    """Whether a function has required parameters besides those of these names."""
    open_ended = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return any(p.default is p.empty and p.kind not in open_ended and p.name not in named for p in parameters(function))


def fits(function: Callable[..., Any], positional: Any, named: Any) -> bool:
    """Whether a function takes these arguments."""
    if not all(isinstance(name, str) for name in named):
        return False
    try:
        inspect.signature(function).bind(*positional, **named)
    except TypeError:
        return False
    except ValueError:  # it does not say what it takes
        pass
    return True


def split_arguments(function: Callable[..., Any], given: Any) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
    """Positional and named arguments: from a pair of a tuple and a dict, a dict, a tuple, or the only one, as the function takes
    them: a dict of weights may be the first argument, and a tuple and a dict the only two."""
    is_tuple = isinstance(given, (tuple, list)) and not hasattr(given, "_fields")
    is_pair = is_tuple and len(given) == 2 and isinstance(given[0], (tuple, list)) and isinstance(given[1], Mapping)
    if is_pair and fits(function, *given):
        return tuple(given[0]), dict(given[1])
    if isinstance(given, Mapping) and fits(function, (), given):
        return (), dict(given)
    return (tuple(given) if is_tuple else (given,)), {}
