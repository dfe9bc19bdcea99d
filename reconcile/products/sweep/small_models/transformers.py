"""The models of ``transformers`` for a sweep: one class per architecture, each from the small configuration of its table.

``Configured`` makes the model of a configuration class that a user names, with the user's values.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from . import HEADLESS, OF_CONFIGURATION, table
from .table import Row, Unfit

ORDER = (
    "IMAGE_TEXT_TO_TEXT", "MULTIMODAL_LM", "CAUSAL_LM", "SEQ_TO_SEQ_CAUSAL_LM", "SPEECH_SEQ_2_SEQ", "MASKED_LM",
    "IMAGE_CLASSIFICATION", "OBJECT_DETECTION", "UNIVERSAL_SEGMENTATION", "SEMANTIC_SEGMENTATION", "INSTANCE_SEGMENTATION",
    "DEPTH_ESTIMATION", "CTC", "AUDIO_CLASSIFICATION", "TEXT_TO_WAVEFORM", "TEXT_TO_SPECTROGRAM", "MASK_GENERATION",
    "ZERO_SHOT_OBJECT_DETECTION", "VIDEO_CLASSIFICATION", "TIME_SERIES_PREDICTION", "PRETRAINING",
)  # fmt: skip
"""The tasks for which an architecture has a class: it is listed with the first of them, then without a task, then others."""
NOT_READ = ("transformers_version", "architectures", "dtype", "id2label", "label2id", "problem_type")
"""Attributes of a configuration that change no model."""


def names() -> list[str]:
    """One class per architecture that the library lists: the one for its most usual task."""
    import transformers

    listed: set[str] = set(dir(transformers))
    return sorted(set(_classes().values()) & listed)


def _classes() -> dict[str, str]:
    """The class for the most usual task of every architecture, by the ``model_type`` of its configuration."""
    from transformers.models.auto import modeling_auto as auto

    first = [f"MODEL_FOR_{task}_MAPPING_NAMES" for task in ORDER] + ["MODEL_MAPPING_NAMES"]
    rest = sorted(n for n in vars(auto) if n.startswith("MODEL_") and n.endswith("_MAPPING_NAMES") and n not in first)
    classes: dict[str, str] = {}
    for names in first + rest:
        for architecture, name in getattr(auto, names, {}).items():
            classes.setdefault(architecture, name if isinstance(name, str) else name[0])
    return classes


def _headless_class(architecture: str) -> str:
    """The class of an architecture without a head; '' if there is none, or several."""
    from transformers.models.auto import modeling_auto

    found = getattr(modeling_auto, "MODEL_MAPPING_NAMES", {}).get(architecture)
    return found if isinstance(found, str) else ""


def maker(factory: Any) -> Any:
    """What makes the small model of a class, with inputs, or the model of a configuration's class; the factory itself if it is
    anything else."""
    if not isinstance(factory, type):
        return factory
    if hasattr(factory, "config_class"):
        return SmallModel(factory)
    return Configured(factory) if is_configuration(factory) else factory


class Configured:
    """A factory: the model of a configuration, whose values are the named arguments and its own defaults.

    ``architectures`` is the model's class, as in the library's config.json, by default that of its most usual task; the inputs
    are the user's. ``notes`` says what was made, once a model has been.
    """

    def __init__(self, configuration: type) -> None:
        self.configuration = configuration
        self.notes: tuple[str, ...] = ()

    def __call__(self, architectures: str = "", **named: Any) -> Any:
        """Raises whatever the model's code raises, and Unfit for a class that the library does not have."""
        import transformers

        kind = getattr(self.configuration, "model_type", "")
        name = architectures or _classes().get(kind, "")
        if not hasattr(transformers, name or "\0"):
            raise Unfit(f"transformers has no class {name or 'for this configuration: name one with architectures='}")
        with quiet():
            configuration = self.configuration(**named)
            torch.manual_seed(0)
            model = getattr(transformers, name)(configuration).eval()
        changed = ", ".join(_changes(configuration, self.configuration()))
        made = f"{name}{OF_CONFIGURATION}{self.configuration.__name__}({changed})"
        headless = "" if architectures else _headless_class(kind)
        self.notes = (f"{made}{HEADLESS}{headless}" if headless not in ("", name) else made,)
        return model


class SmallModel:
    """A factory: ``(model, (), named inputs)`` of the configuration and the inputs in the table.

    The random numbers that follow are the same for every model. Its named arguments are attributes of the configuration, and
    replace those of the table. ``notes`` says what the configuration is, once a model has been made.
    """

    library = "transformers"

    def __init__(self, model: type) -> None:
        self.model: Any = model
        self.notes: tuple[str, ...] = ()

    def __call__(self, **named: Any) -> tuple[Any, tuple[()], dict[str, Any]]:
        """Raises whatever the model's code raises, and Unfit for a class that the table does not have."""
        row = self.row()
        with quiet():
            configuration = self.configure(row, named)
            torch.manual_seed(0)
            model = self.build(configuration).eval()
        own = self.model.__name__ in table.load(self.library).rows
        self.notes = (table.describe(", ".join(self.changes(configuration)), own),)
        torch.manual_seed(0)
        return model, (), {name: table.make_input(value) for name, value in row.inputs.items()}

    def row(self) -> Row:
        """The row of the class; else, of the listed class of the same architecture, with the inputs that this one takes."""
        rows = table.load(self.library).rows
        configuration = self.model.config_class
        row = rows.get(self.model.__name__) or rows.get(_classes().get(getattr(configuration, "model_type", ""), ""))
        if row is None:
            raise self.refuse_class(f"its configuration ({self.library}:{configuration.__name__}) and inputs, or ")
        taken = inspect.signature(self.model.forward).parameters
        return Row(row.configuration, {name: value for name, value in row.inputs.items() if name in taken})

    def refuse_class(self, instead: str = "") -> Unfit:
        """What is raised for a class that the table does not have."""
        release = f"{self.library} {table.load(self.library).release}"
        return Unfit(
            f"no small model of {self.model.__name__} is known, only of classes in the table of {release}: "
            f"give {instead}a function that returns the model with inputs"
        )

    def configure(self, row: Row, named: Mapping[str, Any]) -> Any:
        """What the model is built from."""
        default = self.model.config_class()
        return type(default)(**{**_arguments(default, row.configuration), **named})

    def build(self, configuration: Any) -> Any:
        """A model of that configuration."""
        return self.model(configuration)

    def changes(self, configuration: Any) -> Iterator[str]:
        """Which values of a configuration differ from the default ones."""
        return _changes(configuration, type(configuration)())


def _arguments(default: Any, changed: Mapping[str, Any]) -> dict[str, Any]:
    """The named arguments that make a configuration with those values in place of the default ones."""
    before = values_of(default)
    return {
        name: type(before[name])(**_arguments(before[name], value))
        if is_configuration(before.get(name))
        else table.match_sequences(value, before.get(name))
        for name, value in changed.items()
    }


def is_configuration(value: Any) -> bool:
    """Whether a value is a configuration of its own."""
    return hasattr(value, "to_dict") and hasattr(value, "model_type")


def values_of(configuration: Any) -> dict[str, Any]:
    """The attributes that a configuration is made of."""
    return {k: v for k, v in vars(configuration).items() if not k.startswith("_") and k not in NOT_READ}


def _changes(configuration: Any, default: Any, prefix: str = "") -> Iterator[str]:
    before = values_of(default)
    for name, value in values_of(configuration).items():
        if is_configuration(value) and type(value) is type(before.get(name)):
            yield from _changes(value, before[name], f"{prefix}{name}.")
        elif isinstance(value, int) and value != before.get(name):
            yield f"{prefix}{name}={value}"


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress logging while a model is made."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
