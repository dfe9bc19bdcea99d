"""Setups that several tests search."""

from __future__ import annotations

from dataclasses import replace

from reconcile.products.mfu.closed_forms import Shape, numerators, put_first
from reconcile.products.mfu.setup import Setup, setup_of

H100, A100 = "H100 SXM", "A100 SXM4 80GB"
LLAMA = Shape(params=6738415616, layers=32, hidden=4096, vocab=32000, seq=4096, heads=32)
"""Llama 2 7B at 4,096 tokens."""


def rated(rate: str, device: str = H100, **more: object) -> Setup:
    """A run whose FLOP/s are stated."""
    return setup_of({"device": device, "flops_per_second": rate, **more})


def by_tokens(tokens: str, stated: str = "palm", **more: object) -> Setup:
    """A run of Llama 2 7B whose tokens per second are stated, with every closed form."""
    made = setup_of({"device": H100, "tokens_per_second": tokens, "flops_per_token": "1G", **more})
    return replace(made, numerators=put_first(stated, numerators(LLAMA)))
