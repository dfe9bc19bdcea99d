"""Maps, flattens, fills and describes a model's arguments: nested tuples, lists and dicts with tensors as leaves.

Python 3.6 and standard library only.
"""

from typing import Any, Callable, Dict, Iterable, List, Mapping, Tuple

Arguments = Tuple[Tuple[Any, ...], Dict[str, Any]]
"""Positional and named arguments of one call."""


def change_leaves(value: Any, is_leaf: Callable[[Any], bool], change: Callable[[Any], Any]) -> Any:
    """The same structure with every leaf changed; anything that is neither leaf nor structure stays unchanged."""
    if is_leaf(value):
        return change(value)
    if isinstance(value, tuple):
        items = [change_leaves(item, is_leaf, change) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, list):
        return [change_leaves(item, is_leaf, change) for item in value]
    if isinstance(value, Mapping):
        return {key: change_leaves(item, is_leaf, change) for key, item in value.items()}
    return value


def leaves(value: Any, is_leaf: Callable[[Any], bool]) -> List[Any]:
    """The leaves in order."""
    collected: List[Any] = []
    change_leaves(value, is_leaf, collected.append)
    return collected


def fill_leaves(value: Any, is_leaf: Callable[[Any], bool], new: Iterable[Any]) -> Any:
    """The same structure with new leaves, in the order of ``leaves``."""
    rest = iter(new)
    return change_leaves(value, is_leaf, lambda _leaf: next(rest))


def describe_arguments(arguments: Arguments, is_leaf: Callable[[Any], bool], tell: Callable[[Any], str]) -> str:
    """The arguments of a call in one line: ``float32 (1, 3), mask=int64 (1, 128)``."""

    def text(value: Any) -> str:
        if is_leaf(value):
            return tell(value)
        if isinstance(value, Mapping):
            return "{" + ", ".join(f"{key}: {text(item)}" for key, item in value.items()) + "}"
        fields = getattr(value, "_fields", None)  # of a named tuple: some have dozens, of which a call gives a few
        if isinstance(value, tuple) and fields:
            items = [f"{name}={text(item)}" for name, item in zip(fields, value) if item is not None]
            return f"{type(value).__name__}({', '.join(items)})"
        if isinstance(value, (tuple, list)):
            ends = "()" if isinstance(value, tuple) else "[]"
            return ends[0] + ", ".join(text(item) for item in value) + ends[1]
        return " ".join(repr(value).split())[:40]

    positional, named = arguments
    return ", ".join([text(item) for item in positional] + [f"{key}={text(item)}" for key, item in named.items()])
