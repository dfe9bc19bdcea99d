"""Adapters on frozen weights: what runs by hand, phase by phase, and why formulas of whole training differ from it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from reconcile.adapters.counters.formulas.configured.lora import add_adapters
from reconcile.core.causes import Cause
from reconcile.core.errors import UsageError
from tests.adapters.counters.formulas.configured import test_described_model as plain
from tests.adapters.counters.formulas.configured.test_described_model import PAIR, WEIGHTS, B, F, H, L, T, V
from tests.adapters.counters.test_formulas import causes_of, causes_of_each

R = 3
TOKENS = B * T
ATTENTION = PAIR * T * T
FIRST = TOKENS * 3 * H * H
"""The first layer's q, k and v: what they read comes from a frozen table, and nothing needs its gradient."""
ADAPTERS = TOKENS * L * R * (4 * 2 * H + 2 * (H + F))
FIRST_A = TOKENS * 3 * R * H
RAN = 2 * (2 * WEIGHTS - FIRST + 3 * ADAPTERS - FIRST_A + 3 * ATTENTION)
"""Forward and the gradients of inputs of every frozen weight but the first, three passes of the adapters and of attention."""
FROZEN = -2 * (WEIGHTS + FIRST)
TABLE = 2 * TOKENS * H * V


class Decoder(plain.Decoder):
    def get_output_embeddings(self) -> Any:
        return self.head


IDS = torch.zeros(B, T, dtype=torch.int64)
LEFT_OUT = {Cause.ATTENTION_LEFT_OUT: 6 * ATTENTION}
ASSUMED = {Cause.BACKWARD_ASSUMED: -2 * FIRST_A}
PADDED = {Cause.FORMULA_DIFFERS: 6 * TOKENS * H * (V - 128)}
NOT_COUNTED = {Cause.OP_NOT_COUNTED: 2 * (3 * ADAPTERS - FIRST_A)}
CASES = {
    # formula: the table is looked up; its passes are 3, or 2 where a source knows of frozen weights
    "6n": {Cause.LOOKUP_AS_PRODUCT: -3 * TABLE, Cause.FROZEN_NOT_DISCOUNTED: FROZEN, **LEFT_OUT, **ASSUMED},
    "aws": {Cause.LOOKUP_AS_PRODUCT: -2 * TABLE, Cause.FROZEN_NOT_DISCOUNTED: -2 * FIRST, **LEFT_OUT, **ASSUMED},
    "megatron": {Cause.FROZEN_NOT_DISCOUNTED: FROZEN, Cause.ATTENTION_HALVED: 3 * ATTENTION, **NOT_COUNTED, **PADDED},
}


def test_adapters_are_trained_and_weights_are_not() -> None:
    expected = {formula: (RAN - sum(causes.values()), causes) for formula, causes in CASES.items()}
    assert causes_of_each(add_adapters(Decoder(), R), expected, IDS) == expected


def test_named_modules_alone_get_one() -> None:
    """q and v of each layer, as in the paper; in the first, nothing needs the gradient of the keys either."""
    adapters = TOKENS * L * 2 * R * 2 * H
    first = TOKENS * 2 * R * H
    total, causes = causes_of(add_adapters(Decoder(), R, ("q", "v")), "6n", IDS)
    assert total + sum(causes.values()) == 2 * (
        2 * WEIGHTS - FIRST + 3 * adapters - first + 3 * ATTENTION - B * H * T * T
    )


def test_a_new_adapter_has_the_products_of_the_paper() -> None:
    model = add_adapters(Decoder(), R)
    (q,) = {id(block.q): block.q for block in model.layers[:1]}.values()
    x = torch.randn(2, H)
    assert torch.allclose(q(x), x @ q.base_layer.weight.T + x @ q.lora_A.weight.T @ q.lora_B.weight.T)
    assert type(model.head) is torch.nn.Linear
    trained = {name.rpartition("lora_")[2] for name, weight in model.named_parameters() if weight.requires_grad}
    assert trained == {"A.weight", "B.weight"}


def test_a_target_that_is_not_there_is_one_sentence() -> None:
    with pytest.raises(
        UsageError, match=r"--lora names q_proj, and no nn\.Linear has this name: choose from down, k, o, q, up, v\."
    ):
        add_adapters(Decoder(), R, ("q_proj",))
    bare = Decoder()
    bare.layers = torch.nn.Sequential()
    with pytest.raises(UsageError, match=r"no nn\.Linear but its head"):
        add_adapters(bare, R)
