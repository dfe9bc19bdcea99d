"""What a recorder of dispatched ops has to let happen: tensors of a class of their own that are made beneath its modes."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.attention.bias import CausalBias, causal_lower_right, causal_upper_left
from torch.nn.functional import scaled_dot_product_attention

import reconcile
from tests.adapters.counters.small_nets import called

HEADS, QUERIES, KEYS, WIDE = 2, 3, 5, 4
PRODUCTS = 2 * HEADS * QUERIES * KEYS * WIDE
"""Multiply-adds of the scores and of the values."""


def biased(make) -> nn.Module:
    return called(lambda *heads: scaled_dot_product_attention(*heads, attn_mask=make(QUERIES, KEYS)))


def tensors(*, gradients: bool = False):
    return [torch.randn(1, HEADS, rows, WIDE, requires_grad=gradients) for rows in (QUERIES, KEYS, KEYS)]


def mask(queries: int, keys: int):
    return torch.ones(queries, keys).tril(keys - queries).bool()


def test_a_bias_that_is_made_in_the_step_is_the_mask_that_it_stands_for():
    totals = []
    for make in (causal_lower_right, mask):
        model = biased(make)
        with reconcile.count(model) as step:
            out = model(*tensors(gradients=True))
            out.sum().backward()
        totals.append(step.result.traces[0].totals["matmul"])
    assert totals[0] == totals[1]
    assert isinstance(causal_lower_right(QUERIES, KEYS), CausalBias)
    assert "__new__" not in vars(CausalBias)


@pytest.mark.parametrize("make", [causal_lower_right, causal_upper_left])
def test_a_bias_of_a_class_of_its_own_is_counted_as_attention(make):
    inputs = tuple(tensors())
    run = reconcile.run(torch=biased(make), inputs=inputs, counters=["flop_counter"])
    assert run.result.traces[0].totals["matmul"] == 2 * PRODUCTS
    with reconcile.count() as step:
        biased(make)(*inputs)
    assert step.result.traces[0].totals["matmul"] == 2 * PRODUCTS


def test_an_upper_left_bias_is_a_causal_call():
    """Query i reads keys 0 to i: 1 + 2 + 3 pairs of each head."""
    run = reconcile.run(
        torch=biased(causal_upper_left), inputs=tuple(tensors()), counters=["flop_counter"], convention="causal"
    )
    assert run.result.traces[0].totals["causal"] == 2 * 2 * HEADS * (1 + 2 + 3) * WIDE
