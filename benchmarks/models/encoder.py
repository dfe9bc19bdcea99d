"""An encoder stack of 59 billion parameters: 236 GB of weights, which nobody allocates here."""

import torch
from torch import nn

LAYERS, WIDTH, HIDDEN, HEADS, TOKENS = 80, 8192, 28672, 64, 2048


def make():
    """The model and one sequence of ``TOKENS`` tokens."""
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, HIDDEN, batch_first=True)
    return nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False), torch.empty(
        1, TOKENS, WIDTH, device="meta"
    )
