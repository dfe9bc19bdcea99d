"""A layer with a recurrence: its products read no weight and are not attention's, and the page says how many they are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import reconcile
from reconcile.products.llm import notes

torch = pytest.importorskip("torch")
nn = torch.nn

pytestmark = pytest.mark.frameworks

B, T, H, V = 2, 6, 8, 16


class Linear(nn.Module):  # type: ignore[name-defined, misc]
    """Linear attention: keys and values first, for all tokens at once."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(H, H, bias=False) for _ in range(4))

    def forward(self, x: Any) -> Any:
        return self.o(self.q(x) @ (self.k(x).transpose(1, 2) @ self.v(x)))


class Softmax(Linear):
    def forward(self, x: Any) -> Any:
        return self.o(torch.softmax(self.q(x) @ self.k(x).transpose(1, 2), -1) @ self.v(x))


class Hybrid(nn.Module):  # type: ignore[name-defined, misc]
    def __init__(self) -> None:
        super().__init__()
        self.config = SimpleNamespace(num_hidden_layers=2, hidden_size=H, num_attention_heads=1, vocab_size=V)
        self.table, self.head = nn.Embedding(V, H), nn.Linear(H, V, bias=False)
        self.layers = nn.Sequential(Linear(), Softmax())

    def forward(self, ids: Any) -> Any:
        return self.head(self.layers(self.table(ids)))


WEIGHTS = B * T * (2 * 4 * H * H + H * V)
SCAN = B * 2 * T * H * H
PAIRS = B * 2 * T * T * H


def test_a_recurrence_is_said() -> None:
    page = reconcile.llm(Hybrid(), inputs=torch.zeros(B, T, dtype=torch.int64)).result
    assert (page.ran, page.recurrent) == (6 * (WEIGHTS + SCAN + PAIRS), 6 * SCAN)
    (sentence,) = notes.recurrence_note(page)
    assert f"Of what ran, {6 * SCAN // (B * T):,} FLOPs per token ({notes.ratio(page, 6 * SCAN)})" in sentence
    six = next(quote for quote in page.quotes if quote.name == "6n")
    assert six.causes == {
        "op-not-counted": 6 * SCAN,
        "attention-left-out": 6 * PAIRS,
        "lookup-as-product": -6 * B * T * H * V,
    }
