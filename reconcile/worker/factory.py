"""A user's model that is given as the function that makes it: it replaces a pair.

``package.module:function`` returns a model, or (model, inputs), or (model, positional inputs, named inputs); inputs are a
tensor, a tuple or list of positional ones, or a dict of named ones, of any structure.  A Keras model that states its inputs
needs none.

Imported by the worker: Python 3.6 and standard library only.
"""

import importlib
import importlib.util
import inspect
import os
from collections.abc import Mapping
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Type

from ..adapters.shared import keras_model
from ..adapters.shared.refusal import FactoryError
from ..core.protocol import WorkerRequest
from ..core.records import CALLED_WITH
from ..model_zoo import pair as pairs
from . import import_path, introspect, process_guard
from .user_code import Declined, UserCode, kind

WEIGHTLESS = "called with %s=None: by default (%r) it loads weights, which change no count"


class FactoryPair(pairs.Pair):
    """One framework's factory and the inputs given on the command line, as a pair with this side alone."""

    user_model = True

    def __init__(self, request, adapter):
        # type: (WorkerRequest, Any) -> None
        model = request.model
        assert model is not None
        super(FactoryPair, self).__init__(model.name, model.params)
        self.framework = request.framework
        self.adapter = adapter
        self.where = model.factory
        self.known = request.known
        self.given_inputs = None  # type: Optional[List[pairs.Input]]
        self.give(model.inputs)
        self.named = model.arguments
        self.code = UserCode(os.getcwd())
        self.paths = request.paths
        self._weightless = ()  # type: Tuple[str, ...]
        self._made_of = ()  # type: Tuple[str, ...]
        self._before = None  # type: Optional[process_guard.Surroundings]
        self._names = None  # type: Optional[Dict[str, int]]
        self._arguments = ((), {})  # type: Tuple[Tuple[Any, ...], Dict[str, Any]]
        setattr(self, "build_" + self.framework.name, self._build)

    def ready(self, lacking, doing):
        # type: (str, Callable[[str], None]) -> None
        """Import the framework before any folder of the user's can hide it, and then the user's module before any model is
        made, so that what the module itself makes is on the usual device. Raises FactoryError, ``lacking`` if the framework
        is not installed.
        """
        self.code.doing = doing
        why = self.adapter.unusable(self._imported_framework(lacking))
        if why:
            raise FactoryError(why)
        import_path.welcome(self.code.folder, self.paths, self.where.partition(":")[0], self.known)
        self._factory()
        self._before = process_guard.Surroundings(self.adapter)

    def _imported_framework(self, lacking):
        # type: (str) -> Any
        """Import the framework's package, and make it the backend of Keras. Raises FactoryError."""
        package = self.framework.package
        os.environ[keras_model.VARIABLE] = self.framework.backend
        if importlib.util.find_spec(package) is None:
            raise FactoryError(lacking)
        return self._call(lambda: importlib.import_module(package), "importing %s" % package)

    def give(self, inputs):
        # type: (Sequence[Tuple[str, Tuple[int, ...], str]]) -> None
        """Call the models that are made from now on with these inputs."""
        self.given_inputs = [pairs.Input(name, tuple(shape), dtype) for name, shape, dtype in inputs] or None

    def arguments(self, p):
        # type: (Any) -> Tuple[Tuple[Any, ...], Dict[str, Any]]
        """Positional and named arguments of the model that was made last."""
        return self._arguments

    def called_notes(self, inputs):
        # type: (Callable[[], str]) -> Tuple[str, ...]
        """The model's inputs, the configuration it is made from, and which weights its factory was told not to load."""
        return (CALLED_WITH + inputs(),) + self._made_of + self._weightless

    def _build(self, _params):
        # type: (Any) -> Any
        """A fresh model. Raises FactoryError."""
        factory = self._factory()
        self._from_the_start()
        named = self._arguments_for(factory)
        made = self._call(lambda: factory(**named), "the factory %s" % self.where, Declined)
        model, inputs = made, None  # type: Any, Any
        if isinstance(made, tuple) and len(made) in (2, 3):
            model, inputs = made[0], made[1:]
        model, inputs = self._call(
            lambda: self.adapter.as_model(model, inputs), "what the factory %s made" % self.where
        )
        if keras_model.keras_of(model, "Layer") and not keras_model.is_made_for(self.framework.backend, model):
            raise FactoryError(
                "the factory %s made a Keras model on the backend %s, not on %s: do not change %s before you import Keras, "
                "so that the model runs on the framework that you asked for."
                % (
                    self.where,
                    keras_model.backend() or "tensorflow",
                    self.framework.backend or "none that %s has" % self.framework.title,
                    keras_model.VARIABLE,
                )
            )
        if not self.adapter.is_model(model):
            result = "a tuple that starts with %s" % kind(model) if inputs is not None else kind(made)
            raise FactoryError(
                "the factory %s returned %s; it must return a %s, or (model, example inputs)."
                % (self.where, result, self.framework.model)
            )
        self._made_of = tuple(getattr(factory, "notes", ()))
        self._arguments = self._arguments_of(model, inputs, introspect.documentation(factory))
        return model

    def _arguments_for(self, factory):
        # type: (Any) -> Dict[str, Any]
        """The arguments of the factory. One of an installed package fetches no weights for a model that is only counted."""
        unloaded = {name: default for name, default in introspect.weightless(factory).items() if name not in self.named}
        self._weightless = tuple(WEIGHTLESS % (name, default) for name, default in unloaded.items())
        return dict(dict.fromkeys(unloaded), **self.named)

    def _from_the_start(self):
        # type: () -> None
        """Reset the process, so that every model is made like the first one, and its layers get the same names."""
        if self._before is not None:
            self._before.restore()
        if self._names is None:
            self._names = keras_model.names()
        keras_model.rename(self._names)

    def _factory(self):
        # type: () -> Any
        """The function that makes the model. Raises FactoryError."""
        return self.adapter.maker(self.code.factory(self.where, self.adapter.is_made))

    def _call(self, function, action, declined=FactoryError):
        # type: (Callable[[], Any], str, Type[FactoryError]) -> Any
        """Call the user's code. Raises FactoryError for whatever it raises."""
        return self.code.call(function, action, declined)

    def _arguments_of(self, model, inputs, doc=""):
        # type: (Any, Any, str) -> Tuple[Tuple[Any, ...], Dict[str, Any]]
        if self.given_inputs is not None:
            typed = [i._replace(dtype=i.dtype or self.adapter.default_dtype()) for i in self.given_inputs]
            return tuple(i for i in typed if not i.name), {i.name: i for i in typed if i.name}
        if inputs is not None and len(inputs) == 2:
            positional, named = inputs
            if not isinstance(positional, (tuple, list)) or not isinstance(named, Mapping):
                raise FactoryError(
                    "the factory %s returned (model, %s, %s); after the model, return a tuple of positional inputs and "
                    "a dict of named inputs." % (self.where, kind(positional), kind(named))
                )
            return tuple(positional), dict(named)
        if inputs is not None:
            only = inputs[0]
            if isinstance(only, Mapping):
                return (), dict(only)
            return (tuple(only) if isinstance(only, (tuple, list)) and not hasattr(only, "_fields") else (only,)), {}
        stated = introspect.inputs_of(model, doc)
        if stated is not None:
            return stated, {}
        if needs_arguments(self.adapter.entry(model)):
            raise FactoryError(
                "the factory %s returned a model without example inputs: give them with --input, such as "
                "--input 1,3,224,224, or return (model, inputs)." % self.where
            )
        return (), {}

    def tried(self, call, inputs):
        # type: (Callable[[], Any], Callable[[], str]) -> None
        """Call the model as its own code would, without any counter. Raises FactoryError if that fails as well."""
        self._call(call, "the model of %s, called with (%s)," % (self.where, inputs()), Declined)


def needs_arguments(function):
    # type: (Any) -> bool
    """Whether a model's function cannot be called without arguments."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    usual = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return any(p.default is p.empty and p.kind in usual for p in parameters)
