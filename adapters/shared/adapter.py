"""Base classes Adapter and Capture: the interface between a worker and a framework (models, traces, ledgers).

The folder of a framework has a module with a class ``Adapter`` derived from the one here; the framework's record names the
module (core/framework.py).  An adapter must take a trace, recognize a model and make a fresh one; the defaults fit a
framework of plain functions that no counter supports.

Python 3.6 and standard library only.
"""

import importlib
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, Tuple

from ...core.framework import Framework, absolute
from . import nested, ownership
from .refusal import FactoryError, OutOfMemory


class Adapter:
    """How a worker, or the caller's own process, uses one framework. It keeps no state."""

    own_steps = False
    """Whether a compiled Keras model takes its own training step here."""

    functions = False
    """Whether a function that takes arguments is itself a model, and not only one that makes a model."""

    packages: Tuple[str, ...] = ()
    """Packages whose classes and functions belong to this framework, beside its own."""

    def __init__(self, framework: Framework) -> None:
        self.framework = framework

    def before_import(self) -> None:
        """Set up the process before the framework is imported."""

    def unusable(self, package: Any) -> str:
        """Why the imported ``package`` cannot run a factory's model, as a sentence; '' if it can."""
        return ""

    def is_model(self, value: Any) -> bool:
        """Whether a value can be called as a model of this framework."""
        return callable(value)

    def owns(self, value: Any) -> bool:
        """Whether a value belongs to this framework and to no other, by the packages that its class or function comes from. It
        goes before ``is_model``, which more than one framework may say of a callable."""
        return ownership.belongs(value, {self.framework.package, *self.packages}, self.framework.backend)

    def as_model(self, value: Any, inputs: Any) -> Tuple[Any, Any]:
        """A value as a model, and its example inputs: those given, or those that it has itself."""
        return value, inputs

    def is_made(self, value: Any) -> bool:
        """Whether a value is certainly a model, if a function that makes a model is expected."""
        return False

    def makes_one(self, function: Callable[..., Any], has_inputs: bool) -> bool:
        """Whether a function object is a factory rather than a model; ``has_inputs`` says whether inputs came with it."""
        return not has_inputs

    def maker(self, factory: Any) -> Any:
        """The factory itself; for a class of a library whose models are made from a configuration, one that has a small one."""
        package = str(getattr(factory, "__module__", "")).partition(".")[0]
        module = dict(self.framework.libraries).get(package)
        return importlib.import_module(absolute(module)).maker(factory) if module else factory

    def fuse_model(self, model: Any) -> Any:
        """The model in the form that its own code makes of it for inference. Raises FactoryError if it has none."""
        raise FactoryError(f"{self.framework.title} knows no fused form of a model.")

    def examples(self, function: Callable[[], Any]) -> Any:
        """The arguments of a call, which a function of the user's returns."""
        return function()

    def default_dtype(self) -> str:
        """The dtype of an input if the user gives none."""
        return "float32"

    def entry(self, model: Any) -> Any:
        """The function of a model whose signature says which arguments it takes."""
        return model

    def copy(self, model: Any) -> Any:
        """A copy of a model object for one counter; the model itself if counters only read it."""
        return model

    def defaults(self) -> Dict[str, Any]:
        """The global settings of the framework that a factory may change; {} if the framework is not imported."""
        return {}

    def restore(self, defaults: Dict[str, Any]) -> None:
        """Restore these settings."""

    @contextmanager
    def keep_state(self) -> Iterator[None]:
        """Within this block, counting changes no global state of the framework for the caller's own code."""
        yield

    def capture(self, request: Any, pair: Any) -> "Capture":
        """The capture of that pair (core/protocol.py has the request)."""
        return Capture(request, pair)


class Capture:
    """Takes the traces and ledgers of one pair in one framework."""

    def __init__(self, request: Any, pair: Any) -> None:
        self.request = request
        self.pair = pair

    def trace(self, params: Any) -> Any:
        """The trace of one call, or of a training step if the request asks for one. Raises the model's own errors."""
        raise NotImplementedError

    def ledger(self, take: Callable[[Any], Any], params: Any) -> Any:
        """The ledger that ``take`` makes of a fresh model."""
        raise NotImplementedError

    def plain_call(self, params: Any) -> Tuple[Callable[[], Any], str]:
        """A call of the model without any counter, and a description of its arguments."""
        model, positional, named = self.make_call(params)
        return lambda: model(*positional, **named), self.called_with(positional, named)

    def make_call(self, params: Any) -> Tuple[Any, Tuple[Any, ...], Dict[str, Any]]:
        """A fresh model with the positional and named arguments of one call."""
        model = self.pair.builder(self.request.framework.name)(params)
        positional, named = self.pair.arguments(params)
        return model, positional, named

    def called_with(self, positional: Tuple[Any, ...], named: Dict[str, Any]) -> str:
        """These arguments in one line: ``float32 (1, 3), mask=int64 (1, 128)``."""
        return nested.describe_arguments((positional, named), is_leaf, tell)


def is_leaf(value: Any) -> bool:
    """Whether an argument is a tensor, or the shape and dtype of a tensor to make."""
    return hasattr(value, "shape") and hasattr(value, "dtype")


def tell(leaf: Any) -> str:
    """A tensor, or what stands for one, in words: ``float32 (1, 3)``."""
    dtype = getattr(leaf.dtype, "name", leaf.dtype)
    return f"{dtype} {tuple(int(size) for size in leaf.shape)}"


@contextmanager
def blame_model(pair: Any, call: Callable[[], Any], called_with: Callable[[], str]) -> Iterator[None]:
    """If the block fails, call the model without any counter: if that fails too, the model's author must fix it."""
    try:
        yield
    except (FactoryError, OutOfMemory):
        raise
    except BaseException:
        pair.tried(call, called_with)
        raise


@contextmanager
def refuse_out_of_memory(pair: Any) -> Iterator[None]:
    """Turn OutOfMemory into a FactoryError: a model that does not fit into memory is a fault of the input."""
    try:
        yield
    except OutOfMemory as error:
        raise FactoryError(f"the model {pair.name} does not fit into memory: {error}.") from error


def add_call_notes(trace: Any, pair: Any, called_with: Callable[[], str]) -> Any:
    """The trace with the pair's notes on its call, for the report."""
    return trace._replace(notes=trace.notes + pair.called_notes(called_with))
