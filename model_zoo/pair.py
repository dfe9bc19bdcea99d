"""The format of a pair: one model in TensorFlow and in PyTorch, meant to be equivalent.

A pair file defines ``PAIR`` and the functions ``inputs(p)``, ``build_tf(p)``, ``build_torch(p)`` and, so that
equivalence can be proved, ``copy_weights(tf_model, torch_model)``.  ``p`` holds the pair's parameters as attributes.
A pair with one framework only leaves the other ``build_`` function out.  Where the parameters decide how many layers
there are, ``layers_for(p)`` takes the place of ``PAIR.layers``.  ``PROOF`` and ``TRAINING`` (name -> text, as ``--set``
takes them) are the settings at which the gallery proves the pair and trains it, where its own will not do; ``device``
among the latter is that of PyTorch's counters.

Python 3.6 and standard library only: pair files are imported inside legacy environments.
"""

import contextlib
import hashlib
import importlib.util
import os
from types import ModuleType
from typing import Any, Dict, List, NamedTuple, Tuple

from ..core.records import Layer

__all__ = [
    "Input",
    "Layer",
    "Pair",
    "PairError",
    "Params",
    "Published",
    "layers_of",
    "load_pair",
    "pair_path",
    "resolve",
    "source_hash",
    "zoo_names",
]

LONGEST = 40
"""Characters of a number that is a parameter."""
LARGEST = 2**63 - 1
"""The largest one: no framework has a size beyond."""
HERE = os.path.dirname(os.path.abspath(__file__))


class Input(NamedTuple):
    """One model input: shape with the batch, and dtype (``float32``, ``int64``, ...)."""

    name: str
    shape: Tuple[int, ...]
    dtype: str = "float32"


class Published(NamedTuple):
    """A figure somebody published for this model: digits as printed, what they say it is, and where."""

    figure: str
    claim: str
    source: str


class Pair(NamedTuple):
    """What a pair says of itself. ``params`` are its defaults; ``--set`` overrides them, keeping their types."""

    name: str
    params: Dict[str, Any]
    layers: Tuple[Layer, ...] = ()
    notes: Tuple[str, ...] = ()
    published: Tuple[Published, ...] = ()


class Params(object):
    """Parameters as attributes."""

    def __init__(self, values):
        # type: (Dict[str, Any]) -> None
        self.__dict__.update(values)

    def replaced(self, **values):
        # type: (**Any) -> Params
        """The same parameters, some with other values."""
        return Params(dict(self.__dict__, **values))


def zoo_names():
    # type: () -> List[str]
    """Names of the pairs that ship with the tool."""
    files = sorted(os.listdir(HERE))
    return [f[:-3] for f in files if f.endswith(".py") and f not in ("__init__.py", "pair.py", "parity.py")]


def pair_path(model):
    # type: (str) -> str
    """File of a zoo pair's name, or the path itself where ``model`` is a path to a pair file."""
    if model.endswith(".py") or os.sep in model:
        return os.path.abspath(model)
    return os.path.join(HERE, model + ".py")


def load_pair(path):
    # type: (str) -> ModuleType
    """Import a pair file by path, under a private name that cannot hide anything."""
    spec = importlib.util.spec_from_file_location("_reconcile_pair_" + os.path.basename(path)[:-3], path)
    if spec is None or spec.loader is None:
        raise ImportError("cannot load %s as a Python file" % path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def layers_of(module, params):
    # type: (ModuleType, Dict[str, Any]) -> Tuple[Layer, ...]
    """The pair's layers with these parameters."""
    held = module.PAIR.layers  # type: Tuple[Layer, ...]
    return tuple(module.layers_for(Params(params))) if hasattr(module, "layers_for") else held


def source_hash(path):
    # type: (str) -> str
    """SHA-256 of the pair file."""
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


class PairError(Exception):
    """A pair file or an override that cannot be used; the message is one sentence for the user."""


def resolve(pair, overrides):
    # type: (Pair, Dict[str, str]) -> Dict[str, Any]
    """The pair's parameters with ``--set`` overrides, each read as the type of its default. Raises PairError."""
    values = dict(pair.params)
    for name, text in overrides.items():
        if name not in values:
            known = ", ".join(sorted(values)) or "none"
            raise PairError("%s has no parameter %r; its parameters are: %s." % (pair.name, name, known))
        values[name] = _read(pair.name, name, text, values[name])
    return values


def _read(model, name, text, default):
    # type: (str, str, str, Any) -> Any
    if isinstance(default, bool):
        if text.lower() in ("true", "yes", "1"):
            return True
        if text.lower() in ("false", "no", "0"):
            return False
        raise PairError("%s: %s must be true or false, not %r." % (model, name, text))
    if isinstance(default, str):
        return text
    value = None
    if len(text) <= LONGEST:
        with contextlib.suppress(TypeError, ValueError):
            value = type(default)(text)
    if value is None or not -LARGEST <= value <= LARGEST:  # NaN is not between two numbers either
        kind = "a whole number" if isinstance(default, int) else "a number"
        shown = repr(text) if len(text) <= LONGEST else "one of %d characters" % len(text)
        raise PairError("%s: %s must be %s between -2^63 and 2^63, not %s." % (model, name, kind, shown))
    return value
