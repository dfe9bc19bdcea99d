"""The program of flopscope's README."""

import torch

DEPTH, WIDTH = 5, 256


@torch.library.custom_op("numpy::randn", mutates_args=())
def randn(like: torch.Tensor, size: list[int]) -> torch.Tensor:
    return torch.randn(size)


class Readme(torch.nn.Module):
    def forward(self, x):
        scale = torch.sqrt(x)
        weights = [randn(x, [WIDTH, WIDTH]) * scale for _ in range(DEPTH)]
        h = randn(x, [WIDTH])
        for i, weight in enumerate(weights):
            h = torch.einsum("ij,j->i", weight, h)
            if i < DEPTH - 1:
                h = torch.relu(h)
        return h


def make():
    return Readme(), torch.tensor(2 / WIDTH)
