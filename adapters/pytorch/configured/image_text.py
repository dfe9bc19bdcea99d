"""A language model that reads images as well, from its configuration alone: on meta, with images before the text."""

from __future__ import annotations

from typing import Any

from ....core.errors import UsageError, described
from ...shared.refusal import FactoryError
from .source import SEQ, Lora, Made, Sizes, Source, at_hand, name_of, title
from .vision import shape_of

LANGUAGE = ("language_model", "lm_head")
"""The parts of such a model, in transformers, that its text goes through; images go through the others first."""


def image_reader(source: Source, config: Any, sizes: Sizes, lora: Lora | None) -> Made:
    """A function that makes the model, ids of its text, and ``sizes.images`` images for each sequence of ``sizes.seq`` tokens.

    How many tokens an image has is what the model itself makes of one. Raises UsageError for a model that reads no images or
    whose images have no fixed size, and for a sequence in which they leave no token for text.
    """
    import torch
    from transformers import AutoModelForImageTextToText

    from ..libraries.lora import adapted
    from .pictures import Pictured, rows

    file, seq = title(source), sizes.seq or SEQ
    if sizes.lengths:
        raise UsageError("a sequence with images has no packed documents here: leave --lengths or --images out.")
    if not hasattr(config, "vision_config") or not hasattr(config, "text_config"):
        raise UsageError(
            f"{file} has no vision_config beside a text_config, so its model reads no images: leave --images out."
        )
    try:
        with torch.device("meta"):
            shape = shape_of(config.vision_config)
            model = AutoModelForImageTextToText.from_config(config, dtype=torch.bfloat16)
            pixels = torch.zeros(sizes.batch * sizes.images, *shape, dtype=torch.bfloat16)
            taken = len(rows(model.get_image_features(pixel_values=pixels))) // sizes.batch
    except Exception as error:
        raise UsageError(f"no image can be given to the model of {file} here: {described(error)}.") from error
    if taken >= seq:
        raise UsageError(
            f"the images of a sequence have {taken:,} tokens, and --seq {seq} leaves none for text: give more."
        )
    try:
        with torch.device("meta"):
            model = adapted(model, lora.rank, lora.targets) if lora is not None else model
            paths = [f"model.{path}" for path, _ in model.model.named_children() if path not in LANGUAGE]
            held = Pictured(model, sizes.images, taken, paths, config.get_text_config())
            inputs = {"input_ids": torch.zeros(sizes.batch, seq - taken, dtype=torch.int64), "pixel_values": pixels}
            held.train()(**inputs)
    except FactoryError as error:
        raise UsageError(str(error)) from error
    except Exception as error:
        raise UsageError(f"the model of {file} cannot be called with images here: {described(error)}.") from error

    return at_hand(name_of(source), held, inputs)
