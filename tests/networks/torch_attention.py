"""Attention in PyTorch as blocks: the function with masks, groups and dropout, and the layers."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from .block import Block, Cost, Makes, Shape, product
from .torch_layers import Apply

F = nn.functional
make = MAKES = Makes()


def divisors(number: int) -> list[int]:
    return [n for n in range(1, number + 1) if number % n == 0]


def attended(macs: int, fused: bool, *needs: bool) -> Cost:
    """Scores and values, ``macs`` each; ``needs``: query, key and value.

    The CPU's fused kernel computes every gradient; that it computes the scores again to find them belongs to the kernel
    and not to the model, and is not counted (reconcile/work/attention.py says so). Written out, a gradient of the scores
    is by the values, and one of each operand by those.
    """
    scores = needs[0] or needs[1]
    if not any(needs):
        return Cost(2 * macs)
    if fused:
        return Cost(2 * macs, inputs=4 * macs)
    return Cost(2 * macs, inputs=macs * (scores + sum(needs)))


@make
def attention(rng: Any, shape: Shape) -> Block | None:
    """The value with itself: queries are all or the first steps, keys and values those of some heads only."""
    if len(shape) != 3:
        return None
    batch, steps, width = shape
    heads = rng.choice(divisors(width))
    each, groups = width // heads, rng.choice(divisors(heads))
    kind = rng.choice(["plain", "causal", "added", "boolean", "dropout"])
    asking = steps if kind == "causal" else rng.randint(1, steps)

    def run(m: Any, x: Any) -> Any:
        parts = x.view(batch, steps, heads, each).transpose(1, 2)
        query, key = parts[:, :, :asking], parts[:, :groups]
        masks = {
            "added": torch.zeros(asking, steps), "boolean": torch.ones(asking, steps, dtype=torch.bool),
        }  # fmt: skip
        out = F.scaled_dot_product_attention(
            query, key, key, masks.get(kind), 0.1 if kind == "dropout" and m.training else 0.0, kind == "causal",
            enable_gqa=groups < heads,
        )  # fmt: skip
        return out.transpose(1, 2).reshape(batch, asking, width)

    macs = batch * asking * steps * width
    name = f"sdpa_{kind}{'_grouped' if groups < heads else ''}"
    return Block(name, Apply(run), (batch, asking, width), lambda n, _: attended(macs, kind != "dropout", n, n, n))


@make
def memory(rng: Any, shape: Shape) -> Block | None:
    """Attention to keys and values that are parameters, or constants."""
    if len(shape) != 3:
        return None
    batch, steps, width = shape
    seen, learned = rng.randint(1, 4), rng.random() < 0.6
    part = Apply(
        lambda m, x: F.scaled_dot_product_attention(x, m.weights[0].expand(batch, -1, -1), m.weights[1].expand(batch, -1, -1)),
        (seen, width), (seen, width),
    ).requires_grad_(learned)  # fmt: skip
    macs = batch * steps * seen * width
    return Block(f"memory{'_learned' if learned else ''}", part, shape,
                 lambda n, t: attended(macs, False, n, t, t), learned)  # fmt: skip


@make
def multi_head(rng: Any, shape: Shape) -> Block | None:
    if len(shape) != 3:
        return None
    batch, steps, width = shape
    layer = nn.MultiheadAttention(width, rng.choice(divisors(width)), bias=rng.random() < 0.7, batch_first=True)
    weights, causal = rng.random() < 0.4, rng.random() < 0.3

    def run(m: Any, x: Any) -> Any:
        mask = torch.ones(steps, steps, dtype=torch.bool).triu(1) if causal else None
        return m.layer(x, x, x, need_weights=weights, attn_mask=mask)[0]

    def form(needs: bool, trained: bool) -> Cost:
        """Three projections in one, scores and values, and the projection of what comes out."""
        after = needs or trained
        total = product(3 * batch * steps * width * width, needs, trained)
        total += attended(batch * steps * steps * width, not weights, after, after, after)
        return total + product(batch * steps * width * width, after, trained)

    name = f"multi_head{'_weights' if weights else ''}{'_causal' if causal else ''}"
    return Block(name, Apply(run, layer=layer), shape, form, True)


@make
def encoder(rng: Any, shape: Shape) -> Block | None:
    """A whole layer: attention and two linear ones."""
    if len(shape) != 3:
        return None
    batch, steps, width = shape
    wide = rng.randint(1, 6)
    layer = nn.TransformerEncoderLayer(
        width,
        rng.choice(divisors(width)),
        wide,
        rng.choice([0.0, 0.1]),
        batch_first=True,
        norm_first=rng.random() < 0.5,
    )
    fused = layer.dropout.p == 0

    def form(needs: bool, trained: bool) -> Cost:
        after = needs or trained
        total = product(3 * batch * steps * width * width, needs, trained)
        total += attended(batch * steps * steps * width, fused, after, after, after)
        total += product(batch * steps * width * width, after, trained)
        return total + product(batch * steps * width * wide, after, trained) * 2

    if layer.norm_first:
        made = lambda n, t: form(n or t, t)  # noqa: E731 - the norm before it has weights
        return Block("encoder_norm_first", layer, shape, made, True)
    return Block("encoder", layer, shape, form, True)


@make
def written_out(rng: Any, shape: Shape) -> Block | None:
    """softmax(Q K^T) V of three projections, by einsum or matmul."""
    if len(shape) != 3:
        return None
    batch, steps, width = shape
    inner = rng.randint(1, 5)
    einsum = rng.random() < 0.5 and min(inner, steps) > 1

    def run(m: Any, x: Any) -> Any:
        query, key, value = (x @ w for w in m.weights)
        if einsum:
            return torch.einsum("bts,bsd->btd", torch.einsum("btd,bsd->bts", query, key).softmax(-1), value)
        return (query @ key.mT).softmax(-1) @ value

    def form(needs: bool, trained: bool) -> Cost:
        after = needs or trained
        projected = product(batch * steps * width * inner, needs, trained) * 3
        return projected + attended(batch * steps * steps * inner, False, after, after, after)

    return Block(
        f"written_out{'_einsum' if einsum else ''}",
        Apply(run, *[(width, inner)] * 3),
        (batch, steps, inner),
        form,
        True,
    )
