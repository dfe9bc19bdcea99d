"""What a framework's adapter is: everything that is done beside the framework and differs from one to the next.

A framework's folder has a module with a class ``Adapter`` that is derived from the one here; its record names the module
(core/framework.py).  A trace, a question whether some value is a model and a fresh model are all that one must be able to
give; the defaults fit a framework of plain functions, which nothing counts.

Python 3.6 and standard library only.
"""

from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, Tuple

from ...core.framework import Framework
from . import nested
from .refusal import FactoryError, OutOfMemory


class Adapter(object):
    """What a worker, or the caller's own process, knows of one framework. It keeps no state."""

    loader = ""
    """The module that loads model files (``ready()``, ``load(file, given)``), below this package; '' if it reads none."""

    def __init__(self, framework):
        # type: (Framework) -> None
        self.framework = framework

    def before_import(self):
        # type: () -> None
        """Set what has to be set in the process before the framework is imported."""

    def unusable(self, package):
        # type: (Any) -> str
        """Why the imported ``package`` cannot run a factory's model, as a sentence; '' if it can."""
        return ""

    def is_model(self, value):
        # type: (Any) -> bool
        """Whether a value can be called as a model of this framework."""
        return callable(value)

    def is_made(self, value):
        # type: (Any) -> bool
        """Whether a value can be nothing but a model, where a function that makes one is wanted."""
        return False

    def makes_one(self, function, has_inputs):
        # type: (Callable[..., Any], bool) -> bool
        """Whether a function at hand is a factory rather than a model; ``has_inputs`` says whether inputs came with it."""
        return not has_inputs

    def default_dtype(self):
        # type: () -> str
        """The dtype of an input for which nobody gives one."""
        return "float32"

    def entry(self, model):
        # type: (Any) -> Any
        """The function of a model whose signature says which arguments it takes."""
        return model

    def copy(self, model):
        # type: (Any) -> Any
        """A copy of a model at hand for one counter; the model itself where counters only read it."""
        return model

    def defaults(self):
        # type: () -> Dict[str, Any]
        """What a factory may change of the framework for the whole process; {} while it is not imported."""
        return {}

    def restore(self, defaults):
        # type: (Dict[str, Any]) -> None
        """Set these again."""

    @contextmanager
    def untouched(self):
        # type: () -> Iterator[None]
        """Meanwhile nothing that happens here changes what the caller's own code gets from the framework."""
        yield

    def capture(self, request, pair):
        # type: (Any, Any) -> Capture
        """What takes the traces and ledgers of that pair (core/protocol.py has the request)."""
        return Capture(request, pair)


class Capture(object):
    """Takes the traces and ledgers of one pair in one framework."""

    def __init__(self, request, pair):
        # type: (Any, Any) -> None
        self.request = request
        self.pair = pair

    def trace(self, params):
        # type: (Any) -> Any
        """The trace of one call, or of a training step where the request asks for one. Raises what the model raises."""
        raise NotImplementedError

    def ledger(self, take, params):
        # type: (Callable[[Any], Any], Any) -> Any
        """The ledger that ``take`` makes of a fresh model."""
        raise NotImplementedError

    def plain_call(self, params):
        # type: (Any) -> Tuple[Callable[[], Any], str]
        """A call of the model with no counter near, and what it is called with."""
        model, positional, named = self.made(params)
        return lambda: model(*positional, **named), self.called_with(positional, named)

    def made(self, params):
        # type: (Any) -> Tuple[Any, Tuple[Any, ...], Dict[str, Any]]
        """A fresh model with the positional and named arguments of one call."""
        model = self.pair.builder(self.request.framework.name)(params)
        positional, named = self.pair.arguments(params)
        return model, positional, named

    def called_with(self, positional, named):
        # type: (Tuple[Any, ...], Dict[str, Any]) -> str
        """These arguments in a line: ``float32 (1, 3), mask=int64 (1, 128)``."""
        return nested.described((positional, named), is_leaf, tell)


def is_leaf(value):
    # type: (Any) -> bool
    """Whether an argument is a tensor: one at hand, or the shape and dtype of one to make."""
    return hasattr(value, "shape") and hasattr(value, "dtype")


def tell(leaf):
    # type: (Any) -> str
    """``float32 (1, 3)``."""
    return "%s %s" % (getattr(leaf.dtype, "name", leaf.dtype), tuple(int(size) for size in leaf.shape))


@contextmanager
def trying(pair, call, called_with):
    # type: (Any, Callable[[], Any], Callable[[], str]) -> Iterator[None]
    """If what follows fails, call the model with no counter near: what fails then, too, is for its author to mend."""
    try:
        yield
    except (FactoryError, OutOfMemory):
        raise
    except BaseException:
        pair.tried(call, called_with)
        raise


@contextmanager
def fitting(pair):
    # type: (Any) -> Iterator[None]
    """A model that does not fit into memory is the input's fault: FactoryError, in a sentence."""
    try:
        yield
    except OutOfMemory as error:
        raise FactoryError("the model %s does not fit into memory: %s." % (pair.name, error)) from error


def noted(trace, pair, called_with):
    # type: (Any, Any, Callable[[], str]) -> Any
    """The trace with the pair's notes on its call, for the report."""
    return trace._replace(notes=trace.notes + pair.called_notes(called_with))
