"""The models of ``diffusers`` for a sweep: every class made from a configuration, each from the small one of its table."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from . import table, transformers
from .table import Row


def names() -> list[str]:
    """The classes of models that the library lists and that keep the arguments they were made with."""
    import diffusers

    classes = ((name, getattr(diffusers, name, None)) for name in dir(diffusers))
    return sorted(name for name, value in classes if _is_model(value) and value.__module__ != _base().__module__)


def maker(factory: Any) -> Any:
    """What makes the small model of a class, with inputs; the factory itself if it is anything else."""
    return SmallModel(factory) if _is_model(factory) else factory


def _base() -> Any:
    from diffusers.models.modeling_utils import ModelMixin

    return ModelMixin


def _is_model(value: Any) -> bool:
    """Only a configuration says what to make: not the models that a wrapper is made from."""
    if not (isinstance(value, type) and issubclass(value, _base()) and hasattr(value, "register_to_config")):
        return False
    parameters = inspect.signature(value).parameters.values()
    return not any("Model" in str(p.annotation) for p in parameters if p.default is p.empty)


class SmallModel(transformers.SmallModel):
    """As of a class of transformers, from the named arguments of ``__init__`` and their defaults."""

    library = "diffusers"

    def row(self) -> Row:
        """The row of the class."""
        row = table.load(self.library).rows.get(self.model.__name__)
        if row is None:
            raise self.refuse_class()
        return row

    def configure(self, row: Row, named: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments that differ from the default ones."""
        parameters = inspect.signature(self.model.__init__).parameters
        defaults = {name: () if p.default is p.empty else p.default for name, p in parameters.items()}
        changed = {name: table.match_sequences(value, defaults.get(name)) for name, value in row.configuration.items()}
        return {**changed, **named}

    def build(self, configuration: Mapping[str, Any]) -> Any:
        """A model with these arguments."""
        return self.model(**configuration)

    def changes(self, configuration: Mapping[str, Any]) -> Iterator[str]:
        """The arguments, each with its value."""
        return (f"{name}={value}" for name, value in configuration.items())
