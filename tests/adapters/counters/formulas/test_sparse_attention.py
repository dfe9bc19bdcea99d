"""Sparse attention and multi-token prediction: the figures of Megatron-LM#6148, and a decoder with an indexer by closed forms."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from reconcile.core.causes import Cause
from tests.adapters.counters.formula_decoders import (
    DV,
    FE,
    NOPE,
    NS,
    RKV,
    ROPE,
    RQ,
    TOKENS,
    A,
    B,
    Decoder,
    E,
    H,
    L,
    Latent,
    N,
    T,
    V,
)
from tests.adapters.counters.formulas.test_trainers import counted
from tests.adapters.counters.small_nets import Does
from tests.adapters.counters.test_formulas import causes_of_each, check_reasons

nn = torch.nn

GLM52 = {
    "L": 78, "h": 6144, "n": 64, "k": 64, "d": 64, "dqk": 256, "dv": 256, "drope": 64, "rq": 2048, "rkv": 512, "f": 12288,
    "V": 154880, "m": 3, "E": 256, "a": 8, "fe": 2048, "ns": 1, "hi": 32, "di": 128, "topk": 2048, "often": 4, "skip": 3,
    "nextn": 1, "last": True, "model_type": "glm_moe_dsa", "tied": False, "sliding": 0, "B": 1,
}  # fmt: skip
"""zai-org/GLM-5.2, as its configuration states it."""


def glm52(steps: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    layers = [{"index": i, "moe": i > 2, "indexed": i < 3 or (i - 2) % 4 == 0, "window": 0} for i in range(78)]
    return {**GLM52, "T": steps, "tokens": steps, "index": 0}, layers


@pytest.mark.parametrize(
    ("steps", "before", "after"),
    [(4096, 280.9, 274.9), (32768, 503.6, 289.6), (131072, 1267.0, 316.9), (262144, 2284.9, 352.5)],
)
def test_glm52_has_the_figures_of_the_pull_request(steps: int, before: float, after: float) -> None:
    """GFLOPs per token that NVIDIA/Megatron-LM#6148 prints, of 79 layers and one further token."""
    told = [round(counted(name, *glm52(steps)) / steps / 1e9, 1) for name in ("megatron-mtp", "megatron-dsa")]
    assert told == [before, after]


def test_the_figures_are_those_of_the_sources_program() -> None:
    """num_floating_point_operations of that commit for these arguments, term by term."""
    steps, h, rope, nope, dv = 32768, 6144, 64, 192, 256
    latent = 2048 * (h + 64 * (nope + rope) + 1) + 512 * (h + 64 * (nope + dv) + 1) + h * rope + 64 * dv * h
    feed = h * 3 * (3 * 12288 + 76 * (8 + 1) * 2048)
    further, logits = 3 * h + 2 * h * h, 2 * h * 154880
    core = 79 * 64 * (nope + rope + dv) / 2
    shared = 79 * latent + feed + further + logits
    assert counted("megatron-mtp", *glm52(steps)) == 6 * steps * (shared + steps * core)
    kept = 2048 * (1 - 2048 / (2 * steps)) / (steps / 2)
    index, scores = 22 * (2048 * 32 * 128 + h * 128 + h * 32), 22 * 32 * 128 / 2
    expected = 6 * (shared + steps * core * kept) + 4 * index + 6 * steps * scores
    assert counted("megatron-dsa", *glm52(steps)) == steps * expected


HI, DI, TOPK = 5, 4, 4
CONFIG = {"index_n_heads": HI, "index_head_dim": DI, "index_topk": TOPK}


class Indexer(nn.Module):
    """Scores of all pairs in each head, and their weighted sum."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k = nn.Linear(RQ, HI * DI, bias=False), nn.Linear(H, DI, bias=False)
        self.heads = nn.Linear(H, HI, bias=False)

    def forward(self, x: Any, q: Any) -> Any:
        with torch.no_grad():
            scores = torch.relu(self.q(q).view(B, T, HI, DI) @ self.k(x).transpose(1, 2).unsqueeze(1))
            return (self.heads(x).unsqueeze(-2) @ scores).squeeze(-2).topk(TOPK).indices


class Trained(Indexer):
    """An indexer with a loss of its own, through which no gradient leaves it."""

    def forward(self, x: Any, q: Any) -> Any:
        x, q = x.detach(), q.detach()
        scores = torch.relu(self.q(q).view(B, T, HI, DI) @ self.k(x).transpose(1, 2).unsqueeze(1))
        return self.heads(x).unsqueeze(-2) @ scores


class Kept(nn.Linear):
    """The ranks of the queries, which the indexer reads as well."""

    def forward(self, x: Any) -> Any:
        self.rows = super().forward(x)
        return self.rows


class Chosen(Latent):
    """Latent attention on all keys, beside an indexer."""

    def __init__(self, indexer: Any) -> None:
        super().__init__()
        self.q_a, self.indexer = Kept(H, RQ, bias=False), indexer

    def forward(self, x: Any) -> Any:
        attended = super().forward(x)
        return attended + self.indexer(x, self.q_a.rows).sum()


def indexed(indexer: Any = Indexer, **stated: Any) -> Any:
    """A decoder whose second layer takes the keys that the first one chose."""
    model = Decoder(latent=True, experts=A, **{**CONFIG, "index_topk_freq": 2, **stated})
    model.layers[0].attention = Chosen(indexer())
    return model


LATENT = H * RQ + RQ * N * (NOPE + ROPE) + H * (RKV + ROPE) + RKV * N * (NOPE + DV) + N * DV * H
EXPERTS = (A + NS) * 3 * H * FE
WIDTH = NOPE + ROPE + DV
INDEX = TOKENS * (RQ * HI * DI + H * DI + H * HI)
PAIRS = B * T * T
SCORES, SUM = PAIRS * HI * DI, PAIRS * HI
RAN = 6 * (L * (TOKENS * (LATENT + EXPERTS + H * E) + PAIRS * N * WIDTH) + TOKENS * H * V) + 2 * (INDEX + SCORES + SUM)
ROUTER, NORMS = 6 * L * TOKENS * H * E, -6 * L * TOKENS * (RQ + RKV)
PADDING = 6 * TOKENS * H * (V - 128)
CORE = N * WIDTH
FURTHER = TOKENS * (LATENT + RQ + RKV + EXPERTS + 3 * H + 2 * H * H + H * 128)
KEPT = 2 * T * TOPK - TOPK**2
"""Twice the pairs of the keys that are chosen, without half of the first ones' diagonal."""
C = Cause


SHARED = {C.OP_NOT_COUNTED: ROUTER, C.PARAMETERS_AS_PRODUCTS: NORMS, C.FORMULA_DIFFERS: PADDING}
SPARSE = {
    **SHARED,
    C.ATTENTION_SPARSE: 6 * L * B * CORE * (T * T - T * TOPK),
    C.ATTENTION_HALVED: 3 * L * B * CORE * TOPK**2 + 3 * SCORES,
    C.INDEXER_LEFT_OUT: 6 * SUM,
}
UNTRAINED = {C.BACKWARD_ASSUMED: -2 * INDEX - 4 * (SCORES + SUM)}
DENSE = {**SHARED, C.INDEXER_LEFT_OUT: 2 * (INDEX + SCORES + SUM), C.ATTENTION_HALVED: 3 * L * PAIRS * CORE}
EVERY = INDEX + SCORES + SUM


def check(causes: dict[str, dict[Cause, int]], model: Any = None, ran: int = RAN, **stated: Any) -> None:
    found = causes_of_each(model or indexed(**stated), causes)
    expected = {name: {c: n for c, n in amounts.items() if n} for name, amounts in causes.items()}
    assert found == {name: (ran - sum(amounts.values()), amounts) for name, amounts in expected.items()}


def test_what_ran_and_each_formula_are_closed_forms() -> None:
    """MaxText has an indexer in every layer, whose gradients are twice its forward pass."""
    check(
        {
            "megatron": DENSE,
            "megatron-dsa": SPARSE | UNTRAINED,
            "maxtext": {
                C.ATTENTION_SPARSE: 6 * L * B * CORE * (T * T - T * TOPK),
                C.ATTENTION_HALVED: 3 * L * B * CORE * TOPK**2 + 3 * L * (SCORES + SUM),
                C.FORMULA_DIFFERS: -6 * EVERY,
                C.BACKWARD_ASSUMED: -4 * EVERY,
            },
            # of parameters: it leaves the scores out
            "torchtitan": {
                C.INDEXER_LEFT_OUT: 2 * (SCORES + SUM),
                C.BACKWARD_ASSUMED: -4 * INDEX,
                C.PARAMETERS_AS_PRODUCTS: -6 * TOKENS * (L + 1) * 2 * H,
            },
        }
    )


def test_further_layers_are_counted_that_did_not_run() -> None:
    """Of the two further layers the third of all has an indexer of its own, and the fourth takes its keys."""
    dense = -6 * 2 * FURTHER - 6 * PAIRS * CORE
    sparse = -6 * 2 * FURTHER - 6 * B * CORE * KEPT - 3 * SCORES - 4 * INDEX
    check(
        {
            "megatron-mtp": DENSE | {C.PREDICTION_LAYERS_COUNTED: dense},
            "megatron-dsa": SPARSE | UNTRAINED | {C.PREDICTION_LAYERS_COUNTED: sparse},
        },
        num_nextn_predict_layers=2,
    )


def test_the_gradients_of_an_indexer_that_is_trained() -> None:
    """Those of its weights alone, and both of its scores and of their sum."""
    check({"megatron-dsa": SPARSE}, indexed(Trained), RAN + 2 * INDEX + 4 * (SCORES + SUM))


@pytest.mark.parametrize("keys", [TOPK, T])
def test_sparse_attention_of_the_bridge(keys: int) -> None:
    """Absorbed products on the chosen keys with half of the diagonal, and the gradients and the target of a sparse loss.
    MaxText has no indexer where all keys are chosen anyway."""
    absorbed = 2 * RKV + ROPE
    kept = 2 * T * keys - keys**2 + keys
    gradients = 2 * B * HI * (DI + 1) * kept
    target = B * N * (RKV + ROPE) * kept
    causes = {
        "megatron-bridge": {
            C.OP_NOT_COUNTED: ROUTER,
            C.PARAMETERS_AS_PRODUCTS: NORMS,
            C.FORMULA_DIFFERS: PADDING + 6 * L * PAIRS * N * (WIDTH - absorbed) - gradients - target,
            C.ATTENTION_SPARSE: 6 * L * B * N * absorbed * (T * T - T * keys),
            C.ATTENTION_HALVED: 3 * L * B * N * absorbed * (2 * T * keys - kept) + B * HI * (DI + 1) * (T * T - T),
            C.BACKWARD_ASSUMED: -2 * INDEX,
        }
    }
    if keys == T:
        causes["maxtext"] = {
            C.ATTENTION_HALVED: 3 * L * PAIRS * CORE,
            C.FORMULA_DIFFERS: -6 * EVERY,
            C.INDEXER_LEFT_OUT: 12 * EVERY,
            C.BACKWARD_ASSUMED: -4 * EVERY,
        }
    check(causes, index_topk=keys, model_type="glm_moe_dsa", num_nextn_predict_layers=1)


def further() -> nn.Module:
    config = indexed(num_nextn_predict_layers=1).config
    return Does(lambda m, ids: m.inner(ids), config=config, inner=indexed(), join=nn.Linear(2 * H, H))


@pytest.mark.parametrize(
    ("make", "reasons"),
    [
        (
            lambda: indexed(model_type="deepseek_v32"),
            {"megatron-mtp": "states no multi-token prediction", "megatron-bridge": "sparse attention for GLM-5 alone"},
        ),
        (lambda: Decoder(latent=True), {"megatron-dsa": "this model has no indexer"}),
        (further, {"megatron-dsa": "this one has join.weight outside of its layers"}),
    ],
)
def test_it_is_refused_in_a_sentence(make: Any, reasons: dict[str, str]) -> None:
    check_reasons(make(), reasons)
