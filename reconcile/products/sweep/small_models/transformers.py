"""The models of ``transformers`` for a sweep: one class per architecture, from the smallest configuration its code allows."""

from __future__ import annotations

import gc
import itertools
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import torch

from . import example, mend
from .shrink import (
    RUNGS,
    Shared,
    is_configuration,
    shrunk,
    values_of,
)

LARGEST = 300_000_000
"""Parameters of a model that is built: one that cannot be made smaller is not tried."""
LONGEST = 200
"""Characters of an error of the model's own code that are shown."""
ORDER = (
    "IMAGE_TEXT_TO_TEXT", "MULTIMODAL_LM", "CAUSAL_LM", "SEQ_TO_SEQ_CAUSAL_LM", "SPEECH_SEQ_2_SEQ", "MASKED_LM",
    "IMAGE_CLASSIFICATION", "OBJECT_DETECTION", "UNIVERSAL_SEGMENTATION", "SEMANTIC_SEGMENTATION", "INSTANCE_SEGMENTATION",
    "DEPTH_ESTIMATION", "CTC", "AUDIO_CLASSIFICATION", "TEXT_TO_WAVEFORM", "TEXT_TO_SPECTROGRAM", "MASK_GENERATION",
    "ZERO_SHOT_OBJECT_DETECTION", "VIDEO_CLASSIFICATION", "TIME_SERIES_PREDICTION", "PRETRAINING",
)  # fmt: skip
"""The tasks for which an architecture has a class: it is listed with the first of them, then without a task, then others."""


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
    for table in first + rest:
        for architecture, name in getattr(auto, table, {}).items():
            classes.setdefault(architecture, name if isinstance(name, str) else name[0])
    return classes


def maker(factory: Any) -> Any:
    """What makes the smallest model of a class, with inputs, or the model of a configuration's class; the factory itself if it is
    anything else."""
    if not isinstance(factory, type):
        return factory
    if hasattr(factory, "config_class"):
        return Smallest(factory)
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

        name = architectures or _classes().get(getattr(self.configuration, "model_type", ""), "")
        if not hasattr(transformers, name or "\0"):
            raise Unfit(f"transformers has no class {name or 'for this configuration: name one with architectures='}")
        with _quiet():
            configuration = self.configuration(**named)
            torch.manual_seed(0)
            model = getattr(transformers, name)(configuration).eval()
        changed = ", ".join(_changes(configuration, self.configuration()))
        self.notes = (f"{name} of the configuration {self.configuration.__name__}({changed})",)
        return model


class Unfit(Exception):
    """A configuration that is not tried."""


class Smallest:
    """A factory: ``(model, (), named inputs)`` of the smallest configuration that the class can be built and called with.

    The random numbers that follow are the same for every model. Its named arguments are attributes of the configuration, and
    replace what the rules would give them. ``notes`` says what the configuration is, once a model has been made.
    """

    RUNGS: ClassVar[tuple[Any, ...]] = (*RUNGS, None)
    """How far the configuration is shrunk, the furthest first; None is the default configuration."""
    fitting: ClassVar[dict[tuple[type, str], tuple[Any, mend.Mends, dict[str, Any]]]] = {}
    """Which configuration and which inputs fit, for the models that this process has made: counters get a fresh one each."""

    def __init__(self, model: type) -> None:
        self.model = model
        self.notes: tuple[str, ...] = ()

    def __call__(self, **named: Any) -> tuple[Any, tuple[()], dict[str, Any]]:
        """Raises whatever the model's code raises if none of the configurations fits."""
        key = (self.model, repr(sorted(named.items())))
        if key not in self.fitting:
            with torch.device("cpu"):  # where values can be read, whatever the device of the model that is wanted
                self.fitting[key] = self._search(named)
        rung, mends, inputs = self.fitting[key]
        with _quiet():
            configuration = self._configuration(rung, named, mends)
            torch.manual_seed(0)
            model = self.build(configuration).eval()
        self.notes = (self.note(configuration),)
        torch.manual_seed(0)
        return model, (), {name: value.clone() if hasattr(value, "clone") else value for name, value in inputs.items()}

    def build(self, configuration: Any) -> Any:
        """A model of that configuration."""
        return self.model(configuration)

    def note(self, configuration: Any) -> str:
        """What the configuration is."""
        return _note(configuration)

    def _search(self, named: dict[str, Any]) -> tuple[Any, mend.Mends, dict[str, Any]]:
        """The first rung, and the first inputs, that the model's own code takes. Raises its errors.

        A rung is tried again, with what an error says, as long as errors say something new.
        """
        if getattr(self.model, "forward", None) is torch.nn.Module.forward:
            raise Unfit("the class has no forward: give a function that returns one of its parts, with inputs for it")
        errors: list[Exception] = []
        for rung in self.RUNGS:
            mends: mend.Mends | None = {}
            of_rung: list[Exception] = []
            tries = 0
            while mends is not None and tries < mend.MOST:
                of_try: list[Exception] = []
                inputs = self._fit_inputs(rung, named, mends, of_try)
                if inputs is not None:
                    return rung, mends, inputs
                of_rung, tries = of_try, tries + 1
                mends = self._mend(of_try, rung, named, mends)
                _release(of_try)
            errors += of_rung[:1]
        raise _choose_error(errors)

    def _fit_inputs(
        self, rung: Any, named: dict[str, Any], mends: mend.Mends, errors: list[Exception]
    ) -> dict[str, Any] | None:
        """Inputs that the model of that configuration takes; None, and ``errors`` are why, if there are none."""
        try:
            with _quiet():
                configuration = self._configuration(rung, named, mends)
                self._weigh(configuration, rung)
                model = self.build(configuration).eval()
            return self._find_inputs(model, errors)
        except ImportError:
            raise
        except Exception as error:
            errors.insert(0, error)
        return None

    def _find_inputs(self, model: Any, errors: list[Exception]) -> dict[str, Any] | None:
        """The first inputs that a model takes."""
        for inputs in itertools.islice(example.examples(model), example.MOST):
            if (error := self._error(model, inputs)) is None:
                return inputs
            repeated = _repeats(errors, error)
            errors.append(error)
            for fuller in itertools.islice(example.complete_inputs(model, inputs, error), example.MORE):
                if (further := self._error(model, fuller)) is None:
                    return fuller
                errors.append(further.with_traceback(None) if _repeats(errors, further) else further)
            if repeated:
                error.with_traceback(None)
        return None

    def _mend(self, errors: list[Exception], rung: Any, named: dict[str, Any], mends: mend.Mends) -> mend.Mends | None:
        """What the errors say about the configuration, with what they said before; None if there is nothing new."""
        with _quiet():
            default = self.model.config_class()  # type: ignore[attr-defined]
            try:
                configuration = self._configuration(rung, named, mends)
            except Exception:  # its parts do not agree with each other
                configuration = mend.intended_configuration(default, rung, mends)
        return next(filter(None, (mend.add_mend(error, configuration, mends) for error in errors)), None)

    def _configuration(self, rung: Any, named: dict[str, Any], mends: mend.Mends) -> Any:
        default = self.model.config_class()  # type: ignore[attr-defined]
        changed = shrunk(default, rung, Shared(added=mends)) if rung else mends.get(type(default), {})
        return type(default)(**{**changed, **named})

    def _weigh(self, configuration: Any, rung: Any) -> None:
        """Raises Unfit for a model that is too large to be built."""
        size = None
        try:
            with torch.device("meta"):
                size = sum(p.numel() for p in self.build(configuration).parameters())
        except ImportError:
            raise
        except Exception as error:  # some models compute while they are made
            if rung in self.RUNGS[-2:]:
                raise Unfit(f"its size cannot be told ({error})") from error
        if size is not None and size > LARGEST:
            raise Unfit(f"it has {size:,} parameters even so")

    @staticmethod
    def _error(model: Any, inputs: dict[str, Any]) -> Exception | None:
        """Why the model does not take these inputs; None if it does."""
        try:
            with torch.no_grad(), _quiet():
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


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress logging while a configuration is only tried."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def _choose_error(errors: list[Exception]) -> Exception:
    """The last of all configurations' first errors: from the least changed configuration, with the fullest inputs."""
    own = [error for error in errors if not isinstance(error, Unfit)]
    if not own:
        return (errors or [Unfit("it takes no inputs that could be made from its configuration")])[-1]
    why = f"{type(own[-1]).__name__}: {' '.join(str(own[-1]).split())[:LONGEST].rstrip('.')}"
    return Unfit(f"give a function that returns the model with inputs; none that were made fit it ({why})")


def _note(configuration: Any) -> str:
    default = type(configuration)()
    return made_from(", ".join(_changes(configuration, default)))


def made_from(changed: str) -> str:
    """A note on a configuration: which of its values differ from the default ones."""
    if not changed:
        return "made from its default configuration: none of the smaller ones that were tried fits its code"
    return f"made from the smallest configuration that its code allows: {changed}"


def _changes(configuration: Any, default: Any, prefix: str = "") -> Iterator[str]:
    before = values_of(default)
    for name, value in values_of(configuration).items():
        if is_configuration(value) and type(value) is type(before.get(name)):
            yield from _changes(value, before[name], f"{prefix}{name}.")
        elif isinstance(value, int) and value != before.get(name):
            yield f"{prefix}{name}={value}"
