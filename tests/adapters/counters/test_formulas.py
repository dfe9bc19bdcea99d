"""Formulas beside what ran: their totals by hand on a small decoder, and every cause that they bring."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import reconcile
from reconcile.adapters.counters.formulas.capture import capture
from reconcile.adapters.pytorch.model import TorchModel
from reconcile.adapters.shared.refusal import BeyondCounter
from reconcile.core.causes import Cause

nn = torch.nn

B, T, L, H, N, F, V, STEPS = 2, 6, 2, 8, 2, 20, 16, 24
TOKENS = B * T
LAYER = 4 * H * H + 2 * H * F
NORM = 2 * H
FULL = 2 * H * T * TOKENS
"""Multiply-adds of one layer's attention on all pairs of steps, where the heads are as wide as the model."""


class Block(nn.Module):
    """Attention and a feed-forward, with one norm."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.d = d
        self.norm = nn.LayerNorm(H)
        self.q, self.k, self.v = (nn.Linear(H, N * d, bias=False) for _ in range(3))
        self.o = nn.Linear(N * d, H, bias=False)
        self.up, self.down = nn.Linear(H, F, bias=False), nn.Linear(F, H, bias=False)

    def forward(self, x: Any) -> Any:
        y = self.norm(x)
        q, k, v = (f(y).view(B, T, N, self.d).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(B, T, -1)
        return self.down(torch.relu(self.up(x + self.o(y))))


class Decoder(nn.Module):
    """A small decoder with the configuration that a model of transformers has."""

    def __init__(self, d: int = H // N, tie: bool = False, frozen: bool = False, positions: bool = False) -> None:
        super().__init__()
        self.config = SimpleNamespace(
            num_hidden_layers=L, hidden_size=H, num_attention_heads=N, head_dim=d, intermediate_size=F, vocab_size=V
        )
        self.table = nn.Embedding(V, H)
        self.layers = nn.ModuleList(Block(d) for _ in range(L))
        self.head = nn.Linear(H, V, bias=False)
        self.steps = nn.Embedding(STEPS, H) if positions else None
        if positions:
            self.config.max_position_embeddings = STEPS
        if tie:
            self.head.weight = self.table.weight
        if frozen:
            self.layers[1].up.weight.requires_grad_(False)

    def forward(self, ids: Any) -> Any:
        x = self.table(ids)
        if self.steps is not None:
            x = x + self.steps(torch.arange(T, device=x.device))
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


Counted = tuple[int, dict[str, int]]


def causes_of_each(
    model: Any, formulas: Iterable[str], inputs: Any = None, pass_: str = "training", **options: Any
) -> dict[str, Counted]:
    """The total of each formula, and what is booked by cause; the residuals are 0."""
    found = {}
    ids = torch.zeros(B, T, dtype=torch.int64) if inputs is None else inputs
    counters = tuple(f"formula:{name}" for name in formulas)
    run = reconcile.run(torch=model, inputs=ids, counters=counters, pass_=pass_, isolated=False, **options)
    for ledger in run.result.ledgers:
        (statement,) = (s for s in run.result.statements if s.from_ == ledger.counter)
        assert (statement.residual, ledger.mismatches, ledger.unchecked) == (0, (), 0), (ledger, statement.reason)
        causes = {cause: amount for cause, amount in statement.by_cause().items() if amount}
        found[ledger.counter.removeprefix("formula:")] = (ledger.total, causes)
    return found


def causes_of(model: Any, formula: str, inputs: Any = None, pass_: str = "training") -> Counted:
    """The same of one formula."""
    return causes_of_each(model, (formula,), inputs, pass_)[formula]


def check_reasons(
    model: Any, reasons: Mapping[str, str], inputs: Any = None, pass_: str = "training", context: int | None = None
) -> None:
    """Each of these formulas refuses the model, in a sentence with these words."""
    given = torch.zeros(B, T, dtype=torch.int64) if inputs is None else inputs
    arguments = ((), given) if isinstance(given, dict) else ((given,), {})
    pair = SimpleNamespace(user_model=False, build_torch=lambda _: model, arguments=lambda _: arguments)
    made = TorchModel(pair, None)
    made.training, made.context = "sgd" if pass_ == "training" else "", context
    for formula, words in reasons.items():
        with pytest.raises(BeyondCounter, match=re.escape(words)):
            capture(f"formula:{formula}", made)


WEIGHTS = L * (LAYER + NORM) * TOKENS
LOOKUP = {Cause.LOOKUP_AS_PRODUCT: -6 * V * H * TOKENS}
NORMS = {Cause.PARAMETERS_AS_PRODUCTS: -6 * L * NORM * TOKENS}
LEFT_OUT = {Cause.ATTENTION_LEFT_OUT: 6 * L * FULL}
HALVED = {Cause.ATTENTION_HALVED: 3 * L * FULL}
HEADLESS = {Cause.HEAD_LEFT_OUT: 6 * V * H * TOKENS}
TRAINING = {
    # formula: total / 6, causes; for a table of its own, and for one that the head shares
    "6n": (WEIGHTS + 2 * V * H * TOKENS, LOOKUP | NORMS | LEFT_OUT, WEIGHTS + V * H * TOKENS, NORMS | LEFT_OUT),
    "hf-trainer": (WEIGHTS + V * H * TOKENS, NORMS | LEFT_OUT, WEIGHTS, NORMS | LEFT_OUT | HEADLESS),
    "palm": (WEIGHTS + 2 * V * H * TOKENS + L * FULL, LOOKUP | NORMS, WEIGHTS + V * H * TOKENS + L * FULL, NORMS),
    "torchtitan": (WEIGHTS + V * H * TOKENS + L * FULL, NORMS, WEIGHTS + V * H * TOKENS + L * FULL, NORMS),
}
HALVING = {
    "kaplan": (6 * L * LAYER * TOKENS + 3 * L * FULL, HEADLESS | HALVED),
    # it rounds the vocabulary of 16 up to 128
    "megatron": (
        6 * L * LAYER * TOKENS + 3 * L * FULL + 6 * 128 * H * TOKENS,
        HALVED | {Cause.FORMULA_DIFFERS: -6 * (128 - V) * H * TOKENS},
    ),
}


def test_its_total_is_closed_and_the_difference_has_causes() -> None:
    plain = {name: (6 * total, causes) for name, (total, causes, _, _) in TRAINING.items()} | HALVING
    assert causes_of_each(Decoder(), plain) == plain
    tied = {name: (6 * total, causes) for name, (_, _, total, causes) in TRAINING.items()}
    assert causes_of_each(Decoder(tie=True), tied) == tied


def test_torchtitan_takes_no_table_out_of_n_where_one_is_tied() -> None:
    assert causes_of(Decoder(positions=True), "torchtitan") == (6 * TRAINING["torchtitan"][0], NORMS)
    steps = 6 * STEPS * H * TOKENS
    looked_up = {Cause.LOOKUP_AS_PRODUCT: -steps}
    assert causes_of(Decoder(tie=True, positions=True), "torchtitan") == (
        6 * TRAINING["torchtitan"][2] + steps,
        NORMS | looked_up,
    )


def test_a_head_of_another_width_is_assumed() -> None:
    wide = 2 * H // N
    _, causes = causes_of(Decoder(d=wide), "nanogpt")
    assert causes == LOOKUP | NORMS | {Cause.WIDTH_ASSUMED: 6 * L * FULL}


def test_a_frozen_weight_and_a_first_layer_need_no_gradient() -> None:
    _, causes = causes_of(Decoder(frozen=True), "palm")
    assert causes == LOOKUP | NORMS | {Cause.FROZEN_NOT_DISCOUNTED: -2 * H * F * TOKENS}
    total, causes = causes_of(nn.Linear(3, 4, bias=False), "6n", torch.ones(2, 5, 3))
    assert (total, causes) == (6 * 10 * 12, {Cause.BACKWARD_ASSUMED: -2 * 10 * 12})


def test_of_a_forward_pass_it_has_a_third_or_is_refused() -> None:
    total, _ = causes_of(Decoder(), "6n", pass_="forward")
    assert total == 2 * (WEIGHTS + 2 * V * H * TOKENS)
    run = reconcile.run(torch=Decoder(), inputs=torch.zeros(B, T, dtype=torch.int64), counters=("formula:palm",))
    assert "training step only" in run.result.ledgers[0].reason


def test_no_formula_that_is_off_is_exact() -> None:
    ids = torch.zeros(B, T, dtype=torch.int64)
    run = reconcile.run(
        torch=Decoder(), inputs=ids, counters=("formula:palm", "formula:megatron"), pass_="training", isolated=False
    )
    assert [(v.ledger.counter, v.exact) for v in run.verdict.counters] == [
        ("formula:palm", False),
        ("formula:megatron", False),
    ]
    assert run.verdict.exact == ()


def test_all_formulas_read_one_module(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[str] = []
    build = TorchModel.build

    def counted(model: TorchModel, device: str) -> Any:
        built.append(device)
        return build(model, device)

    monkeypatch.setattr(TorchModel, "build", counted)
    ids = torch.zeros(B, T, dtype=torch.int64)
    modules = []
    for formulas in (["formula:palm"], ["formula:palm", "formula:megatron", "formula:nanogpt"]):
        built.clear()
        run = reconcile.run(torch=Decoder(), inputs=ids, counters=formulas, pass_="training", isolated=False)
        assert [ledger.total > 0 for ledger in run.result.ledgers] == [True] * len(formulas)
        modules.append(len(built))
    assert modules[0] == modules[1] > 1
