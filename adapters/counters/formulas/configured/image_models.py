"""Wrappers of models that read or make images: they tell formulas the number of image tokens, which no input has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch


class ImageModel(torch.nn.Module):
    """A model of images that is called by name: of ``images`` in all, and ``tokens`` of each in a layer.

    ``text`` is the number of tokens of a text beside each image, 0 without one.
    """

    def __init__(self, model: torch.nn.Module, images: int, tokens: int, text: int = 0, config: Any = None) -> None:
        super().__init__()
        self.model = model
        self.images, self.tokens, self.text = images, tokens, text
        self.config = config

    def forward(self, **inputs: Any) -> Any:
        """What the model returns."""
        return self.model(**inputs)


class ImageLayout(NamedTuple):
    """Sequences, the tokens of one, the images in it, the tokens of an image, the numbers that stand beside all pixels, and the
    height and width in pixels that were asked for."""

    sequences: int
    seq: int
    images: int
    tokens: int
    beside: dict[str, list[list[int]]]
    pixels: tuple[int, ...] = ()


class ImageTextModel(torch.nn.Module):
    """A language model with images in each of its sequences, and how it is called with their pixels.

    ``vision`` are the paths of the modules that images alone go through.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        layout: ImageLayout,
        vision: Sequence[str],
        config: Any,
        call: Callable[[torch.nn.Module, Any], Any],
    ) -> None:
        super().__init__()
        self.model = model
        self.layout, self.vision = layout, ["model." + path for path in vision]
        self.config, self.call = config, call

    def forward(self, input_ids: Any, pixel_values: Any) -> Any:
        """What the model returns for images. The ids have no values on meta: those of the layout stand in their place."""
        return self.call(self.model, pixel_values)
