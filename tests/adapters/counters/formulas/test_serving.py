"""Formulas of inference on a small decoder with a cache, windows of keys, and what a checkpoint computes again: closed forms."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from reconcile.core.causes import Cause
from tests.adapters.counters.test_formulas import causes_of_each, check_reasons

nn, checkpoint = torch.nn, torch.utils.checkpoint.checkpoint

B, P, C, L, H, N, K, D, F, V, W = 2, 6, 9, 2, 12, 3, 1, 6, 20, 16, 4
"""A prompt of P tokens, or one more token on a cache of C; N D is not H, and the last layer may have a window of W keys."""
NARROW = H // N
WEIGHTS = L * (H * (N * D + 2 * K * D) + N * D * H + 2 * H * F)
"""Multiply-adds of a token with the weights of all layers; the feed-forward has two matrices."""
THIRD = L * H * F
HEAD = H * V
PAIR = N * 2 * D
"""Multiply-adds of a token with one key, in one layer."""


class Block(nn.Module):
    """Attention on the keys of a cache, of which a layer with a window takes the last ones, and a feed-forward."""

    def __init__(self, window: int, d: int, f: int) -> None:
        super().__init__()
        self.window, self.d = window, d
        self.q, self.o = nn.Linear(H, N * d, bias=False), nn.Linear(N * d, H, bias=False)
        self.k, self.v = nn.Linear(H, K * d, bias=False), nn.Linear(H, K * d, bias=False)
        self.up, self.down = nn.Linear(H, f, bias=False), nn.Linear(f, H, bias=False)

    def forward(self, x: Any, cache: dict[str, Any] | None) -> Any:
        seen = {"k": self.k(x), "v": self.v(x)}
        if cache is not None:
            seen = {name: torch.cat([cache[name], part], 1) if cache else part for name, part in seen.items()}
            cache.update(seen)
        k, v = (part[:, -self.window :] if self.window else part for part in seen.values())
        q = self.q(x).view(*x.shape[:2], N, self.d).transpose(1, 2)
        k, v = (part.view(*part.shape[:2], K, self.d).transpose(1, 2).repeat_interleave(N // K, 1) for part in (k, v))
        y = (torch.softmax(q @ k.transpose(-1, -2), -1) @ v).transpose(1, 2).reshape(*x.shape[:2], N * self.d)
        return self.down(torch.relu(self.up(x + self.o(y))))


class Cached(nn.Module):
    """A decoder with the calling convention of transformers; ``stated`` are further fields of its configuration, and
    ``reentrant`` says how its layers compute their activations again, None if they do not."""

    def __init__(self, window: int = 0, d: int = D, f: int = F, reentrant: bool | None = None, **stated: Any) -> None:
        super().__init__()
        self.reentrant = reentrant
        self.config = SimpleNamespace(
            num_hidden_layers=L, hidden_size=H, num_attention_heads=N, num_key_value_heads=K, head_dim=d, intermediate_size=f,
            vocab_size=V, **stated,
        )  # fmt: skip
        self.table, self.head = nn.Embedding(V, H), nn.Linear(H, V, bias=False)
        self.layers = nn.ModuleList(Block(window if i + 1 == L else 0, d, f) for i in range(L))

    def forward(self, input_ids: Any, past_key_values: Any = None, use_cache: bool = False) -> dict[str, Any]:
        caches = past_key_values or [{} if use_cache else None for _ in self.layers]
        x = self.table(input_ids)
        for layer, cache in zip(self.layers, caches, strict=True):
            again = () if self.reentrant is None else (layer, x, cache)
            x = checkpoint(*again, use_reentrant=self.reentrant) if again else layer(x, cache)
        return {"logits": self.head(x), **({"past_key_values": caches} if use_cache else {})}


INPUTS = {"input_ids": torch.zeros(B, P, dtype=torch.int64)}


def counted(model: Any, formulas: Sequence[str], pass_: str) -> dict[str, tuple[int, dict[str, int]]]:
    """The total of each formula and its causes, in multiply-adds."""
    context = {"context": C} if pass_ == "decode" else {}
    found = causes_of_each(model, formulas, INPUTS, pass_, **context)
    return {name: (total // 2, {c: n // 2 for c, n in causes.items()}) for name, (total, causes) in found.items()}


DIFFERS, WIDTH, WINDOWED = Cause.FORMULA_DIFFERS, Cause.WIDTH_ASSUMED, Cause.ATTENTION_WINDOWED
NARROW_PAIR = N * 2 * NARROW
SLIDING = {"layer_types": ["full_attention", "sliding_attention"], "sliding_window": W}


def test_a_step_is_counted_with_its_cache() -> None:
    """vLLM takes the feed-forward for three matrices, and nanochat the heads for narrow ones."""
    assert counted(Cached(), ("vllm", "nanochat-decode"), "decode") == {
        "vllm": (B * (WEIGHTS + THIRD + L * PAIR * (C + 1) + HEAD), {DIFFERS: -B * THIRD}),
        "nanochat-decode": (
            B * (WEIGHTS + HEAD + L * NARROW_PAIR * (C + 1)),
            {WIDTH: B * L * (PAIR - NARROW_PAIR) * (C + 1)},
        ),
    }


OF_A_PROMPT = {
    # vLLM counts the logits of the last token
    "vllm": (B * (P * (WEIGHTS + THIRD) + L * PAIR * P**2 + HEAD), {DIFFERS: B * ((P - 1) * HEAD - P * THIRD)}),
    "nanochat-prefill": (
        B * (P * (WEIGHTS + HEAD) + L * NARROW_PAIR * P * (P + 1) // 2),
        {WIDTH: B * L * (PAIR - NARROW_PAIR) * P**2, Cause.ATTENTION_HALVED: B * L * NARROW_PAIR * P * (P - 1) // 2},
    ),
}


@pytest.mark.parametrize("pass_", ["prefill", "forward"])
def test_a_prompt_is_counted_with_or_without_a_cache(pass_: str) -> None:
    assert counted(Cached(), tuple(OF_A_PROMPT), pass_) == OF_A_PROMPT


def test_a_window_of_keys_is_a_cause_unless_it_ran() -> None:
    keys = C + 1 + W
    total = B * (WEIGHTS + THIRD + PAIR * keys + HEAD)
    assert counted(Cached(**SLIDING), ("vllm",), "decode") == {
        "vllm": (total, {DIFFERS: -B * THIRD, WINDOWED: B * PAIR * (C + 1 - W)})
    }
    ran = counted(Cached(W, **SLIDING), ("vllm", "nanochat-decode"), "decode")
    assert ran["vllm"] == (total, {DIFFERS: -B * THIRD})
    assert ran["nanochat-decode"][1] == {WIDTH: B * (PAIR - NARROW_PAIR) * keys}


KEYS = B * PAIR * P
"""Multiply-adds of one layer with one key for every token of the prompt."""
LOOKUP = {Cause.LOOKUP_AS_PRODUCT: -3 * B * P * HEAD}
HALVED = 3 * B * PAIR * P**2 // 2
RAMP = B * PAIR * sum(min(step + 1, W) for step in range(P))
TRAINED = {
    # formula: causes of a step on a model with a window that ran all keys
    "torchtitan-main": {WINDOWED: 3 * KEYS * (P - W)},
    "olmo-core": {WINDOWED: 3 * KEYS * (P - W)},
    "torchtitan": {},
    "megatron-bridge": {
        WINDOWED: 3 * KEYS * (P - W),
        Cause.ATTENTION_HALVED: HALVED + 3 * (KEYS * W - RAMP),
        DIFFERS: 3 * B * P * (HEAD - H * 128),
    },
    "maxtext": {Cause.ATTENTION_HALVED: 2 * HALVED},
}


def test_a_step_of_all_keys_has_its_sources_window_as_cause() -> None:
    found = counted(Cached(**SLIDING, model_type="mistral"), tuple(TRAINED), "training")
    assert {formula: causes for formula, (_, causes) in found.items()} == TRAINED


def test_a_window_that_ran_is_a_cause_where_its_source_has_none() -> None:
    away = {WINDOWED: -3 * KEYS * (P - W)}
    found = counted(Cached(W, **SLIDING), ("palm", "torchtitan-main", "kaplan"), "training")
    assert {formula: causes for formula, (_, causes) in found.items()} == {
        "palm": LOOKUP | away,
        "torchtitan-main": {},
        "kaplan": away | {Cause.HEAD_LEFT_OUT: 3 * B * P * HEAD, Cause.ATTENTION_HALVED: 2 * HALVED},
    }


@pytest.mark.parametrize("reentrant", [None, True, False])
def test_what_is_computed_again_is_no_assumption(reentrant: bool | None) -> None:
    model = Cached(d=NARROW, f=4 * H, reentrant=reentrant)
    layers = L * (H * (N * NARROW + 2 * K * NARROW) + N * NARROW * H + 2 * H * 4 * H)
    forward = B * (P * layers + L * NARROW_PAIR * P**2)
    ((total, causes),) = counted(model, ("cookbook",), "training").values()
    assert total == 4 * forward + B * P * (HEAD + 2 * H)
    others = {Cause.OP_NOT_COUNTED: 2 * B * P * HEAD, DIFFERS: -2 * B * P * H}
    again = {Cause.RECOMPUTATION_ASSUMED: -forward} if reentrant is None else {}
    if reentrant is False:  # it stops before the last product, whose output no gradient needs
        others[DIFFERS] -= L * B * P * 4 * H * H
    assert causes == others | again


REFUSED = {
    "training": {"vllm": "its source states inference alone", "nanochat": "this model's config states none"},
    "prefill": {"nanochat-decode": "its source states a decoding step alone: give --pass decode --context N"},
    "decode": {
        "nanochat-prefill": "its source counts whole sequences and has no term for a cache: give --pass prefill",
        "kaplan": "its source counts whole sequences and has no term for a cache",
    },
}


@pytest.mark.parametrize("pass_", REFUSED)
def test_another_pass_is_refused_in_a_sentence(pass_: str) -> None:
    model = Cached(layer_types=["sliding_attention"] * L)
    check_reasons(model, REFUSED[pass_], INPUTS, pass_, context=C if pass_ == "decode" else None)
