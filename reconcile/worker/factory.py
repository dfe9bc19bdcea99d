"""A model that somebody gives by the function that makes it: it stands where a pair's module stands.

``package.module:function`` returns a model, or (model, inputs), or (model, positional inputs, named inputs); inputs are a
tensor, a tuple or list of positional ones, or a dict of named ones, with whatever stands inside them.  A Keras model that
says its inputs needs none.  ``doing`` is told what of theirs is about to run, and when it is done: a process that ends
meanwhile ends by their doing.

Imported by the worker: Python 3.6 and standard library only.
"""

import difflib
import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Mapping
from os import getpid
from typing import Any, Callable, Dict, List, Optional, Tuple, Type

from ..adapters.shared import keras_model
from ..adapters.shared.refusal import FactoryError
from ..core.protocol import WorkerRequest
from ..core.records import CALLED_WITH
from ..model_zoo import pair as pairs
from . import import_path, introspect, process_guard

MACHINE = (ImportError, MemoryError, OSError)
"""Errors that say nothing of a model: a package that is missing, memory, a file or a connection."""

WEIGHTLESS = "called with %s=None: by default (%r) it loads weights, which change no count"


class Declined(FactoryError):
    """Their code itself raised an error, making the model or called with no counter near: so it would do without us."""


class Given(pairs.Pair):
    """One framework's factory and the inputs given on the command line, as a pair with this side alone."""

    user_model = True

    def __init__(self, request, adapter):
        # type: (WorkerRequest, Any) -> None
        model = request.model
        assert model is not None
        super(Given, self).__init__(model.name, model.params)
        self.framework = request.framework
        self.adapter = adapter
        self.where = model.factory
        self.known = request.known
        given = [pairs.Input(name, tuple(shape), dtype) for name, shape, dtype in model.inputs]
        self.given = given or None  # type: Optional[List[pairs.Input]]
        self.named = model.arguments
        self.folder = os.getcwd()
        self.paths = request.paths
        self.doing = lambda _what: None  # type: Callable[[str], None]
        self._weightless = ()  # type: Tuple[str, ...]
        self._before = None  # type: Optional[process_guard.Surroundings]
        self._names = None  # type: Optional[Dict[str, int]]
        self._arguments = ((), {})  # type: Tuple[Tuple[Any, ...], Dict[str, Any]]
        setattr(self, "build_" + self.framework.name, self._build)

    def ready(self, lacking, doing):
        # type: (str, Callable[[str], None]) -> None
        """Import the framework, before any folder of theirs can stand in its way, and their module, before any model is
        made: what it makes itself is made on no other device. Raises FactoryError, ``lacking`` without the framework.
        """
        self.doing = doing
        why = self.adapter.unusable(self._imported_framework(lacking))
        if why:
            raise FactoryError(why)
        import_path.welcome(self.folder, self.paths, self.where.partition(":")[0], self.known)
        self._factory()
        self._before = process_guard.Surroundings(self.adapter)

    def _imported_framework(self, lacking):
        # type: (str) -> Any
        """The framework's package, imported; Keras will make its models of it. Raises FactoryError."""
        package = self.framework.package
        os.environ[keras_model.VARIABLE] = self.framework.backend
        if importlib.util.find_spec(package) is None:
            raise FactoryError(lacking)
        return self._calling(lambda: importlib.import_module(package), "importing %s" % package)

    def arguments(self, p):
        # type: (Any) -> Tuple[Tuple[Any, ...], Dict[str, Any]]
        """Positional and named arguments of the model made last."""
        return self._arguments

    def called_notes(self, inputs):
        # type: (Callable[[], str]) -> Tuple[str, ...]
        """The model's inputs, and which weights its factory was told not to load."""
        return (CALLED_WITH + inputs(),) + self._weightless

    def _build(self, _params):
        # type: (Any) -> Any
        """A fresh model. Raises FactoryError."""
        factory = self._factory()
        self._from_the_start()
        named = self._arguments_for(factory)
        made = self._calling(lambda: factory(**named), "the factory %s" % self.where, Declined)
        model, inputs = made, None  # type: Any, Any
        if isinstance(made, tuple) and len(made) in (2, 3):
            model, inputs = made[0], made[1:]
        if keras_model.keras_of(model, "Layer") and not keras_model.is_made_for(self.framework.backend, model):
            raise FactoryError(
                "the factory %s made a Keras model on the backend %s, not on %s: leave %s as it is where Keras is imported, and "
                "it runs on the framework that is asked for."
                % (
                    self.where,
                    keras_model.backend() or "tensorflow",
                    self.framework.backend or "none that %s has" % self.framework.title,
                    keras_model.VARIABLE,
                )
            )
        if not self.adapter.is_model(model):
            what = "a tuple that starts with %s" % kind(model) if inputs is not None else kind(made)
            raise FactoryError(
                "the factory %s returned %s; it must return a %s, or (model, example inputs)."
                % (self.where, what, self.framework.model)
            )
        self._arguments = self._arguments_of(model, inputs, introspect.documentation(factory))
        return model

    def _arguments_for(self, factory):
        # type: (Any) -> Dict[str, Any]
        """What the factory is called with; none of an installed package fetches weights for a model that is only counted."""
        unloaded = {name: default for name, default in introspect.weightless(factory).items() if name not in self.named}
        self._weightless = tuple(WEIGHTLESS % (name, default) for name, default in unloaded.items())
        return dict(dict.fromkeys(unloaded), **self.named)

    def _from_the_start(self):
        # type: () -> None
        """Every model is made as the first one was, whatever making that one has changed, and its layers named alike."""
        if self._before is not None:
            self._before.restore()
        if self._names is None:
            self._names = keras_model.names()
        keras_model.rename(self._names)

    def _factory(self):
        # type: () -> Any
        name, _, attribute = self.where.partition(":")
        if not self._there(name):
            top = name.partition(".")[0]
            found_in = [d for d in ("src", "lib") if os.path.exists(os.path.join(self.folder, d, top))]
            raise FactoryError(
                "there is no module %s (%s): it is looked for among the installed packages and in the working directory.%s"
                % (name, self.where, " Set PYTHONPATH=%s, where %s is." % (found_in[0], top) if found_in else "")
            )
        found = self._imported(name)
        for part in attribute.split("."):
            if not hasattr(found, part):
                near = difflib.get_close_matches(part, [n for n in dir(found) if not n.startswith("_")], n=1)
                hint = "Did you mean %s?" % near[0] if near else "Name a function that returns the model."
                raise FactoryError("%s has no %r (%s). %s" % (name, part, self.where, hint))
            found = getattr(found, part)
        if self.adapter.is_made(found):
            raise FactoryError(
                "%s is a model, not a function that makes one; every counter gets a fresh one: write a function that "
                "returns it, and name that." % self.where
            )
        if not callable(found):
            raise FactoryError("%s is %s, not a function that returns a model." % (self.where, kind(found)))
        return found

    def _imported(self, name):
        # type: (str) -> Any
        try:
            return self._calling(lambda: importlib.import_module(name), "importing %s" % name)
        except FactoryError as error:
            package, cause = os.path.basename(self.folder), error.__cause__
            if not isinstance(cause, ImportError) or not os.path.exists(os.path.join(self.folder, "__init__.py")):
                raise
            if "relative import" in str(cause) or str(cause.name).partition(".")[0] == package:
                hint = "%s This folder is inside the package %s: run from the one that holds it, with %s.%s."
                raise FactoryError(hint % (error, package, package, self.where)) from cause
            raise

    def _there(self, name):
        # type: (str) -> bool
        """Whether the module can be found; its parents are imported on the way."""
        parent = name.rpartition(".")[0]
        if parent and not self._there(parent):
            return False
        if name in sys.modules:
            return True
        if parent:
            found = self._calling(lambda: importlib.import_module(parent), "importing %s" % parent)
            if not hasattr(found, "__path__"):
                return False
        return self._calling(lambda: importlib.util.find_spec(name), "finding %s" % name) is not None

    def _calling(self, function, what, declined=FactoryError):
        # type: (Any, str, Type[FactoryError]) -> Any
        """Call the user's code; whatever it raises, sys.exit included, is one sentence. A fork's child ends here.

        An error that is about the model, and not about the machine or its packages, is of the class ``declined``.
        """
        process = getpid()
        self.doing(what)
        try:
            return function()
        except BaseException as error:
            process_guard.only(process)
            process_guard.note(error)
            about = declined if isinstance(error, Exception) and not isinstance(error, MACHINE) else FactoryError
            raise about("%s %s." % (what, said(error, self.folder))) from error
        finally:
            process_guard.only(process)
            process_guard.mend()
            self.doing("")

    def _arguments_of(self, model, inputs, doc=""):
        # type: (Any, Any, str) -> Tuple[Tuple[Any, ...], Dict[str, Any]]
        if self.given is not None:
            told = [i._replace(dtype=i.dtype or self.adapter.default_dtype()) for i in self.given]
            return tuple(i for i in told if not i.name), {i.name: i for i in told if i.name}
        if inputs is not None and len(inputs) == 2:
            positional, named = inputs
            if not isinstance(positional, (tuple, list)) or not isinstance(named, Mapping):
                raise FactoryError(
                    "the factory %s returned (model, %s, %s); after the model come a tuple of positional inputs and a "
                    "dict of named ones." % (self.where, kind(positional), kind(named))
                )
            return tuple(positional), dict(named)
        if inputs is not None:
            only = inputs[0]
            if isinstance(only, Mapping):
                return (), dict(only)
            return (tuple(only) if isinstance(only, (tuple, list)) and not hasattr(only, "_fields") else (only,)), {}
        itself = introspect.inputs_of(model, doc)
        if itself is not None:
            return itself, {}
        if needs_arguments(self.adapter.entry(model)):
            raise FactoryError(
                "the factory %s returned a model without example inputs: give them with --input, such as "
                "--input 1,3,224,224, or return (model, inputs)." % self.where
            )
        return (), {}

    def tried(self, call, inputs):
        # type: (Callable[[], Any], Callable[[], str]) -> None
        """Call the model as its own code would, with no counter near. Raises FactoryError if that fails, too."""
        self._calling(call, "the model of %s, called with (%s)," % (self.where, inputs()), Declined)


def needs_arguments(function):
    # type: (Any) -> bool
    """Whether a model's function cannot be called without arguments."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    usual = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return any(p.default is p.empty and p.kind in usual for p in parameters)


def kind(value):
    # type: (Any) -> str
    """``None``, ``a dict``, ``an int``."""
    if value is None:
        return "None"
    name = type(value).__name__
    return "%s %s" % ("an" if name[0].lower() in "aeiou" else "a", name)


def said(error, folder=""):
    # type: (BaseException, str) -> str
    """What an error says of itself: the last line of its traceback, and where in the user's code that was."""
    if isinstance(error, SystemExit):
        text = "called sys.exit(%s)" % ("" if error.code is None else repr(error.code))
    elif isinstance(error, ModuleNotFoundError) and error.name:
        text = "needs the package %s, which is not installed in this environment" % error.name.partition(".")[0]
    else:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        text = "raised " + type(error).__name__ + (": " + lines[0][:300].rstrip(".") if lines else "")
    place = import_path.place(error, folder or os.getcwd())
    return text + (" (%s)" % place if place else "")
