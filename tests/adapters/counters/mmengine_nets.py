"""Small networks for mmengine; a worker of its environment imports this file. Each function returns a model and its input."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class Vectors(nn.Module):
    """A matrix times a vector, a vector times a matrix, and two vectors."""

    def forward(self, x: Any) -> Any:
        a, b = torch.ones(3), torch.ones(2)
        return (x @ a).sum() + (b @ x).sum() + torch.matmul(a, a)


def vectors() -> Any:
    return Vectors(), torch.ones(2, 3)


def same() -> Any:
    return nn.Conv1d(3, 4, 3, padding="same", bias=False), torch.ones(1, 3, 5)
