"""Small networks whose steps are counted, and the multiply-adds of their layers, from their sizes alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

import reconcile
from reconcile.core.records import FORWARD, INPUT_GRADIENT, RECOMPUTATION, WEIGHT_GRADIENT
from reconcile.products.steps.count import Step

IN, WIDE, OUT, ROWS = 64, 32, 10, 6
FIRST, SECOND = 2 * ROWS * IN * WIDE, 2 * ROWS * WIDE * OUT
"""FLOPs of each linear layer of the small network on ROWS rows."""
MLP_STEP = 2 * FIRST + 3 * SECOND
"""FLOPs of one pass forward and backward: the network's input has no gradient."""


def mlp() -> nn.Sequential:
    """A 64-32-10 network; its layers are "0" and "2"."""
    return nn.Sequential(nn.Linear(IN, WIDE), nn.ReLU(), nn.Linear(WIDE, OUT))


def rows() -> torch.Tensor:
    return torch.randn(ROWS, IN)


def classes() -> torch.Tensor:
    return torch.randint(0, OUT, (ROWS,))


B, T, L, D, HEADS, V, RANK = 2, 12, 3, 16, 2, 40, 4
TOKENS = B * T
LAYER = 12 * D * D
"""Multiply-adds per token of a layer's matrices: 3 D D of queries, keys and values, D D behind them, twice 4 D D."""
PAIRS = B * T * T * D
"""Multiply-adds of one product of attention: every pair of steps, all heads."""
MATRICES = TOKENS * (L * LAYER + D * V)
ADAPTERS = TOKENS * L * 6 * D * RANK
"""Multiply-adds of the adapters: D to RANK to 3 D, and D to RANK to D."""


class Adapted(nn.Linear):
    """A frozen linear layer with a trained product of low rank beside it (LoRA)."""

    def __init__(self, wide: int, out: int) -> None:
        super().__init__(wide, out)
        self.requires_grad_(False)
        self.a, self.b = nn.Linear(wide, RANK, bias=False), nn.Linear(RANK, out, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) + self.b(self.a(x)) / RANK


class Block(nn.Module):
    """A layer of a transformer with PyTorch's attention and dropout."""

    def __init__(self, linear: Callable[[int, int], nn.Module]) -> None:
        super().__init__()
        self.before, self.between, self.drop = nn.LayerNorm(D), nn.LayerNorm(D), nn.Dropout(0.1)
        self.qkv, self.out = linear(D, 3 * D), linear(D, D)
        self.up, self.down = nn.Linear(D, 4 * D), nn.Linear(4 * D, D)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (
            part.view(-1, T, HEADS, D // HEADS).transpose(1, 2) for part in self.qkv(self.before(x)).chunk(3, -1)
        )
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(-1, T, D)
        x = x + self.drop(self.out(mixed))
        return x + self.down(functional.gelu(self.up(self.between(x))))


class Transformer(nn.Module):
    """A small language model; ``saved`` is "" or the kind of checkpoint around each layer, ``lora`` freezes all but adapters."""

    def __init__(self, saved: str = "", lora: bool = False, layers: int = L) -> None:
        super().__init__()
        self.table = nn.Embedding(V, D)
        self.layers = nn.ModuleList(Block(Adapted if lora else nn.Linear) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(D), nn.Linear(D, V, bias=False)
        self.saved = saved
        if lora:
            for name, weight in self.named_parameters():
                weight.requires_grad_(name.endswith(("a.weight", "b.weight")))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.table(ids)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=self.saved == "reentrant") if self.saved else layer(x)
        return self.head(self.norm(x))


def tokens() -> torch.Tensor:
    return torch.randint(0, V, (B, T))


def cross_entropy(model: nn.Module, ids: torch.Tensor) -> torch.Tensor:
    """The loss of a language model on its own input."""
    return functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten())


PLAIN = {
    FORWARD: 2 * (MATRICES + L * 2 * PAIRS),
    INPUT_GRADIENT: 2 * (MATRICES + L * 4 * PAIRS),  # of values, scores, queries and keys
    WEIGHT_GRADIENT: 2 * MATRICES,
}
"""FLOPs of the transformer's step by phase."""
REENTRANT = {**PLAIN, RECOMPUTATION: 2 * L * (TOKENS * LAYER + 2 * PAIRS)}
# without reentrance, what is computed again ends once everything is there that the gradients need: before the last product
NON_REENTRANT = {**PLAIN, RECOMPUTATION: 2 * L * (TOKENS * (LAYER - 4 * D * D) + 2 * PAIRS)}
LORA = {
    FORWARD: PLAIN[FORWARD] + 2 * ADAPTERS,
    # nothing that the first layer's queries, keys and values are made of is trained: neither base nor adapter goes on
    INPUT_GRADIENT: PLAIN[INPUT_GRADIENT] + 2 * (ADAPTERS - TOKENS * (3 * D * D + D * RANK)),
    WEIGHT_GRADIENT: 2 * ADAPTERS,
}


def attention(phases: dict[str, int]) -> int:
    """FLOPs of attention in such a step: its products forward, backward, and those that are computed again."""
    return 2 * L * PAIRS * (2 + 4 + (2 if RECOMPUTATION in phases else 0))


def phases(step: Step) -> dict[str, int]:
    """FLOPs by phase as ``metrics`` tells them, without those that have none."""
    named = {name.removeprefix("flops/"): value for name, value in step.metrics().items() if name.startswith("flops/")}
    return {name: int(value) for name, value in named.items() if value}


def counted(run: Callable[[], Any], *models: nn.Module, **options: Any) -> Step:
    """The step that this runs."""
    with reconcile.count(*models, **options) as step:
        run()
    return step


def by_hand(run: Callable[[], Any]) -> int:
    """What FlopCounterMode counts around the same code, as anybody would write it."""
    with FlopCounterMode(display=False) as mode:
        run()
    return int(mode.get_total_flops())


def settled(step: Step) -> dict[str, int]:
    """What is booked between flop_counter and the work that ran, by cause; the residual is 0."""
    (ledger,), (statement,) = step.result.ledgers, step.result.statements
    assert (statement.residual, ledger.mismatches, ledger.unchecked) == (0, (), 0), statement.reason
    return {cause: amount for cause, amount in statement.by_cause().items() if amount}
