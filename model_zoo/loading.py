"""Finds and loads pairs: those of the zoo by name, a user's by path; and reads what ``--set`` gives to their parameters.

Python 3.6 and standard library only: pair files are imported inside legacy environments.
"""

import contextlib
import difflib
import functools
import hashlib
import importlib
import importlib.util
import os
import sys
from types import FunctionType
from typing import Any, Callable, Dict, List, Mapping, Tuple

from ..core.records import Layer
from .pair import BUILD, METHODS, FromModule, Pair, PairError, Params

LONGEST = 40
"""Characters of a number that is a parameter."""
LARGEST = 2**63 - 1
"""The largest number: no framework has a larger size."""
KERAS = {"tf": ("tensorflow", "keras", "tensorflow"), "jax": ("keras", "", "jax")}
"""Of each framework in which ``build_keras`` makes a model: the package with Keras, its name there, and Keras' backend."""
HERE = os.path.dirname(os.path.abspath(__file__))
OTHERS = ("__init__.py", "loading.py", "pair.py", "parity.py")
"""The files beside the pairs."""


def zoo_names() -> List[str]:
    """Names of the pairs that ship with the tool."""
    files = sorted(os.listdir(HERE))
    return [f[:-3] for f in files if f.endswith(".py") and f not in OTHERS]


def pair_path(model: str) -> str:
    """The file of the zoo pair of that name, or the path itself if ``model`` is the path of a pair file."""
    if model.endswith(".py") or os.sep in model:
        return os.path.abspath(model)
    return os.path.join(HERE, model + ".py")


def import_file(path: str, prefix: str) -> Any:
    """The module of a Python file, under ``prefix`` and its name. Raises ImportError, and whatever importing it raises."""
    name = os.path.basename(path)[:-3].encode("utf-8", "backslashreplace").decode("utf-8")  # it need not be text
    spec = importlib.util.spec_from_file_location(prefix + name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {path} as a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # torch.compile imports the module of each function that it meets
    spec.loader.exec_module(module)
    return module


def load_pair(path: str) -> Pair:
    """The pair of a file, which is imported by path under a private name, so that it hides no other module.

    Raises PairError if the file states no pair, and whatever importing it raises.
    """
    module = import_file(path, "_reconcile_pair_")
    pair: Any = vars(module).get("PAIR")
    if not any(map(_is_base, type(pair).__mro__)):
        states = f"its PAIR is of type {type(pair).__name__}" if "PAIR" in vars(module) else "it defines no PAIR"
        raise PairError(
            f"the pair file {path} cannot be used: {states}; write PAIR = Pair(...), or PAIR = Model(), where Model is a "
            "subclass of Pair."
        )
    if not pair.name:
        raise PairError(f"the pair file {path} cannot be used: its PAIR has no name.")
    made: Pair = FromModule(module) if _is_base(type(pair)) else pair
    made.module = module
    if made.build_keras is not None:
        for framework in KERAS:
            if made.builder(framework) is None:
                setattr(made, BUILD + framework, functools.partial(_with_keras, made.build_keras, framework))
    return made


def _with_keras(build: Callable[[Params, Any], Any], framework: str, p: Params) -> Any:
    """The model that Keras makes on that framework, which is its backend in this process from now on."""
    package, name, backend = KERAS[framework]
    os.environ["KERAS_BACKEND"] = backend
    module = importlib.import_module(package)
    return build(p, getattr(module, name) if name else module)


def layers_of(pair: Pair, p: Params) -> Tuple[Layer, ...]:
    """The pair's layers at these parameters; a model that Keras makes has the same names in every framework."""
    layers = tuple(pair.layers_for(p))
    made = [name for name in KERAS if isinstance(pair.builder(name), functools.partial)]
    if len(made) < len(KERAS):
        return layers
    first, *rest = made
    return tuple(Layer(x.name, **dict(dict.fromkeys(rest, x.paths[first]), **x.paths)) for x in layers)


def _is_base(kind: type) -> bool:
    """Whether that class is ``Pair``. A worker's pair files import it by another name than the worker does."""
    this_module, its_module = (name.split(".")[-2:] for name in (Pair.__module__, kind.__module__))
    return kind.__name__ == Pair.__name__ and its_module == this_module


def check_names(pair: Pair, packages: Mapping[str, str]) -> None:
    """Raise PairError for a function of the pair file whose name is almost that of a method which the file does not define.

    ``packages`` are the known frameworks' names, each with the name of its package.
    """
    members: Dict[str, Any] = {}
    for kind in reversed(type(pair).__mro__):
        members.update(vars(kind) if kind.__module__ == pair.module.__name__ else {})
    if isinstance(pair, FromModule):
        members.update(vars(pair.module))
    file = pair.module.__name__
    functions = [n for n, value in members.items() if type(value) is FunctionType and value.__module__ == file]
    for function in functions:
        method = _intended_method(function, packages)
        if method and method != function and method not in members:
            raise PairError(
                f"the pair file {pair.module.__file__} cannot be used: it defines {function}, which is not a "
                f"method of a pair. Did you mean {method}?"
            )


def _intended_method(function: str, packages: Mapping[str, str]) -> str:
    """The method that a function of that name is or was meant to be; '' if it is a helper function."""
    if not function.startswith(BUILD):
        return "".join(difflib.get_close_matches(function, METHODS, n=1, cutoff=0.9))
    sides = {"tf_session": "tf_session", "keras": "keras"}
    sides.update((package, framework) for framework, package in packages.items())
    sides.update((framework, framework) for framework in packages)
    nearest = difflib.get_close_matches(function[len(BUILD) :], list(sides), n=1, cutoff=0.8)
    return BUILD + sides[nearest[0]] if nearest else ""


def source_hash(path: str) -> str:
    """SHA-256 of the pair file."""
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def resolve(pair: Pair, overrides: Dict[str, str]) -> Dict[str, Any]:
    """The pair's parameters with ``--set`` overrides, each read as the type of its default. Raises PairError."""
    values = dict(pair.params)
    for name, text in overrides.items():
        if name not in values:
            known = ", ".join(sorted(values)) or "none"
            raise PairError(f"{pair.name} has no parameter {name!r}; its parameters are: {known}.")
        values[name] = _read_value(pair.name, name, text, values[name])
        ours = pair.module is not None and os.path.dirname(os.path.abspath(pair.module.__file__)) == HERE
        if ours and type(values[name]) is int and values[name] < 1:  # in the zoo, every whole number is a size
            raise PairError(f"{pair.name}: {name} must be at least 1, not {values[name]}.")
    return values


def _read_value(model: str, name: str, text: str, default: Any) -> Any:
    if isinstance(default, bool):
        if text.lower() in ("true", "yes", "1"):
            return True
        if text.lower() in ("false", "no", "0"):
            return False
        raise PairError(f"{model}: {name} must be true or false, not {text!r}.")
    if isinstance(default, str):
        return text
    value = None
    if len(text) <= LONGEST:
        with contextlib.suppress(TypeError, ValueError):
            value = type(default)(text)
    if value is None or not -LARGEST <= value <= LARGEST:  # NaN is not between two numbers either
        kind = "a whole number" if isinstance(default, int) else "a number"
        shown = repr(text) if len(text) <= LONGEST else f"one of {len(text)} characters"
        raise PairError(f"{model}: {name} must be {kind} between -2^63 and 2^63, not {shown}.")
    return value
