"""Builds a transformers vision-language model and its inputs from its config.json alone, on the meta device, and calls it once.

Its sequences have images in them. For ``reconcile llm --images``.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from .....core.errors import UsageError
from .config_source import SEQ, Lora, Sizes, refuse

IMAGE = ("image_token_id", "image_token_index")
"""The fields of a configuration that may say which id stands for a token of an image."""
LANGUAGE = ("language_model", "lm_head")
"""The parts of such a model, in transformers, that its text goes through; images go through the others first."""


def image_reader(file: str, config: Any, sizes: Sizes, lora: Lora | None) -> tuple[Any, Any]:
    """Builds and calls the model; returns it, and its inputs: token ids, and ``sizes.images`` images for each sequence.

    How many tokens an image has is what the model itself makes of one. Raises UsageError for lengths of documents, a model that
    reads no images or names no id of their tokens, images of a size that it does not take, a sequence in which they leave no
    token for text, and a call that fails.
    """
    import torch
    from transformers import AutoModelForImageTextToText

    from .described_model import CalledModel, describe_model
    from .image_inputs import call_with_images, images_of
    from .lora import add_adapters

    if sizes.lengths:
        raise UsageError("a sequence with images has no packed documents here: leave --lengths or --images out.")
    if not hasattr(config, "vision_config") or not hasattr(config, "text_config"):
        raise UsageError(
            f"{file} has no vision_config beside a text_config, so its model reads no images: leave --images out."
        )
    with refuse(f"no image can be given to the model of {file} here"):
        with torch.device("meta"):
            model = AutoModelForImageTextToText.from_config(config, dtype=torch.bfloat16)
        pixels, tokens, beside = images_of(model, config.vision_config, sizes, file)
    image = next((getattr(config, name) for name in IMAGE if isinstance(getattr(config, name, None), int)), None)
    if image is None:
        raise UsageError(f"{file} names no token of an image (image_token_id), so none can be given here.")
    taken, seq = sizes.images * tokens, sizes.seq or SEQ
    if taken + sizes.images > seq:
        raise UsageError(
            f"the images of a sequence have {taken:,} tokens, and --seq {seq} leaves none for text: give more."
        )
    with refuse(f"the model of {file} cannot be called with images here"):
        with torch.device("meta"):
            model = add_adapters(model, lora.rank, lora.targets) if lora is not None else model
            within = "model.model." if hasattr(model, "model") else "model."
            parts = getattr(model, "model", model).named_children()
            inputs = {"input_ids": torch.zeros(sizes.batch, seq, dtype=torch.int64), "pixel_values": pixels}
        call = partial(call_with_images, image, sizes.images, tokens, beside)
        held = describe_model(
            CalledModel(model, config.get_text_config(), call),
            whole=config.model_type,
            vision=[within + path for path, _ in parts if path not in LANGUAGE],
            pixels=list(sizes.pixels),
            images=sizes.images,
            taken=taken,
        )
        held.train()(**inputs)
    return held, inputs
