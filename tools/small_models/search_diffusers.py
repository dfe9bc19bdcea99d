"""Searches a small configuration of a class of diffusers, and inputs, that the class's own code takes."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, ClassVar

from reconcile.products.sweep.small_models import diffusers

from . import fitted, mend, search
from .shrink_kwargs import STEPS, Step, smaller

TRIED, MOST = 12, 48
"""How many forms of inputs are tried with one configuration, and with all of them."""


class Search(search.Search):
    """As of a class of transformers, from the named arguments of ``__init__`` and their defaults."""

    RUNGS: ClassVar[tuple[Any, ...]] = (*STEPS, None)
    """How far the configuration is shrunk, the furthest first; None is the default configuration."""
    reader: ClassVar[Any] = diffusers.SmallModel

    left = MOST
    """Forms that may still be tried."""
    given = stated = 0
    """Dimensions of the main input that was tried last, and those that an error asked for."""

    def _find_inputs(self, model: Any, errors: list[Exception]) -> dict[str, Any] | None:
        for inputs in self._examples(model):
            error = search.call(model, inputs)
            if error is None:
                return inputs
            self.stated = fitted.stated_dimensions(str(error), self.given) or self.stated
            errors.append(error.with_traceback(None))  # the traceback is not read, and would hold all activations
        return None

    def _mend(self, errors: list[Exception], rung: Step | None, mends: mend.Mends) -> None:
        """An error changes the inputs, never the configuration."""

    def _examples(self, model: Any) -> Iterator[dict[str, Any]]:
        """Inputs of every form that could be meant, each with the sizes that the model's layers take.

        Inputs with as many dimensions as an error requires come first; then fewer of the others are tried.
        """
        configuration = dict(model.config)
        forms = list(fitted.forms(configuration, inspect.signature(model.forward).parameters))
        dimensions = list(map(fitted.dimensions, forms))
        for _ in range(min(len(forms), TRIED // 2 if self.stated else TRIED, self.left)):
            at = dimensions.index(self.stated) if self.stated in dimensions else 0
            self.given = dimensions.pop(at)
            self.left -= 1
            yield fitted.fit(model, forms.pop(at), configuration)

    def _changed(self, rung: Step | None, mends: mend.Mends) -> dict[str, Any]:
        parameters = inspect.signature(self.model.__init__).parameters
        several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        return smaller(
            {name: p.default for name, p in parameters.items() if name != "self" and p.kind not in several}, rung
        )
