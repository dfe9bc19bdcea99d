"""A library of models that are made from configurations, with a table of its own."""

from __future__ import annotations

from typing import Any, ClassVar

import torch

from reconcile.products.sweep.small_models.table import Row, Table


class Configuration:
    """As a library's: attributes with defaults, which named arguments replace."""

    model_type = "stub"
    defaults: ClassVar[dict[str, Any]] = {}

    def __init__(self, **named: Any) -> None:
        vars(self).update({**self.defaults, **named})

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


class Part(Configuration):
    """Of an image."""

    defaults: ClassVar[dict[str, Any]] = {"channels": 3, "sizes": (64, 32), "image": 224}


class Whole(Configuration):
    """Of a text with an image."""

    def __init__(self, **named: Any) -> None:
        super().__init__(**{"hidden_size": 768, "num_hidden_layers": 12, "vocab_size": 3052, "part": Part(), **named})


class Net(torch.nn.Module):
    """An embedding and square layers."""

    config_class: type = Whole

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config
        self.embedding = torch.nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = torch.nn.ModuleList(
            torch.nn.Linear(config.hidden_size, config.hidden_size) for _ in range(config.num_hidden_layers)
        )

    def forward(self, input_ids: Any, pixel_values: Any = None) -> Any:
        assert input_ids.sum().item() > 0  # reads values
        hidden = self.embedding(input_ids)
        for layer in self.layers:
            hidden = layer(hidden)
        return hidden


WIDTH, LAYERS, TOKENS = 8, 2, 5
NET = Row(
    {"hidden_size": WIDTH, "num_hidden_layers": LAYERS, "vocab_size": 20, "part": {"image": 32, "sizes": [4, 2]}},
    {"input_ids": {"shape": [1, TOKENS], "runs": [[7, TOKENS, 1]]}, "pixel_values": {"shape": [1, 3, 32, 32]}},
)


class Blocks(torch.nn.Module):
    """As a class of diffusers: a picture and a text, each through a layer of its own; ``num_layers`` layers follow."""

    register_to_config = None

    def __init__(self, num_layers: int = 12, channels: tuple[int, ...] = (320, 640), text_dim: int = 96) -> None:
        super().__init__()
        assert isinstance(channels, tuple)
        self.image, self.text = torch.nn.Conv2d(4, channels[0], 1), torch.nn.Linear(text_dim, channels[0])
        self.layers = torch.nn.ModuleList(torch.nn.Linear(channels[0], channels[0]) for _ in range(num_layers))

    def forward(self, hidden_states: Any, encoder_hidden_states: Any) -> Any:
        x = torch.cat([self.image(hidden_states).flatten(2).transpose(1, 2), self.text(encoder_hidden_states)], 1)
        for layer in self.layers:
            x = layer(x)
        return x


SIDE = 6
BLOCKS = Row(
    {"num_layers": 1, "channels": [WIDTH, 16]},
    {"hidden_states": {"shape": [1, 4, SIDE, SIDE]}, "encoder_hidden_states": {"shape": [1, TOKENS, 96]}},
)


def load(library: str) -> Table:
    """The table in place of that of a library."""
    return Table(library, "1.2", {"Net": NET, "Blocks": BLOCKS})
