"""Packed documents: what runs is the sum over the documents by hand, and formulas differ by what they are given of lengths."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from reconcile.adapters.counters.formulas.configured.described_model import pack_documents
from reconcile.core.causes import Cause
from tests.adapters.counters.test_formulas import causes_of_each

nn = torch.nn

B, L, H, N, F, V, WINDOW = 2, 2, 8, 2, 20, 16, 4
LENGTHS = (5, 3, 5, 2)
T = sum(LENGTHS)
SQUARES = sum(n * n for n in LENGTHS)
WEIGHTS = B * T * (L * (4 * H * H + 2 * H * F) + H * V)
"""Multiply-adds of a forward pass that read a weight; there are no norms."""
PAIR = B * L * 2 * H
"""Those of both products of attention for one pair of tokens, in all sequences and layers."""
RAN = 6 * (WEIGHTS + PAIR * SQUARES)
LOST = 6 * PAIR * (T * T - SQUARES)
"""FLOPs of the pairs that are not in one document."""
TABLE = 6 * B * T * H * V


class Block(nn.Module):
    """Attention on all pairs of a call, and a feed-forward."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(H, H, bias=False) for _ in range(4))
        self.up, self.down = nn.Linear(H, F, bias=False), nn.Linear(F, H, bias=False)

    def forward(self, x: Any) -> Any:
        q, k, v = (f(x).unflatten(-1, (N, H // N)).transpose(1, 2) for f in (self.q, self.k, self.v))
        x = self.o((torch.softmax(q @ k.transpose(-1, -2), -1) @ v).transpose(1, 2).flatten(2))
        return self.down(torch.relu(self.up(x)))


class Decoder(nn.Module):
    def __init__(self, **stated: Any) -> None:
        super().__init__()
        sizes = {"num_hidden_layers": L, "hidden_size": H, "num_attention_heads": N, "intermediate_size": F}
        self.config = SimpleNamespace(**sizes, vocab_size=V, **stated)
        self.table, self.head = nn.Embedding(V, H), nn.Linear(H, V, bias=False)
        self.layers = nn.Sequential(*(Block() for _ in range(L)))

    def forward(self, ids: Any) -> Any:
        return self.head(self.layers(self.table(ids)))


ACROSS, HALVED = Cause.ATTENTION_ACROSS_DOCUMENTS, Cause.ATTENTION_HALVED
PADDED = {Cause.FORMULA_DIFFERS: 6 * B * T * H * (V - 128)}
"""A vocabulary that is rounded up to 128."""
HALF = 3 * PAIR * SQUARES
CASES: list[tuple[dict[str, Any], dict[str, dict[str, int]]]] = [
    # what the configuration states; what each formula adds (below 0) or leaves out
    (
        {"model_type": "qwen3"},
        {
            "nanochat": {ACROSS: -LOST},
            "kaplan": {ACROSS: -LOST, HALVED: 3 * PAIR * T * T, Cause.HEAD_LEFT_OUT: TABLE},
            "megatron": {HALVED: HALF, **PADDED},
            # it is given the lengths
            "verl": {HALVED: HALF, Cause.LOOKUP_AS_PRODUCT: -TABLE, Cause.FORMULA_DIFFERS: -6 * B * T * L * H * F},
            "litgpt": {ACROSS: -LOST, Cause.FORMULA_DIFFERS: -4 * PAIR * T * T, Cause.LOOKUP_AS_PRODUCT: -TABLE},
            "cookbook": {
                ACROSS: -LOST,
                Cause.RECOMPUTATION_ASSUMED: -2 * (B * T * L * (4 + 8) * H * H + PAIR * T * T),
                Cause.FORMULA_DIFFERS: 6 * B * T * L * 2 * H * (F - 4 * H) - 4 * H * B * T,
                Cause.OP_NOT_COUNTED: 2 * TABLE // 3,
            },
        },
    ),
    (
        {"sliding_window": WINDOW, "layer_types": ["sliding_attention", "full_attention"]},
        {
            "nanochat": {ACROSS: -LOST, Cause.ATTENTION_WINDOWED: 3 * PAIR * (T * T - T * WINDOW)},
            # its window is shorter than the whole
            "megatron-bridge": {
                ACROSS: -LOST // 2,
                Cause.ATTENTION_WINDOWED: 3 * PAIR * (T * T - T * WINDOW),
                HALVED: HALF // 2 + 3 * PAIR * (T * WINDOW - WINDOW * (WINDOW + 1) // 2 - (T - WINDOW) * WINDOW),
                **PADDED,
            },
        },
    ),
]


@pytest.mark.parametrize(("stated", "causes"), CASES)
def test_what_ran_is_inside_the_documents(stated: dict[str, Any], causes: dict[str, dict[str, int]]) -> None:
    model, ids = pack_documents(Decoder(**stated), LENGTHS), torch.zeros(B, T, dtype=torch.int64)
    expected = {formula: (RAN - sum(amounts.values()), amounts) for formula, amounts in causes.items()}
    assert causes_of_each(model, expected, ids) == expected


def test_documents_of_one_length_are_a_batch() -> None:
    model, ids = Decoder(), torch.arange(2 * 3 * 4).reshape(2, 12) % V
    (together,) = pack_documents(model, [4, 4, 4])(ids)
    assert torch.equal(together, torch.cat([model(ids[:, i : i + 4]) for i in (0, 4, 8)]))
    first, second = pack_documents(model, [5, 4, 3])(ids)[:2]
    assert torch.equal(first, model(ids[:, :5]))
    assert torch.equal(second, model(ids[:, 5:9]))
