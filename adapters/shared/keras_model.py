"""Helpers for Keras models on any backend: layers, their paths, names and parameters, contexts around calls, arguments, device.

Keras 3 runs on the framework that is its *backend*, chosen once, when it is imported: on PyTorch its layers are modules.

Imported by the worker: Python 3.6 and standard library only; Keras is used only if it is already loaded.
"""

import collections
import contextlib
import functools
import operator
import sys
from typing import Any, Callable, ContextManager, Dict, Iterator, List, Tuple

from . import nested

VARIABLE = "KERAS_BACKEND"
"""The environment variable from which Keras 3 takes its backend on import (keras/src/backend/config.py)."""


def keras_of(value: Any, kind: str = "Model") -> str:
    """The package whose Model (or Layer) it is: tensorflow, keras or tf_keras, whichever ``tf.keras`` means; '' for none.

    This does not touch ``tf.keras``: the first access would fix which package it is.
    """
    for base in type(value).__mro__:
        package = base.__module__.split(".")[0]
        if base.__name__ == kind and package in ("tensorflow", "keras", "tf_keras"):
            return package
    return ""


def is_compiled(value: Any) -> bool:
    """Whether it is a Keras model that has been compiled: it then has a training step of its own."""
    return bool(keras_of(value)) and bool(getattr(value, "compiled", getattr(value, "_is_compiled", False)))


STANDARD_STEP = "the model is compiled: --optimizer asks for this step in place of its own train_step"
OTHER_STEP = "the model is compiled, and its own train_step runs only in TensorFlow: this is the standard step"


def backend() -> str:
    """The framework on which the loaded Keras runs, by Keras' name for it; '' if no Keras 3 is loaded."""
    keras = sys.modules.get("keras")
    return str(keras.config.backend()) if keras is not None and hasattr(keras, "config") else ""


def is_made_for(name: str, value: Any) -> bool:
    """Whether a Keras model or layer runs on the backend of that name."""
    package = keras_of(value, "Layer")
    return bool(package) and (backend() if package == "keras" and backend() else "tensorflow") == name


STATE = "keras.src.backend.common.global_state"
"""The module in which Keras 3 counts the layers of each class, to name layers without a name (keras/src/utils/naming.py)."""


def names() -> Dict[str, int]:
    """How many layers of each class Keras has named so far; none if it is not loaded."""
    state = sys.modules.get(STATE)
    return dict(state.get_global_attribute("object_name_uids") or {}) if state is not None else {}


def rename(counts: Dict[str, int]) -> None:
    """Reset the counts to an earlier result of ``names``: a second copy of a model gets the same names."""
    state = sys.modules.get(STATE)
    if state is not None:
        state.set_global_attribute("object_name_uids", collections.defaultdict(int, counts))


_DEVICE_SCOPE = contextlib.ExitStack()


def set_device(device: str) -> bool:
    """Make Keras create its tensors on that device from now on; False if Keras is not loaded or does not run on PyTorch."""
    if backend() != "torch":
        return False
    _DEVICE_SCOPE.close()
    if device:
        _DEVICE_SCOPE.enter_context(sys.modules["keras"].device(device))
    return True


def children(layer: Any) -> List[Any]:
    """The layers directly below a layer: Keras 2.4 and later list them; in earlier versions ``_layers`` does."""
    if hasattr(layer, "_flatten_layers"):
        sublayers = list(layer._flatten_layers(recursive=False, include_self=False))
    else:
        sublayers = getattr(layer, "_layers", [])
    return [sub for sub in sublayers if hasattr(sub, "call") and hasattr(sub, "name")]


def layer_paths(model: Any) -> List[Tuple[Any, str]]:
    """Every Keras layer below ``model`` with its path of names, dots between levels; a shared layer occurs once."""
    paths: List[Tuple[Any, str]] = []
    seen = {id(model)}
    stack = [(sub, sub.name) for sub in reversed(children(model))]
    while stack:
        layer, path = stack.pop()
        if id(layer) in seen:
            continue
        seen.add(id(layer))
        paths.append((layer, path))
        stack.extend((sub, path + "." + sub.name) for sub in reversed(children(layer)))
    return paths


def parameters(model: Any) -> Dict[str, int]:
    """The elements of the weights that each layer of a Keras model owns, as ``summary()`` counts them; {} for another model."""
    owned: Dict[int, Tuple[str, int]] = {}
    for layer, path in [(model, "")] + layer_paths(model) if keras_of(model, "Layer") else []:
        below = {id(weight) for sub in children(layer) for weight in sub.weights}
        for weight in layer.weights:
            if id(weight) not in below:
                owned.setdefault(id(weight), (path, functools.reduce(operator.mul, map(int, weight.shape), 1)))
    found: Dict[str, int] = {}
    for path, elements in owned.values():
        found[path] = found.get(path, 0) + elements
    return found


@contextlib.contextmanager
def within_calls(model: Any, enter: Callable[[Any, str], ContextManager[Any]]) -> Iterator[None]:
    """Within this block every layer below ``model`` is called within ``enter(layer, its path)``."""
    layers = layer_paths(model)
    own = [(layer, vars(layer).get("call")) for layer, _ in layers]

    def enter_call(layer: Any, path: str) -> Any:
        original = layer.call

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            with enter(layer, path):
                return original(*args, **kwargs)

        return call

    for layer, path in layers:
        object.__setattr__(layer, "call", enter_call(layer, path))
    try:
        yield
    finally:
        for layer, held in own:
            if held is None:
                object.__delattr__(layer, "call")
            else:
                object.__setattr__(layer, "call", held)


def as_taken(model: Any, positional: Tuple[Any, ...], named: Dict[str, Any]) -> nested.Arguments:
    """The arguments of a Keras model's call: unchanged if it has a parameter for each, else combined into its first one.

    Functional and sequential models take all inputs as one argument, a list or a dict.
    """
    import inspect

    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(model.call).parameters.values()
    names = [p.name for p in parameters if p.name not in ("training", "mask")]
    places = [p.name for p in parameters if p.kind in kinds and p.name in names]
    if named and not positional and not set(named) <= set(names):
        return (named,), {}
    if len(positional) > max(1, len(places)):
        return (list(positional),), named
    return positional, named
