"""Experts, on one device and apart on the ranks of a world: a module of a user's, which imports nothing of ours."""

from __future__ import annotations

from typing import Any

import torch
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.utils.checkpoint import checkpoint

DIM, HIDDEN, BATCH, SEQ, EXPERTS, TOP = 64, 128, 4, 16, 8, 2
Made = tuple[nn.Module, torch.Tensor]


def line() -> Any:
    """All ranks of the world."""
    return init_device_mesh("cpu", (distributed.get_world_size(),), mesh_dim_names=("ep",)).get_group()


class Experts(nn.Module):
    """Each expert gets an equal part of the tokens; with a group, tokens go to the rank of their expert and come back."""

    again = False

    def __init__(self, group: Any = None) -> None:
        super().__init__()
        self.group, own = group, EXPERTS // (distributed.get_world_size(group) if group else 1)
        self.router = nn.Linear(DIM, EXPERTS, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(DIM, HIDDEN, bias=False), nn.SiLU(), nn.Linear(HIDDEN, DIM, bias=False))
            for _ in range(own)
        )

    def _passed(self, tokens: torch.Tensor) -> torch.Tensor:
        from torch.distributed._functional_collectives import all_to_all_single_autograd

        return all_to_all_single_autograd(tokens, None, None, self.group) if self.group else tokens

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return checkpoint(self._routed, x, use_reentrant=False) if self.again else self._routed(x)

    def _routed(self, x: torch.Tensor) -> torch.Tensor:
        tokens = x.reshape(-1, DIM)
        weight = self.router(tokens).softmax(-1).sum(-1, keepdim=True)
        given = self._passed(tokens.repeat_interleave(TOP, 0)).chunk(len(self.experts))
        out = self._passed(torch.cat([e(part) for e, part in zip(self.experts, given, strict=True)]))
        return (out.reshape(-1, TOP, DIM).sum(1) * weight).reshape(x.shape)


def experts() -> Made:
    return Experts(), torch.randn(BATCH, SEQ, DIM)


def experts_apart() -> Made:
    return Experts(line()), torch.randn(BATCH, SEQ, DIM)


def experts_again() -> Made:
    Experts.again = True
    return experts()


def experts_apart_again() -> Made:
    Experts.again = True
    return experts_apart()
