"""What a model and its factory say themselves, so that nobody has to: a Keras model its inputs, for a batch of one, and a
factory of an installed package how it is called if it is to load no weights.

Imported by the worker: Python 3.6 and standard library only.
"""

import ast
import enum
import inspect
import os
import re
import textwrap
from typing import Any, Dict, List, Optional, Sequence, Tuple

from ..adapters.shared import keras_model
from ..model_zoo import pair as pairs
from . import import_path

_SHAPE = re.compile(r"\(\s*\d+\s*(?:,\s*\d+\s*)+,?\s*\)")


def documentation(thing):
    # type: (Any) -> str
    """The docstring of a module, class or function, '' if it has none; from its source where Python drops them (-OO)."""
    if getattr(thing, "__doc__", None):
        return str(thing.__doc__)
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(thing)))
        found = tree if inspect.ismodule(thing) else tree.body[0]  # type: Any
        return ast.get_docstring(found, clean=False) or ""
    except Exception:  # there is no source, or nothing in it has a docstring
        return ""


def inputs_of(model, doc):
    # type: (Any, str) -> Optional[Tuple[Any, ...]]
    """Positional arguments of one call of a functional or sequential Keras model; None for any other model.

    A size that the model leaves open is that of the first shape in ``doc``, its factory's documentation, that fits; where
    none does, the answer is None as well.
    """
    if not keras_model.keras_of(model):
        return None
    try:
        tensors, held = list(model.inputs or ()), getattr(model, "input", None)
    except (AttributeError, TypeError, ValueError):
        return None
    by_name = held if isinstance(held, dict) and len(held) == len(tensors) else None
    found = [_input(tensor, doc) for tensor in (tensors if by_name is None else by_name.values())]
    if not found or None in found:
        return None
    if by_name is not None:
        return (dict(zip(by_name, found)),)
    return (found[0],) if len(found) == 1 else (found,)


def _input(tensor, doc):
    # type: (Any, str) -> Optional[pairs.Input]
    shape = getattr(tensor.shape, "as_list", lambda: list(tensor.shape))()  # type: List[Optional[int]]
    sizes = documented(shape[1:], doc) if None in shape[1:] else [int(size or 0) for size in shape[1:]]
    if sizes is None:
        return None
    dtype = str(getattr(tensor.dtype, "name", tensor.dtype)).replace("torch.", "")
    return pairs.Input("", tuple([int(shape[0] or 1)] + sizes), dtype)


def documented(sizes, doc):
    # type: (Sequence[Optional[int]], str) -> Optional[List[int]]
    """The first shape in that text, such as ``(224, 224, 3)``, that has as many sizes and agrees with those known."""
    for text in _SHAPE.findall(doc):
        shape = [int(size) for size in re.findall(r"\d+", text)]
        if len(shape) == len(sizes) and all(size in (None, known) for size, known in zip(sizes, shape)):
            return shape
    return None


def weightless(factory):
    # type: (Any) -> Dict[str, Any]
    """The parameters by which an installed package's factory loads weights if it is told nothing, with their defaults.

    Those are names or members of an enumeration (Keras' ``weights="imagenet"``, torchvision's ``weights_backbone``).  What is
    the user's own is called as it is.
    """
    try:
        file = inspect.getfile(inspect.unwrap(factory))
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        return {}
    if not any(part in os.path.abspath(file) for part in import_path.INSTALLED):
        return {}
    return {
        p.name: p.default
        for p in parameters
        if "weights" in p.name.split("_") and isinstance(p.default, (str, enum.Enum))
    }
