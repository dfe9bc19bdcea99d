"""Formulas of parameters on experts that a router chose unevenly: each expert has a difference of its own, their sum none."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import reconcile
from reconcile.core.causes import Cause
from tests.adapters.counters.small_nets import Does
from tests.adapters.counters.test_formulas import causes_of

nn = torch.nn

V, H, F, E, T = 50, 8, 12, 4, 9
CHOICE = [0, 0, 1, 3, 3, 3, 3, 0, 1]
"""The expert of each token: the third one has none."""
IDS = torch.arange(T)[None]
MATRIX = H * F
EXPERT = 2 * MATRIX
"""Weights of one expert."""


class Experts(nn.Module):
    """Experts without biases, chosen by position."""

    def __init__(self) -> None:
        super().__init__()
        made = (nn.Sequential(nn.Linear(H, F, bias=False), nn.ReLU(), nn.Linear(F, H, bias=False)) for _ in range(E))
        self.experts = nn.ModuleList(made)

    def forward(self, x: Any) -> Any:
        out = torch.zeros_like(x)
        choice = torch.tensor(CHOICE)
        for expert, layer in enumerate(self.experts):
            if (choice == expert).any():
                out[choice == expert] = layer(x[choice == expert])
        return out


def net() -> nn.Module:
    """One layer of experts between an embedding and a head."""
    sizes = {"hidden_size": H, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": F}
    config = SimpleNamespace(**sizes, vocab_size=V, num_experts=E, num_experts_per_tok=1)
    held = {"table": nn.Embedding(V, H), "layers": nn.ModuleList([Experts()]), "head": nn.Linear(H, V, bias=False)}
    return Does(lambda m, ids: m.head(m.layers[0](m.table(ids)[0])), config=config, **held)


def test_every_expert_for_every_token() -> None:
    causes = {Cause.LOOKUP_AS_PRODUCT: -6 * T * V * H, Cause.ALL_EXPERTS_COUNTED: -6 * T * (E - 1) * EXPERT}
    assert causes_of(net(), "6n", IDS) == (6 * T * (EXPERT + H * V) - sum(causes.values()), causes)


def test_an_even_share_for_every_expert() -> None:
    """T / E tokens for each: the difference of one is its own tokens less that, also for the one that has none."""
    run = reconcile.run(torch=net(), inputs=IDS, counters=("formula:6n-active",), pass_="training", isolated=False)
    (statement,) = run.result.statements
    assert (statement.to_total, statement.residual) == (6 * T * (EXPERT + H * V), 0)
    causes = {cause: amount for cause, amount in statement.by_cause().items() if amount}
    assert causes == {Cause.LOOKUP_AS_PRODUCT: -6 * T * V * H}
    tokens, shares = Counter(CHOICE), Counter[str]()
    for line in statement.adjustments:
        if line.cause is Cause.BALANCE_ASSUMED:
            shares[line.layer.split(".experts.")[1][0]] += line.amount
    assert shares == {str(e): 2 * 3 * (EXPERT * tokens[e] - EXPERT * T // E) for e in range(E)}


def test_experts_that_nothing_calls_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Experts, "forward", lambda _self, x: x)
    _, causes = causes_of(net(), "6n", IDS)
    assert causes == {Cause.LOOKUP_AS_PRODUCT: -6 * T * V * H, Cause.PARAMETERS_NOT_READ: -6 * T * E * EXPERT}
