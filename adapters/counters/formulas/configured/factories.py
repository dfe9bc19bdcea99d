"""Chooses the kind of model that a config.json describes, and builds it and its inputs, for ``reconcile llm``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .....core.errors import UsageError, describe_error
from . import causal_lm, diffusion, image_text
from .config_source import Lora, Made, Sizes, Source, factory_of, name_of, settings_of, title
from .vision_model import vision_config_of, vision_model


def factory(source: Source, sizes: Sizes, lora: Lora | None = None) -> Made:
    """Builds the model of a configuration and its inputs, on meta, and returns a function that gives both.

    A language model gets token ids; one that reads images as well gets them with ``sizes.images`` and is its text_config without;
    a vision model gets images alone; a model of diffusers (``_class_name``) gets latents, a timestep and a text. Raises
    UsageError, with one sentence, for a configuration that describes no such model, and for sizes that it does not have.
    """
    settings, file = settings_of(source), title(source)
    if "model_type" not in settings:
        _none_of(file, "makes images", replace(sizes, pixels=()), lora)
        return factory_of(name_of(source), *diffusion.image_maker(file, settings, sizes))
    try:
        import torch  # noqa: F401
        from transformers import AutoConfig
    except ImportError as error:
        raise UsageError(
            f"{file} describes a model of transformers, which cannot be imported here ({error}): "
            "install the extra llm, as in pip install 'flop-reconcile[torch,llm]'."
        ) from error
    try:
        config = AutoConfig.for_model(str(settings.pop("model_type")), **settings)
    except (ImportError, RuntimeError) as error:
        raise UsageError(f"transformers cannot import what {file} describes here: {describe_error(error)}.") from error
    except Exception as error:
        raise UsageError(f"{file} is not a configuration that transformers reads: {describe_error(error)}.") from error
    if sizes.images:
        return factory_of(name_of(source), *image_text.image_reader(file, config, sizes, lora))
    vision_config = vision_config_of(config)
    if sizes.pixels and vision_config is None:
        raise UsageError("--image-size is that of --images: give both, or leave --image-size out.")
    if vision_config is not None:
        _none_of(file, "reads images alone", sizes, lora)
        if sizes.seq:
            raise UsageError(
                f"{file} describes a model that reads images alone, whose sizes it states: leave --seq out."
            )
        part = "" if vision_config is config else " (its vision_config)"
        return factory_of(name_of(source) + part, *vision_model(file, vision_config, sizes))
    part = "" if config.get_text_config() is config else " (its text_config)"
    return factory_of(name_of(source) + part, *causal_lm.language_model(file, config, sizes, lora))


def make_model(settings: dict[str, Any], sizes: Sequence[Any], lora: Sequence[Any] | None = None) -> Any:
    """The model of a configuration and its inputs, for a worker; ``sizes`` and ``lora`` have the fields of their records."""
    batch, seq, lengths, images, pixels = sizes
    asked = Sizes(batch, seq, tuple(lengths), images, tuple(pixels))
    return factory(settings, asked, Lora(lora[0], tuple(lora[1])) if lora else None)()


def _none_of(file: str, what: str, sizes: Sizes, lora: Lora | None) -> None:
    """Raise UsageError for options that only a language model has."""
    given = {
        "--lengths": sizes.lengths,
        "--images": sizes.images,
        "--image-size": sizes.pixels,
        "--lora": lora,
    }
    wrong = [name for name, value in given.items() if value]
    if wrong:
        raise UsageError(f"{file} describes a model that {what}: leave {', '.join(wrong)} out; --batch is its images.")
