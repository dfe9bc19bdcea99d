"""Makes the image inputs of a vision-language model, and calls the model on sequences with images in them.

The inputs are pixels on meta and, as the model asks, patch grids or sizes beside them.  The model itself says how many tokens it
makes of an image; from that follows where image tokens stand in a sequence.
"""

from __future__ import annotations

import inspect
from contextlib import suppress
from typing import Any

from .....core.errors import UsageError
from .config_source import Sizes
from .cpu_values import values_on_cpu
from .vision_model import shape_of

GRID, PIXELS = "image_grid_thw", "image_sizes"
"""What a model of transformers may take beside the pixels of images that differ in size: patches, or pixels, of each side."""
KINDS = ("mm_token_type_ids", "token_type_ids")
"""What a model may take beside token ids: 1 for a token of an image, 0 for one of text."""
Beside = dict[str, list[list[int]]]
"""Numbers that stand beside the pixels, a row for each image."""


def images_of(model: Any, vision: Any, sizes: Sizes, file: str) -> tuple[Any, int, Beside]:
    """The pixels of all images, bfloat16 on meta; the tokens of an image; and what stands beside the pixels.

    Those are, for each image, the patches of its time, height and width, or the pixels of its height and width, as the
    model asks for; patches are rows of pixels, or small images. Raises UsageError for images of a size that the model does not
    take, and what the model raises for images that it cannot read.
    """
    number = sizes.batch * sizes.images
    asked = inspect.signature(model.get_image_features).parameters
    tower = getattr(getattr(model, "model", model), "vision_tower", None)
    sized = PIXELS in inspect.signature(getattr(tower, "forward", len)).parameters
    beside: Beside = {}
    if GRID in asked:
        if not sizes.pixels:
            raise UsageError(f"an image of {file} has any size: give --image-size, such as 448x672.")
        patch, merged = int(vision.patch_size), int(vision.patch_size) * int(getattr(vision, "spatial_merge_size", 1))
        if any(side % merged for side in sizes.pixels):
            raise UsageError(f"an image of {file} has a multiple of {merged} pixels on each side: change --image-size.")
        sides = [side // patch for side in sizes.pixels]
        channels, deep = int(getattr(vision, "in_channels", 3)), int(getattr(vision, "temporal_patch_size", 1))
        patches = number * sides[0] * sides[1]
        beside[GRID] = [[1, *sides]] * number
        small = (patches, channels, patch, patch)
        shapes: list[tuple[int, ...]] = [(patches, channels * deep * patch**2), small, (1, *small)]
    else:
        channels, *stated = shape_of(vision)
        if not sized and sizes.pixels:
            raise UsageError(f"{file} states the size of an image: leave --image-size out.")
        side = list(sizes.pixels or stated)
        shapes = [(number, channels, *side)]
        if sized:
            beside[PIXELS] = [side] * number
    *others, last = shapes
    for shape in others:
        with suppress(Exception):
            return *_read_images(model, shape, number, beside), beside
    return *_read_images(model, last, number, beside), beside


def _read_images(model: Any, shape: tuple[int, ...], number: int, beside: Beside) -> tuple[Any, int]:
    """Pixels of this shape, and how many tokens a model of transformers makes of one of that many images. Raises ValueError if
    images have different numbers of them."""
    import torch

    pixels = torch.zeros(*shape, dtype=torch.bfloat16, device="meta")
    with torch.device("cpu"), values_on_cpu():
        made = model.get_image_features(pixel_values=pixels, **beside_pixels(beside))
    if not isinstance(made, (torch.Tensor, list, tuple)):
        made = made.last_hidden_state if made.pooler_output is None else made.pooler_output
    parts = list(made) if isinstance(made, (list, tuple)) else [made]
    tokens, rest = divmod(sum(part.numel() // part.shape[-1] for part in parts), number)
    if rest:
        raise ValueError("images of one size have different numbers of tokens")
    return pixels, tokens


def beside_pixels(beside: Beside) -> dict[str, Any]:
    """The numbers beside images as a model takes them: int64 on the CPU, since tensors on meta have no values."""
    import torch

    return {name: torch.tensor(rows, device="cpu") for name, rows in beside.items()}


def call_with_images(
    image: int, images: int, tokens: int, beside: Beside, model: Any, input_ids: Any, pixel_values: Any
) -> Any:
    """What a model of transformers returns for sequences with so many images of so many tokens in them; ``image`` is the id of a
    token of an image.

    Each image has a token of text behind it, as its end has in the models' own templates. Ids on meta have no values: others
    stand in their place.
    """
    import torch

    ids = torch.full(tuple(input_ids.shape), int(image == 0), device="cpu")
    for i in range(images):
        start = i * (tokens + 1)
        ids[:, start : start + tokens] = image
    given = beside_pixels(beside)
    asked = inspect.signature(model.forward).parameters
    given.update({name: (ids == image).long() for name in KINDS if name in asked})
    with torch.device("cpu"), values_on_cpu():
        return model(input_ids=ids, pixel_values=pixel_values, **given)
