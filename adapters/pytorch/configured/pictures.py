"""A model that reads or makes images, with what its inputs do not say: the tokens that it has in its layers. Python 3.6."""

from typing import Any, Sequence

import torch


class Pictures(torch.nn.Module):
    """A model that is called by name: of ``images`` in all, and ``tokens`` of each in a layer.

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


class Pictured(torch.nn.Module):
    """A language model with an encoder of images: the images come first in each sequence, the text after them.

    Where the images stand among the tokens is a matter of values, of which meta has none; no product depends on it.
    ``taken`` is how many tokens of a sequence are its images', and ``vision`` the paths of the modules that images alone go
    through.
    """

    def __init__(self, model: torch.nn.Module, images: int, taken: int, vision: Sequence[str], config: Any) -> None:
        super().__init__()
        self.model = model
        self.images, self.taken, self.vision = images, taken, ["model." + path for path in vision]
        self.config = config

    def forward(self, input_ids: Any, pixel_values: Any) -> Any:
        """What the model returns for ids of text, int64 (batch, tokens without the images'), and the images of all sequences."""
        texts = self.model.get_input_embeddings()(input_ids)
        found = rows(self.model.get_image_features(pixel_values=pixel_values))
        shape = (input_ids.shape[0], -1, texts.shape[-1])
        return self.model(inputs_embeds=torch.cat([found.reshape(shape), texts], dim=1))


def rows(features: Any) -> Any:
    """The tokens of images as a model of transformers returns them: (tokens of all images, width)."""
    found = getattr(features, "pooler_output", features)
    found = list(found) if isinstance(found, (list, tuple)) else [found]
    return torch.cat([each.reshape(-1, each.shape[-1]) for each in found])
