"""Searches the smallest configuration of a class of transformers, and inputs, that the class's own code takes."""

from __future__ import annotations

import gc
import itertools
from typing import Any, ClassVar

import torch

from reconcile.products.sweep.small_models import transformers
from reconcile.products.sweep.small_models.table import Row
from reconcile.products.sweep.small_models.transformers import quiet

from . import example, mend
from .row import describe_input
from .shrink import RUNGS, Shared, shrunk

LARGEST = 300_000_000
"""Parameters of a model that is built: one that cannot be made smaller is not tried."""


class NothingFits(Exception):
    """No configuration and inputs were found."""


class Search:
    """The search for one class: ``run`` returns its row."""

    RUNGS: ClassVar[tuple[Any, ...]] = (*RUNGS, None)
    """How far the configuration is shrunk, the furthest first; None is the default configuration."""
    reader: ClassVar[Any] = transformers.SmallModel

    def __init__(self, model: type) -> None:
        self.model: Any = model
        self.factory = self.reader(model)

    def run(self) -> Row:
        """The first rung, and the first inputs, that the model's own code takes. Raises its errors.

        A rung is tried again, with what an error says, as long as errors say something new.
        """
        if getattr(self.model, "forward", None) is torch.nn.Module.forward:
            raise NothingFits("the class has no forward")
        errors: list[Exception] = []
        for rung in self.RUNGS:
            mends: mend.Mends | None = {}
            of_rung: list[Exception] = []
            tries = 0
            while mends is not None and tries < mend.MOST:
                of_try: list[Exception] = []
                inputs = self._fit_inputs(rung, mends, of_try)
                if inputs is not None:
                    return Row(
                        self._changed(rung, mends), {name: describe_input(value) for name, value in inputs.items()}
                    )
                of_rung, tries = of_try, tries + 1
                mends = self._mend(of_try, rung, mends)
                _release(of_try)
            errors += of_rung[:1]
        raise _choose_error(errors)

    def _changed(self, rung: Any, mends: mend.Mends) -> dict[str, Any]:
        """The values of the configuration that differ from the default ones."""
        default = self.model.config_class()
        return shrunk(default, rung, Shared(added=mends)) if rung else mends.get(type(default), {})

    def _fit_inputs(self, rung: Any, mends: mend.Mends, errors: list[Exception]) -> dict[str, Any] | None:
        """Inputs that the model of that configuration takes; None, and ``errors`` are why, if there are none."""
        try:
            with quiet():
                configuration = self._configuration(rung, mends)
                self._weigh(configuration, rung)
                model = self.factory.build(configuration).eval()
            return self._find_inputs(model, errors)
        except ImportError:
            raise
        except Exception as error:
            errors.insert(0, error)
        return None

    def _configuration(self, rung: Any, mends: mend.Mends) -> Any:
        return self.factory.configure(Row(self._changed(rung, mends), {}), {})

    def _find_inputs(self, model: Any, errors: list[Exception]) -> dict[str, Any] | None:
        """The first inputs that a model takes."""
        for inputs in itertools.islice(example.examples(model), example.MOST):
            if (error := call(model, inputs)) is None:
                return inputs
            repeated = _repeats(errors, error)
            errors.append(error)
            for fuller in itertools.islice(example.complete_inputs(model, inputs, error), example.MORE):
                if (further := call(model, fuller)) is None:
                    return fuller
                errors.append(further.with_traceback(None) if _repeats(errors, further) else further)
            if repeated:
                error.with_traceback(None)
        return None

    def _mend(self, errors: list[Exception], rung: Any, mends: mend.Mends) -> mend.Mends | None:
        """What the errors say about the configuration, with what they said before; None if there is nothing new."""
        with quiet():
            default = self.model.config_class()
            try:
                configuration = self._configuration(rung, mends)
            except Exception:  # its parts do not agree with each other
                configuration = mend.intended_configuration(default, rung, mends)
        return next(filter(None, (mend.add_mend(error, configuration, mends) for error in errors)), None)

    def _weigh(self, configuration: Any, rung: Any) -> None:
        """Raises NothingFits for a model that is too large to be built."""
        size = None
        try:
            with torch.device("meta"):
                size = sum(p.numel() for p in self.factory.build(configuration).parameters())
        except ImportError:
            raise
        except Exception as error:  # some models compute while they are made
            if rung in self.RUNGS[-2:]:
                raise NothingFits(f"its size cannot be told ({error})") from error
        if size is not None and size > LARGEST:
            raise NothingFits(f"it has {size:,} parameters even so")


def call(model: Any, inputs: dict[str, Any]) -> Exception | None:
    """Why a model does not take these inputs; None if it does."""
    try:
        with torch.no_grad(), quiet():
            model(**inputs)
    except ImportError:
        raise
    except Exception as error:
        return error
    return None


def _release(errors: list[Exception]) -> None:
    """Give back the model that was tried and everything that it computed.

    The functions that an error passed through hold their values, and each holds the function that called it: the search, which
    holds the error. Only a collection ends such a circle, and Python starts none because tensors are large.
    """
    rest: list[BaseException | None] = [*errors]
    while rest:
        error = rest.pop()
        if error is not None:
            rest += [error.__cause__, error.__context__]
            error.__traceback__ = error.__cause__ = error.__context__ = None
    gc.collect()


def _repeats(errors: list[Exception], error: Exception) -> bool:
    """Whether an earlier error said the same: then this one's traceback, which holds all activations, is not needed."""
    return any(type(earlier) is type(error) and str(earlier) == str(error) for earlier in errors)


def _choose_error(errors: list[Exception]) -> Exception:
    """The last of all configurations' first errors: from the least changed configuration, with the fullest inputs."""
    own = [error for error in errors if not isinstance(error, NothingFits)]
    return (own or errors or [NothingFits("no inputs could be made from its configuration")])[-1]
