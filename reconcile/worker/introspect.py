"""Reads from a model and its factory what the user need not give: inputs, and arguments that load no weights.

The inputs are those of a Keras model, for a batch of one; the arguments are those of a factory in an installed package.
``documentation`` finds a docstring under ``python -OO``, too.

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


def parse_documented(source: str) -> Any:
    """The tree of a module's source with its docstrings, which ``ast.parse`` drops under -OO from Python 3.14 on."""
    return compile(source, "source", "exec", ast.PyCF_ONLY_AST, optimize=0)


def documentation(documented_object: Any) -> str:
    """The docstring of a module, class or function, '' if it has none; from its source where Python drops them (-OO)."""
    if getattr(documented_object, "__doc__", None):
        return str(documented_object.__doc__)
    try:
        tree = parse_documented(textwrap.dedent(inspect.getsource(documented_object)))
        node: Any = tree if inspect.ismodule(documented_object) else tree.body[0]
        return ast.get_docstring(node, clean=False) or ""
    except Exception:  # there is no source, or it has no docstring
        return ""


def inputs_of(model: Any, doc: str) -> Optional[Tuple[Any, ...]]:
    """Positional arguments of one call of a functional or sequential Keras model; None for any other model.

    Sizes that the model leaves open come from the first shape in ``doc``, its factory's documentation, that fits. If none
    fits, the result is None as well.
    """
    if not keras_model.keras_of(model):
        return None
    try:
        tensors, structure = list(model.inputs or ()), getattr(model, "input", None)
    except (AttributeError, TypeError, ValueError):
        return None
    by_name = structure if isinstance(structure, dict) and len(structure) == len(tensors) else None
    inputs = [_input(tensor, doc) for tensor in (tensors if by_name is None else by_name.values())]
    if not inputs or None in inputs:
        return None
    if by_name is not None:
        return (dict(zip(by_name, inputs)),)
    return (inputs[0],) if len(inputs) == 1 else (inputs,)


def _input(tensor: Any, doc: str) -> Optional[pairs.Input]:
    shape: List[Optional[int]] = getattr(tensor.shape, "as_list", lambda: list(tensor.shape))()
    sizes = find_documented(shape[1:], doc) if None in shape[1:] else [int(size or 0) for size in shape[1:]]
    if sizes is None:
        return None
    dtype = str(getattr(tensor.dtype, "name", tensor.dtype)).replace("torch.", "")
    return pairs.Input("", tuple([int(shape[0] or 1)] + sizes), dtype)


def find_documented(sizes: Sequence[Optional[int]], doc: str) -> Optional[List[int]]:
    """The first shape in that text, such as ``(224, 224, 3)``, that has as many sizes and agrees with the known ones."""
    for text in _SHAPE.findall(doc):
        shape = [int(size) for size in re.findall(r"\d+", text)]
        if len(shape) == len(sizes) and all(size in (None, known) for size, known in zip(sizes, shape)):
            return shape
    return None


def weightless(factory: Any) -> Dict[str, Any]:
    """The parameters by which an installed package's factory loads weights by default, with their defaults.

    Those are names or members of an enumeration (Keras' ``weights="imagenet"``, torchvision's ``weights_backbone``).  A factory
    of the user's own is called unchanged.
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
