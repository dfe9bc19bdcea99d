"""Experts, on one device and apart on the ranks of a world: a module of a user's, which imports nothing of ours."""

from __future__ import annotations

from typing import Any

import torch
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.nn import functional
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


class Routed(Experts):
    """Tokens choose their experts. With places, an expert takes the first tokens that chose it, drops the others, and fills
    places that are empty with zeros; without, it takes all of them."""

    places = 0

    def _routed(self, x: torch.Tensor) -> torch.Tensor:
        tokens = x.reshape(-1, DIM)
        weights, chosen = self.router(tokens).softmax(-1).topk(TOP)
        nothing = chosen.numel()  # the number of a choice that is none
        rows = [(chosen.flatten() == expert).nonzero().flatten() for expert in range(EXPERTS)]
        if self.places:
            rows = [functional.pad(r[: self.places], (0, max(0, self.places - len(r))), value=nothing) for r in rows]
        choices = torch.cat(rows)
        given = torch.cat([tokens, torch.zeros(1, DIM)])[choices // TOP]
        if self.group:  # (experts, places) -> (ranks, experts of a rank, places) -> (experts of a rank, ranks, places)
            ranks = EXPERTS // len(self.experts)
            given = self._turned(self._passed(given), ranks, len(self.experts))
            parts = list(given.chunk(len(self.experts)))
        else:
            parts = list(given.split([len(r) for r in rows]))
        out = torch.cat([expert(part) for expert, part in zip(self.experts, parts, strict=True)])
        if self.group:
            out = self._passed(self._turned(out, len(self.experts), ranks))
        weight = torch.cat([weights.flatten(), torch.zeros(1)])[choices].unsqueeze(-1)
        return torch.zeros(len(tokens) + 1, DIM).index_add(0, choices // TOP, out * weight)[:-1].reshape(x.shape)

    def _turned(self, rows: torch.Tensor, first: int, second: int) -> torch.Tensor:
        return rows.view(first, second, self.places, DIM).transpose(0, 1).reshape(-1, DIM)


def experts_chosen() -> Made:
    return Routed(), torch.randn(BATCH, SEQ, DIM)


def experts_with_places(places: int = 8) -> Made:
    Routed.places = places
    return Routed(line()), torch.randn(BATCH, SEQ, DIM)


def experts_with_room() -> Made:
    return experts_with_places(24)


def experts_with_room_again() -> Made:
    Routed.again = True
    return experts_with_places(24)
