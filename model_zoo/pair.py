"""The format of a pair: one model in several frameworks, meant to be equivalent.

A pair file states ``PAIR = Pair(name, params, ...)`` and defines, as functions of the module, the methods of :class:`Pair`
that its models need: ``inputs(p)``, ``build_torch(p)``, ``build_tf(p)`` (or, for TensorFlow and JAX at once, ``build_keras(p, keras)``) and, so
that equivalence can be proved, ``copy_weights(tf_model, torch_model)``.  ``p`` holds the pair's parameters as attributes.  The constants ``PROOF``,
``TRAINING``, ``NOT_EQUIVALENT`` and ``WITHOUT_EFFECT`` of the module are the attributes of these names.  A pair file may
also define a subclass, and state ``PAIR = ThatSubclass()``.  ``load_pair`` returns a :class:`Pair` for either.

Python 3.6 and standard library only: pair files are imported inside legacy environments.
"""

import contextlib
import difflib
import functools
import hashlib
import importlib
import importlib.util
import os
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..core.records import Layer

__all__ = [
    "FromModule",
    "Input",
    "Layer",
    "Pair",
    "PairError",
    "Params",
    "Published",
    "check_names",
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
"""The largest number: no framework has a larger size."""
METHODS = ("inputs", "layers_for", "copy_weights", "arrays_for")
"""The methods that a pair file may define as functions, besides those whose names begin with ``BUILD``."""
BUILD = "build_"
KERAS = {"tf": ("tensorflow", "keras", "tensorflow"), "jax": ("keras", "", "jax")}
"""Of each framework in which ``build_keras`` makes a model: the package with Keras, its name there, and Keras' backend."""
CONSTANTS = ("PROOF", "TRAINING", "NOT_EQUIVALENT", "WITHOUT_EFFECT")
"""The attributes that a pair file may state as constants."""
NO_SETTINGS = MappingProxyType({})  # type: Mapping[str, Any]
HERE = os.path.dirname(os.path.abspath(__file__))


class Input(NamedTuple):
    """One model input: shape with the batch, and dtype (``float32``, ``int64``, ...)."""

    name: str
    shape: Tuple[int, ...]
    dtype: str = "float32"


class Published(NamedTuple):
    """A published figure for this model: its digits as printed, what the source says that it is, and the source."""

    figure: str
    claim: str
    source: str


class PairError(Exception):
    """A pair file or an override that cannot be used; the message is one sentence for the user."""


class Params(object):
    """Parameters as attributes."""

    def __init__(self, values):
        # type: (Dict[str, Any]) -> None
        self.__dict__.update(values)

    def replaced(self, **values):
        # type: (**Any) -> Params
        """The same parameters, some with other values."""
        return Params(dict(self.__dict__, **values))


class Pair(object):
    """One model in several frameworks, every member with its default. ``p`` are its parameters, as attributes.

    The first group of members is stated by a pair, and the second is computed. The third is for models from a factory or a
    file, which have no pair file.
    """

    name = ""
    """The pair's name in reports. Every pair states it."""
    params = NO_SETTINGS
    """Parameters and their defaults; ``--set`` overrides them, keeping their types."""
    layers = ()  # type: Tuple[Layer, ...]
    """Which layers of one model belong to which of the other; without any, layers are matched automatically."""
    notes = ()  # type: Tuple[str, ...]
    """How the frameworks differ in this model, in sentences."""
    published = ()  # type: Tuple[Published, ...]
    """Published figures for this model."""
    proof = NO_SETTINGS
    """Settings, as in ``--set``, at which the gallery compares the outputs if the defaults are unsuitable."""
    training = NO_SETTINGS
    """Settings that the gallery's training step needs; ``device`` is the device of PyTorch's counters."""
    not_equivalent = ""
    """Why the two models compute different outputs, if they are meant to."""
    without_effect = ()  # type: Tuple[str, ...]
    """Suffixes of the names of weights that change no output."""
    module = None  # type: Any
    """The module of the pair file, which ``load_pair`` sets."""

    def __init__(self, name=None, params=None, layers=None, notes=None, published=None):
        # type: (Optional[str], Optional[Mapping[str, Any]], Optional[Sequence[Layer]], Optional[Sequence[str]], Optional[Sequence[Published]]) -> None
        stated = {"name": name, "params": params, "layers": layers, "notes": notes, "published": published}
        self.__dict__.update((member, value) for member, value in stated.items() if value is not None)

    build_tf = None  # type: Any
    """``build_tf(p)`` returns the TensorFlow model; None if there is none."""
    build_keras = None  # type: Any
    """``build_keras(p, keras)`` returns the model that this Keras makes: it is ``build_tf`` and ``build_jax`` of a pair which
    does not define these itself."""
    build_torch = None  # type: Any
    """``build_torch(p)`` returns the PyTorch model; None if there is none. Any other framework's is ``build_NAME(p)``."""

    def build_tf_session(self, p):
        # type: (Params) -> Any
        """The TensorFlow model as a published recipe built it into a graph of TensorFlow 1."""
        return self.build_tf(p)

    def builder(self, framework):
        # type: (str) -> Optional[Callable[[Params], Any]]
        """The method that builds the model of the framework of that name; None if the pair has no such side."""
        return getattr(self, BUILD + framework, None)

    def frameworks(self, known):
        # type: (Sequence[str]) -> Tuple[str, ...]
        """The frameworks, of these known ones and in their order, in which this pair has a model."""
        return tuple(framework for framework in known if self.builder(framework) is not None)

    def inputs(self, p):
        # type: (Params) -> Sequence[Input]
        """The inputs of both models, in the order of the call. Every pair defines it."""
        raise PairError("%s does not state its inputs: define inputs(p), which returns a list of Input." % self.name)

    def layers_for(self, p):
        # type: (Params) -> Sequence[Layer]
        """The layers at these parameters. Define it if the number of layers depends on the parameters."""
        return self.layers

    def copy_weights(self, tf_model, torch_model):
        # type: (Any, Any) -> None
        """Give the PyTorch model the TensorFlow model's weights, so that their outputs can be compared."""
        raise PairError("%s does not copy weights: define copy_weights(tf_model, torch_model)." % self.name)

    def arrays_for(self, weights, p):
        # type: (Mapping[str, Any], Params) -> Mapping[str, Any]
        """The weights of the JAX model, by path, from those of the TensorFlow model. A pair whose JAX model is no Keras model
        defines it; each weight of the JAX model is named once."""
        raise PairError("%s does not copy weights to JAX: define arrays_for(weights, p)." % self.name)

    user_model = False
    """Whether a user's factory or file makes the model. Its arguments may then have any structure, and its layers may make
    their weights at the first call."""

    def ready(self, lacking, doing):
        # type: (str, Callable[[str], None]) -> None
        """Prepare for the first model. ``lacking`` is the error if the framework's package is not installed, and ``doing`` is
        told which of the user's code is about to run, and '' when that is done.
        """

    def arguments(self, p):
        # type: (Params) -> Tuple[Tuple[Any, ...], Dict[str, Any]]
        """Positional and named arguments of one call of the model that was built last."""
        return tuple(self.inputs(p)), {}

    def called_notes(self, inputs):
        # type: (Callable[[], str]) -> Tuple[str, ...]
        """Notes for the report on how the model was made, and called with these inputs."""
        return ()

    def tried(self, call, inputs):
        # type: (Callable[[], Any], Callable[[], str]) -> None
        """Call the model without any counter. Raises FactoryError if the user has to correct the model."""

    def may_run(self, trace):
        # type: (Any) -> None
        """Raise FactoryError if a counter that runs the model would never finish."""

    @contextlib.contextmanager
    def impatiently(self, refuse):
        # type: (Callable[[str], None]) -> Iterator[None]
        """Meanwhile, end this process with a refusal if it takes too long."""
        yield


class FromModule(Pair):
    """A pair file that states a bare ``PAIR`` and defines functions: they are the methods, its constants the attributes."""

    def __init__(self, module):
        # type: (ModuleType) -> None
        stated = module.PAIR
        super(FromModule, self).__init__(stated.name, stated.params, stated.layers, stated.notes, stated.published)
        members = vars(module)
        self.__dict__.update(
            (name, value) for name, value in members.items() if name in METHODS or name.startswith(BUILD)
        )
        self.__dict__.update((name.lower(), members[name]) for name in CONSTANTS if name in members)


def zoo_names():
    # type: () -> List[str]
    """Names of the pairs that ship with the tool."""
    files = sorted(os.listdir(HERE))
    return [f[:-3] for f in files if f.endswith(".py") and f not in ("__init__.py", "pair.py", "parity.py")]


def pair_path(model):
    # type: (str) -> str
    """The file of the zoo pair of that name, or the path itself if ``model`` is the path of a pair file."""
    if model.endswith(".py") or os.sep in model:
        return os.path.abspath(model)
    return os.path.join(HERE, model + ".py")


def load_pair(path):
    # type: (str) -> Pair
    """The pair of a file, which is imported by path under a private name, so that it hides no other module.

    Raises PairError if the file states no pair, and whatever importing it raises.
    """
    spec = importlib.util.spec_from_file_location("_reconcile_pair_" + os.path.basename(path)[:-3], path)
    if spec is None or spec.loader is None:
        raise ImportError("cannot load %s as a Python file" % path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    pair = vars(module).get("PAIR")  # type: Any
    if not any(map(_is_base, type(pair).__mro__)):
        states = "its PAIR is of type %s" % type(pair).__name__ if "PAIR" in vars(module) else "it defines no PAIR"
        raise PairError(
            "the pair file %s cannot be used: %s; write PAIR = Pair(...), or PAIR = Model(), where Model is a subclass of "
            "Pair." % (path, states)
        )
    if not pair.name:
        raise PairError("the pair file %s cannot be used: its PAIR has no name." % path)
    made = FromModule(module) if _is_base(type(pair)) else pair  # type: Pair
    made.module = module
    if made.build_keras is not None:
        for framework in KERAS:
            if made.builder(framework) is None:
                setattr(made, BUILD + framework, functools.partial(_with_keras, made.build_keras, framework))
    return made


def _with_keras(build, framework, p):
    # type: (Callable[[Params, Any], Any], str, Params) -> Any
    """The model that Keras makes on that framework, which is its backend in this process from now on."""
    package, name, backend = KERAS[framework]
    os.environ["KERAS_BACKEND"] = backend
    module = importlib.import_module(package)
    return build(p, getattr(module, name) if name else module)


def layers_of(pair, p):
    # type: (Pair, Params) -> Tuple[Layer, ...]
    """The pair's layers at these parameters; a model that Keras makes has the same names in every framework."""
    layers = tuple(pair.layers_for(p))
    made = [name for name in KERAS if isinstance(pair.builder(name), functools.partial)]
    if len(made) < len(KERAS):
        return layers
    first, *rest = made
    return tuple(Layer(x.name, **dict({name: x.paths[first] for name in rest}, **x.paths)) for x in layers)


def _is_base(kind):
    # type: (type) -> bool
    """Whether that class is ``Pair``. A worker's pair files import this module by another name than the worker does."""
    this_module, its_module = (name.split(".")[-2:] for name in (__name__, kind.__module__))
    return kind.__name__ == Pair.__name__ and its_module == this_module


def check_names(pair, packages):
    # type: (Pair, Mapping[str, str]) -> None
    """Raise PairError for a function of the pair file whose name is almost that of a method which the file does not define.

    ``packages`` are the known frameworks' names, each with the name of its package.
    """
    members = {}  # type: Dict[str, Any]
    for kind in reversed(type(pair).__mro__):
        members.update(vars(kind) if kind.__module__ == pair.module.__name__ else {})
    if isinstance(pair, FromModule):
        members.update(vars(pair.module))
    file = pair.module.__name__
    functions = [n for n, value in members.items() if type(value) is FunctionType and value.__module__ == file]
    for function in functions:
        method = _intended(function, packages)
        if method and method != function and method not in members:
            raise PairError(
                "the pair file %s cannot be used: it defines %s, which is not a method of a pair. Did you mean %s?"
                % (pair.module.__file__, function, method)
            )


def _intended(function, packages):
    # type: (str, Mapping[str, str]) -> str
    """The method that a function of that name is or was meant to be; '' if it is a helper function."""
    if not function.startswith(BUILD):
        return "".join(difflib.get_close_matches(function, METHODS, n=1, cutoff=0.9))
    sides = {"tf_session": "tf_session", "keras": "keras"}
    sides.update((package, framework) for framework, package in packages.items())
    sides.update((framework, framework) for framework in packages)
    nearest = difflib.get_close_matches(function[len(BUILD) :], list(sides), n=1, cutoff=0.8)
    return BUILD + sides[nearest[0]] if nearest else ""


def source_hash(path):
    # type: (str) -> str
    """SHA-256 of the pair file."""
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


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
