"""Small decoders in plain PyTorch with the configurations of models of transformers, in every form that formulas tell apart."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

nn = torch.nn

B, T, L, H, N, K, D, F, V = 2, 6, 2, 12, 3, 1, 6, 20, 16
"""N D is not H: heads are wider than formulas with H // N take them to be."""
E, A, FE, NS = 4, 2, 5, 2
RQ, RKV, ROPE, NOPE, DV = 7, 8, 2, 4, 3
TOKENS = B * T


class Heads(nn.Module):
    """Attention with fewer key and value heads than query heads."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.o = nn.Linear(H, N * D, bias=False), nn.Linear(N * D, H, bias=False)
        self.k, self.v = nn.Linear(H, K * D, bias=False), nn.Linear(H, K * D, bias=False)

    def forward(self, x: Any) -> Any:
        q = self.q(x).view(B, T, N, D).transpose(1, 2)
        k, v = (f(x).view(B, T, K, D).transpose(1, 2).repeat_interleave(N // K, 1) for f in (self.k, self.v))
        return self.o(attend(q, k, v))


class Latent(nn.Module):
    """Latent attention: ranks of queries and of keys and values, and a part of each key for all heads."""

    def __init__(self) -> None:
        super().__init__()
        self.q_a, self.q_b = nn.Linear(H, RQ, bias=False), nn.Linear(RQ, N * (NOPE + ROPE), bias=False)
        self.kv_a, self.kv_b = nn.Linear(H, RKV + ROPE, bias=False), nn.Linear(RKV, N * (NOPE + DV), bias=False)
        self.o = nn.Linear(N * DV, H, bias=False)

    def forward(self, x: Any) -> Any:
        q = self.q_b(self.q_a(x)).view(B, T, N, NOPE + ROPE).transpose(1, 2)
        latent, rope = self.kv_a(x).split([RKV, ROPE], -1)
        k, v = self.kv_b(latent).view(B, T, N, NOPE + DV).transpose(1, 2).split([NOPE, DV], -1)
        k = torch.cat([k, rope.view(B, 1, T, ROPE).expand(B, N, T, ROPE)], -1)
        return self.o(attend(q, k, v))


def attend(q: Any, k: Any, v: Any) -> Any:
    """Causal attention as plain products: the diagonal and what is above it are computed as well."""
    return (torch.softmax(q @ k.transpose(-1, -2), -1) @ v).transpose(1, 2).reshape(B, T, -1)


class Gated(nn.Module):
    """A feed-forward of three matrices."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gate, self.up, self.down = (
            nn.Linear(H, width, False),
            nn.Linear(H, width, False),
            nn.Linear(width, H, False),
        )

    def forward(self, x: Any) -> Any:
        return self.down(torch.relu(self.gate(x)) * self.up(x))


class Experts(nn.Module):
    """A router, E experts of which each token runs through ``active``, and a shared one of NS widths."""

    def __init__(self, shared: bool, active: int = A) -> None:
        super().__init__()
        self.router = nn.Linear(H, E, bias=False)
        self.experts = nn.ModuleList(Gated(FE) for _ in range(E))
        self.shared = Gated(NS * FE) if shared else None
        self.rows = TOKENS * active // E

    def forward(self, x: Any) -> Any:
        flat = x.reshape(TOKENS, H)
        y = flat * self.router(flat).sum(-1, keepdim=True)
        ran = [expert(flat[: self.rows]).sum(0) for expert in self.experts]
        return x + (y + sum(ran) + (self.shared(flat) if self.shared is not None else 0)).view(B, T, H)


class Block(nn.Module):
    """A layer, with one norm of its own."""

    def __init__(self, attention: Any, mlp: Any) -> None:
        super().__init__()
        self.norm, self.attention, self.mlp = nn.LayerNorm(H), attention, mlp

    def forward(self, x: Any) -> Any:
        return self.mlp(x + self.attention(self.norm(x)))


class Decoder(nn.Module):
    """``kind`` is the name of the configuration's class, ``stated`` further fields of it."""

    def __init__(
        self,
        kind: str = "Config",
        experts: int = 0,
        latent: bool = False,
        tie: bool = False,
        frozen: bool = False,
        **stated: Any,
    ) -> None:
        super().__init__()
        config = {
            "num_hidden_layers": L, "hidden_size": H, "num_attention_heads": N, "num_key_value_heads": N if latent else K,
            "head_dim": ROPE if latent else D, "intermediate_size": F, "vocab_size": V,
        }  # fmt: skip
        if experts:
            config.update(num_experts=E, num_experts_per_tok=A, moe_intermediate_size=FE)
        if latent:
            config.update(q_lora_rank=RQ, kv_lora_rank=RKV, qk_rope_head_dim=ROPE, qk_nope_head_dim=NOPE, v_head_dim=DV)
            config.update({"n_shared_experts": NS} if experts else {})
        self.config = type(kind, (SimpleNamespace,), {})(**config, **stated)
        self.table = nn.Embedding(V, H)
        self.layers = nn.ModuleList(
            Block(Latent() if latent else Heads(), Experts(latent, experts) if experts else Gated(F)) for _ in range(L)
        )
        self.norm, self.head = nn.LayerNorm(H), nn.Linear(H, V, bias=False)
        if tie:
            self.head.weight = self.table.weight
        if frozen:
            self.layers[1].mlp.up.weight.requires_grad_(False)

    def forward(self, ids: Any) -> Any:
        x = self.table(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))
