"""Reads and checks the config.json of ``reconcile llm`` (a local file or its content), and names its model in messages.

``Sizes`` and ``Lora`` are the requested input sizes and LoRA matrices; lora.py puts the matrices into the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .....core.errors import UsageError, describe_error
from .....core.user_files import read_json

SEQ = 2048
"""Tokens of a sequence, by default."""
Source = Path | Mapping[str, Any]
"""The path of a config.json, or its content."""
Made = Callable[[], tuple[Any, Any]]
"""Gives a model on meta, and its inputs."""
KINDS = ("model_type", "_class_name")
"""The fields that name the kind of a model: in transformers, and in diffusers."""
GIVE_A_CONFIG = "Give a config.json of transformers or diffusers."


@dataclass(frozen=True, slots=True)
class Lora:
    """Adapters: their rank, and the last names of the modules that get one, all nn.Linear but the head unless some are named."""

    rank: int
    targets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of a model's inputs: sequences or images; tokens of one, 0 for the default; the lengths of documents packed
    into each; the images of each sequence; and the height and width of an image in pixels, none for what is stated."""

    batch: int = 1
    seq: int = 0
    lengths: tuple[int, ...] = ()
    images: int = 0
    pixels: tuple[int, ...] = ()


@contextmanager
def refuse(sentence: str) -> Iterator[None]:
    """Raise a UsageError of this sentence, with the error at its end, for any error within but a UsageError."""
    try:
        yield
    except UsageError:
        raise
    except Exception as error:
        raise UsageError(f"{sentence}: {describe_error(error)}.") from error


def title(source: Source) -> str:
    """How messages name the configuration: the path of its file, or the type of its model."""
    return str(source) if isinstance(source, Path) else f"the configuration of {model_kind(source) or 'no type'}"


def name_of(source: Source) -> str:
    """The model's name: that of the file, of the folder of a config.json, or the type of model without either."""
    if isinstance(source, Path):
        return source.stem if source.stem != "config" else source.resolve().parent.name
    return model_kind(source)


def factory_of(name: str, model: Any, inputs: Any) -> Made:
    """A factory of that name that returns this model and these inputs. The model has no values that a step could change: the
    trace and every formula read one."""

    def make() -> tuple[Any, Any]:
        return model, inputs

    make.__name__ = make.__qualname__ = name
    return make


def model_kind(settings: Mapping[str, Any]) -> str:
    """The model's type or class; '' without either."""
    return str(next((settings[name] for name in KINDS if isinstance(settings.get(name), str)), ""))


def settings_of(source: Source) -> dict[str, Any]:
    """The fields of the configuration. Raises UsageError for a file that is no configuration, and for one of no kind of model."""
    settings = read_json(source, "the configuration", GIVE_A_CONFIG) if isinstance(source, Path) else source
    if not isinstance(settings, Mapping) or not model_kind(settings):
        told = title(source) if isinstance(source, Path) else "the mapping"
        raise UsageError(f"{told} has no model_type, so it is no configuration of a model of transformers.")
    return {name: value for name, value in settings.items() if name != "auto_map"}
