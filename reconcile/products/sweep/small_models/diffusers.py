"""The models of ``diffusers`` for a sweep: every class made from a configuration, from a small one that its code allows."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from . import fitted, mend, transformers
from .shrink_kwargs import STEPS, Step, smaller

TRIED, MOST = 12, 48
"""How many forms of inputs are tried with one configuration, and with all of them."""


def names() -> list[str]:
    """The classes of models that the library lists and that keep the arguments they were made with."""
    import diffusers

    classes = ((name, getattr(diffusers, name, None)) for name in dir(diffusers))
    return sorted(name for name, value in classes if _is_model(value) and value.__module__ != _base().__module__)


def maker(factory: Any) -> Any:
    """What makes a small model of a class, with inputs; the factory itself if it is anything else."""
    return Smallest(factory) if _is_model(factory) else factory


def _base() -> Any:
    from diffusers.models.modeling_utils import ModelMixin

    return ModelMixin


def _is_model(value: Any) -> bool:
    """Only a configuration says what to make: not the models that a wrapper is made from."""
    if not (isinstance(value, type) and issubclass(value, _base()) and hasattr(value, "register_to_config")):
        return False
    parameters = inspect.signature(value).parameters.values()
    return not any("Model" in str(p.annotation) for p in parameters if p.default is p.empty)


class Smallest(transformers.Smallest):
    """As of a class of transformers, from the named arguments of ``__init__`` and their defaults."""

    RUNGS = (*STEPS, None)
    """How far the configuration is shrunk, the furthest first; None is the default configuration."""

    left = MOST
    """Forms that may still be tried."""
    given = stated = 0
    """Dimensions of the main input that was tried last, and those that an error asked for."""

    def build(self, configuration: Mapping[str, Any]) -> Any:
        """A model with these arguments."""
        return self.model(**configuration)

    def _find_inputs(self, model: Any, errors: list[Exception]) -> dict[str, Any] | None:
        for inputs in self._examples(model):
            error = self._error(model, inputs)
            if error is None:
                return inputs
            self.stated = fitted.stated_dimensions(str(error), self.given) or self.stated
            errors.append(error.with_traceback(None))  # the traceback is not read, and would hold all activations
        return None

    def _mend(self, errors: list[Exception], rung: Step | None, named: dict[str, Any], mends: mend.Mends) -> None:
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

    def note(self, configuration: Mapping[str, Any]) -> str:
        """What the configuration is."""
        return transformers.made_from(", ".join(f"{name}={value}" for name, value in configuration.items()))

    def _configuration(
        self, step: Step | None, named: dict[str, Any], mends: mend.Mends | None = None
    ) -> dict[str, Any]:
        parameters = inspect.signature(self.model.__init__).parameters  # type: ignore[misc]
        several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        defaults = {name: p.default for name, p in parameters.items() if name != "self" and p.kind not in several}
        return {**smaller(defaults, step), **named}
