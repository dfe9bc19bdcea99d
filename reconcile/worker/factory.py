"""A user's model that is given as the function that makes it (MODULE:FUNCTION), as a pair that the worker can run.

``package.module:function`` returns a model, or (model, inputs), or (model, positional inputs, named inputs); inputs are a
tensor, a tuple or list of positional ones, or a dict of named ones, of any structure.  A Keras model that states its inputs
needs none.  A compiled Keras model may also come as (model, x, y), with the targets of its training step.

Imported by the worker: Python 3.6 and standard library only.
"""

import importlib
import importlib.util
import os
from collections.abc import Mapping
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Type

from ..adapters.shared import keras_model, ownership, signatures
from ..adapters.shared.refusal import FactoryError
from ..core.framework import absolute
from ..core.protocol import WorkerRequest
from ..core.records import CALLED_WITH
from ..model_zoo import pair as pairs
from . import import_path, introspect, process_guard
from .user_code import Declined, UserCode, kind

WEIGHTS_LEFT_OUT = "called with %s=None: by default (%r) it loads weights, which change no count"
HOW_TO_GIVE_ARGUMENTS = (
    "name a function that returns them with --args MODULE:FUNCTION, or give shapes of arrays with --input 1,8:int32"
)


class FactoryPair(pairs.Pair):
    """One framework's factory and the inputs given on the command line, as a pair with this side alone."""

    user_model = True

    def __init__(self, request: WorkerRequest, adapter: Any) -> None:
        model = request.model
        assert model is not None
        super().__init__(model.name, model.params)
        self.framework = request.framework
        self.frameworks_of_run = model.frameworks
        self.adapter = adapter
        self.where = absolute(model.factory)
        self.known = request.known
        self.given_inputs: Optional[List[pairs.Input]] = None
        self.give(model.inputs)
        self.named = model.arguments
        self.args_from = model.example
        self.code = UserCode(os.getcwd())
        self.paths = request.paths
        self._weightless: Tuple[str, ...] = ()
        self._made_of: Tuple[str, ...] = ()
        self._other_step: Tuple[str, ...] = ()
        self._own_step = not request.training or request.standard or adapter.own_steps
        self._before: Optional[process_guard.Surroundings] = None
        self._names: Optional[Dict[str, int]] = None
        self._arguments: Tuple[Tuple[Any, ...], Dict[str, Any]] = ((), {})
        setattr(self, "build_" + self.framework.name, self._build)

    def ready(self, lacking: str, doing: Callable[[str], None]) -> None:
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
        self.settle()

    def settle(self) -> None:
        """Record the state to which each call of the factory is reset: environment variables, modes, random numbers."""
        self._before = process_guard.Surroundings(self.adapter)

    def _imported_framework(self, lacking: str) -> Any:
        """Import the framework's package, and make it the backend of Keras. Raises FactoryError."""
        package = self.framework.package
        os.environ[keras_model.VARIABLE] = self.framework.backend
        if importlib.util.find_spec(package) is None:
            raise FactoryError(lacking)
        return self._call(lambda: importlib.import_module(package), f"importing {package}")

    def give(self, inputs: Sequence[Tuple[str, Tuple[int, ...], str]], fused: bool = False) -> None:
        """Call the models that are made from now on with those of these inputs that are for this framework (``tf:ids``) or for
        all (``ids``), each model in its fused form if asked for."""
        self.fused = fused
        mine = [given for given in inputs if given[0].rpartition(":")[0] in ("", self.framework.name)]
        named = [pairs.Input(name.rpartition(":")[2], tuple(shape), dtype) for name, shape, dtype in mine]
        self.given_inputs = named or None

    def arguments(self, p: Any) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
        """Positional and named arguments of the model that was made last."""
        return self._arguments

    def called_notes(self, inputs: Callable[[], str]) -> Tuple[str, ...]:
        """The model's inputs, the configuration it is made from, which weights its factory was told not to load, and that a
        compiled model does not take its own step."""
        return (CALLED_WITH + inputs(),) + self._made_of + self._weightless + self._other_step

    def _build(self, _params: Any) -> Any:
        """A fresh model. Raises FactoryError."""
        factory = self._factory()
        self._from_the_start()
        if self.adapter.functions and not isinstance(factory, type) and signatures.needs_arguments(factory, self.named):
            return self._itself(self.code.factory(self.where, self.adapter.is_made))
        named = self._arguments_for(factory)
        made = self._call(lambda: factory(**named), f"the factory {self.where}", Declined)
        model = made
        inputs: Any = None
        self.targets = None
        if isinstance(made, tuple) and len(made) in (2, 3):
            model, inputs = made[0], made[1:]
            if len(inputs) == 2 and keras_model.is_compiled(model) and not _is_call(*inputs):
                inputs, self.targets = inputs[:1], inputs[1:]
        model, inputs = self._call(lambda: self.adapter.as_model(model, inputs), f"what the factory {self.where} made")
        if keras_model.keras_of(model, "Layer") and not keras_model.is_made_for(self.framework.backend, model):
            backend = self.framework.backend or f"none that {self.framework.title} has"
            raise FactoryError(
                f"the factory {self.where} made a Keras model on the backend {keras_model.backend() or 'tensorflow'}, not on "
                f"{backend}: do not change {keras_model.VARIABLE} before you import Keras, so that the model runs on the "
                "framework that you asked for."
            )
        if not self.adapter.is_model(model) or self._is_foreign(model):
            result = f"a tuple that starts with {kind(model)}" if inputs is not None else kind(made)
            raise FactoryError(
                f"the factory {self.where} returned {result}; it must return a {self.framework.model}, "
                "or (model, example inputs)."
            )
        if self.fused:
            model = self._call(lambda: self.adapter.fuse_model(model), f"fusing what the factory {self.where} made")
        self._made_of = tuple(getattr(factory, "notes", ()))
        if self.args_from:
            self._arguments = self._example(model)
        else:
            self._arguments = self._arguments_of(model, inputs, introspect.documentation(factory))
        return model

    def _is_foreign(self, model: Any) -> bool:
        """Whether it is of another framework's class, which this one may be able to call."""
        others = set(self.known.values()) & ownership.packages_of(model)
        return bool(others) and not ownership.is_function(model) and not self.adapter.owns(model)

    def _itself(self, function: Any) -> Any:
        """A function of arrays as the model. Raises FactoryError if nothing says what to call it with."""
        if self.args_from:
            self._arguments = self._example(function)
        elif self.given_inputs is not None:
            self._arguments = self._arguments_of(function, None)
        else:
            raise FactoryError(describe_unfed(self.where, function, HOW_TO_GIVE_ARGUMENTS))
        return function

    def _example(self, model: Any) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
        """The arguments that the user's function returns."""
        function = self.code.factory(self.args_from, lambda _value: False)
        given = self._call(
            lambda: self.adapter.examples(function), f"the arguments' function {self.args_from}", Declined
        )
        return signatures.split_arguments(self.adapter.entry(model), given)

    def _arguments_for(self, factory: Any) -> Dict[str, Any]:
        """The arguments of the factory. One of an installed package fetches no weights for a model that is only counted."""
        unloaded = {name: default for name, default in introspect.weightless(factory).items() if name not in self.named}
        self._weightless = tuple(WEIGHTS_LEFT_OUT % (name, default) for name, default in unloaded.items())
        return dict(dict.fromkeys(unloaded), **self.named)

    def _from_the_start(self) -> None:
        """Reset the process, so that every model is made like the first one, and its layers get the same names."""
        if self._before is not None:
            self._before.restore()
        if self._names is None:
            self._names = keras_model.names()
        keras_model.rename(self._names)

    def _factory(self) -> Any:
        """The function that makes the model. Raises FactoryError."""
        return self.adapter.maker(self.code.factory(self.where, self.adapter.is_made))

    def _call(self, function: Callable[[], Any], action: str, declined: Type[FactoryError] = FactoryError) -> Any:
        """Call the user's code. Raises FactoryError for whatever it raises."""
        return self.code.call(function, action, declined)

    def _arguments_of(self, model: Any, inputs: Any, doc: str = "") -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
        other = not self._own_step and keras_model.is_compiled(model)
        self._other_step = (keras_model.OTHER_STEP,) if other else ()
        if self.given_inputs is not None:
            typed = [i._replace(dtype=i.dtype or self.adapter.default_dtype()) for i in self.given_inputs]
            return tuple(i for i in typed if not i.name), {i.name: i for i in typed if i.name}
        if inputs is not None and len(inputs) == 2:
            positional, named = inputs
            if not isinstance(positional, (tuple, list)) or not isinstance(named, Mapping):
                raise FactoryError(
                    f"the factory {self.where} returned (model, {kind(positional)}, {kind(named)}); after the model, "
                    "return a tuple of positional inputs and a dict of named inputs."
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
        if signatures.needs_arguments(self.adapter.entry(model)):
            raise FactoryError(self._describe_missing_inputs())
        return (), {}

    def _describe_missing_inputs(self) -> str:
        """The sentence about a model that takes inputs, none of which are given."""
        alone = (
            f", or --input {self.framework.name}:SHAPE for this model alone" if len(self.frameworks_of_run) > 1 else ""
        )
        return (
            f"the factory {self.where} returned a model without example inputs: return (model, inputs), or "
            f"give them with --input, such as --input 1,3,224,224{alone}."
        )

    def tried(self, call: Callable[[], Any], inputs: Callable[[], str]) -> None:
        """Call the model as its own code would, without any counter. Raises FactoryError if that fails as well."""
        shared = self.given_inputs is not None and len(self.frameworks_of_run) > 1
        other = f"; give this framework its own: --input {self.framework.name}:SHAPE" if shared else ""
        self._call(call, f"the model of {self.where}, called with ({inputs()}{other}),", Declined)


def _is_call(positional: Any, named: Any) -> bool:
    """Whether these are positional and named inputs, and not inputs and targets."""
    return isinstance(positional, (tuple, list)) and isinstance(named, Mapping)


def describe_unfed(where: str, function: Any, remedy: str) -> str:
    """The sentence about a function that takes arguments, none of which are given."""
    names = ", ".join(p.name for p in signatures.parameters(function))
    return f"{where} takes arguments ({names}), and none are given: {remedy}."
