"""A LLaMA-style decoder of 71 billion parameters, the zoo's at Llama 3.1 70B's sizes (arXiv:2407.21783, table 3)."""

from types import SimpleNamespace

import torch

from reconcile.model_zoo.llama import build_torch

SIZES = {
    "batch": 1,
    "steps": 2048,
    "depth": 80,
    "width": 8192,
    "heads": 64,
    "groups": 8,
    "inner": 28672,
    "vocabulary": 128256,
}


def make():
    """The model and one sequence of token ids."""
    sizes = SimpleNamespace(**SIZES)
    return build_torch(sizes), torch.zeros(1, sizes.steps, dtype=torch.int64, device="meta")
