"""Five small decoders with their closed forms: what a function of one's own is held to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from reconcile.core.records import Trace
from reconcile.launch.in_process import collect_live
from reconcile.launch.request import run_request
from reconcile.products.llm.comparison import Quote
from reconcile.products.llm.functions.explain import Functions, explain_functions

torch = pytest.importorskip("torch")

BATCH, SEQ, LAYERS = 2, 48, 3
ARCHITECTURES: dict[str, dict[str, int]] = {
    "heads as wide as the model": {"hidden_size": 96, "num_attention_heads": 6},
    "grouped heads": {"hidden_size": 96, "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 20},
    "odd widths": {"hidden_size": 50, "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 18},
    "experts": {
        "hidden_size": 64,
        "num_attention_heads": 4,
        "head_dim": 24,
        "num_experts": 10,
        "num_experts_per_tok": 3,
    },
    "two matrices": {
        "hidden_size": 72,
        "num_attention_heads": 6,
        "num_key_value_heads": 3,
        "head_dim": 12,
        "matrices": 2,
    },
}
"""The settings of five decoders, beside a feed-forward of 136 and a vocabulary of 330."""
SETTINGS = {name: {"intermediate_size": 136, "vocab_size": 330, **own} for name, own in ARCHITECTURES.items()}


class Config(SimpleNamespace):
    """The settings with what a decoder takes where they state nothing."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__(**settings, num_hidden_layers=LAYERS)
        self.head_dim = settings.get("head_dim", self.hidden_size // self.num_attention_heads)
        self.num_key_value_heads = settings.get("num_key_value_heads", self.num_attention_heads)
        self.matrices = settings.get("matrices", 3)


class Attention(torch.nn.Module):
    """Attention of n heads on k pairs of keys and values."""

    def __init__(self, c: Config) -> None:
        super().__init__()
        self.c, kv = c, c.num_key_value_heads * c.head_dim
        self.q = torch.nn.Linear(c.hidden_size, c.num_attention_heads * c.head_dim)
        self.k, self.v = torch.nn.Linear(c.hidden_size, kv), torch.nn.Linear(c.hidden_size, kv)
        self.o = torch.nn.Linear(c.num_attention_heads * c.head_dim, c.hidden_size)

    def forward(self, x: Any) -> Any:
        c, shape = self.c, (*x.shape[:2], -1, self.c.head_dim)
        q, k, v = (layer(x).view(shape).transpose(1, 2) for layer in (self.q, self.k, self.v))
        k, v = (each.repeat_interleave(c.num_attention_heads // c.num_key_value_heads, 1) for each in (k, v))
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v)
        return self.o(y.transpose(1, 2).flatten(2))


class FeedForward(torch.nn.Module):
    """Two matrices, or three with a gate."""

    def __init__(self, c: Config) -> None:
        super().__init__()
        h, f = c.hidden_size, c.intermediate_size
        self.gate, self.up = torch.nn.Linear(h, f), torch.nn.Linear(h, f) if c.matrices == 3 else None
        self.down = torch.nn.Linear(f, h)

    def forward(self, x: Any) -> Any:
        y = torch.relu(self.gate(x))
        return self.down(y * self.up(x) if self.up is not None else y)


class Layer(torch.nn.Module):
    """Attention, and a feed-forward or the experts that a router weighs; every token meets the first ones."""

    def __init__(self, c: Config) -> None:
        super().__init__()
        self.attention, experts = Attention(c), getattr(c, "num_experts", 0)
        self.router = torch.nn.Linear(c.hidden_size, experts) if experts else None
        self.mlp = torch.nn.ModuleList(FeedForward(c) for _ in range(getattr(c, "num_experts_per_tok", 1)))

    def forward(self, x: Any) -> Any:
        x = x + self.attention(x)
        weight = self.router(x).softmax(-1) if self.router is not None else torch.ones(1, device=x.device)
        return x + sum(mlp(x) * weight[..., :1] for mlp in self.mlp)


class Scan(torch.nn.Module):
    """A state that each chunk of a sequence but the first reads, and that each adds to."""

    def __init__(self, chunk: int) -> None:
        super().__init__()
        self.chunk = chunk

    def forward(self, x: Any) -> Any:
        state, found = None, []
        for part in x.split(self.chunk, 1):
            scores = torch.bmm(part, part.transpose(1, 2)).sum(-1, keepdim=True)
            found.append(scores if state is None else scores + torch.bmm(part, state))
            added = torch.bmm(part.transpose(1, 2), part)
            state = added if state is None else state + added
        return x + torch.cat([each.expand(x.shape[0], -1, x.shape[2]) for each in found], 1)


class Decoder(torch.nn.Module):
    """Layers between a table and a head of its own."""

    def __init__(self, c: Config) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(c.vocab_size, c.hidden_size)
        self.layers = torch.nn.ModuleList(Layer(c) for _ in range(LAYERS))
        self.head = torch.nn.Linear(c.hidden_size, c.vocab_size)
        self.scan = Scan(c.chunk) if hasattr(c, "chunk") else torch.nn.Identity()
        more = getattr(c, "more", 0)
        self.odd = torch.nn.Linear(c.hidden_size + more, c.hidden_size + more + 4) if more else None

    def forward(self, ids: Any) -> Any:
        x = self.table(ids)
        if self.odd is not None:
            x = self.odd(torch.nn.functional.pad(x, (0, self.odd.in_features - x.shape[-1])))[..., : x.shape[-1]]
        for layer in self.layers:
            x = layer(x)
        return self.head(self.scan(x))


def take(settings: Mapping[str, Any], batch: int, seq: int, model: type[Decoder] = Decoder) -> Trace:
    """The trace of a decoder's training step, on meta."""

    def make() -> Any:
        with torch.device("meta"):
            return model(Config(settings)), (torch.zeros(batch, seq, dtype=torch.int64),)

    found = collect_live({"torch": make}, None, run_request(counters=("formula:6n",), pass_="training"), lambda _: None)
    (trace,) = found.traces
    assert isinstance(trace, Trace)
    return trace


class Term(NamedTuple):
    """A coefficient of a training step, the sizes that it multiplies, and where its products are."""

    coefficient: Fraction
    sizes: tuple[str, ...]
    place: str


def closed_form(settings: Mapping[str, Any]) -> list[Term]:
    """What a training step multiplies: three products of 2 FLOPs for each weight and token; attention, twice each pair."""
    h, n, d, k = "hidden_size", "num_attention_heads", "head_dim", "num_key_value_heads"
    matrices, tokens, each = settings.get("matrices", 3), ("batch", "seq"), Fraction(6 * LAYERS)
    terms = [
        Term(2 * each, (*tokens, h, n, d), "attention"),
        Term(2 * each, (*tokens, h, k, d), "attention"),
        Term(2 * each, (*tokens, "seq", n, d), "attention"),
        Term(Fraction(6), (*tokens, h, "vocab_size"), "head"),
    ]
    if "num_experts" in settings:
        terms.append(Term(each, (*tokens, h, "num_experts"), "router"))
        return [*terms, Term(matrices * each, (*tokens, h, "intermediate_size", "num_experts_per_tok"), "mlp")]
    return [*terms, Term(matrices * each, (*tokens, h, "intermediate_size"), "mlp")]


def make_function(terms: Sequence[Term]) -> Any:
    """The function of a sum of terms, as somebody would write it: (config, batch, seq) to FLOPs."""

    def flops(config: Any, batch: int, seq: int) -> Any:
        known = {**vars(config), "batch": batch, "seq": seq}
        total = sum(term.coefficient * math.prod(known[name] for name in term.sizes) for term in terms)
        return int(total) if total == int(total) else float(total)

    return flops


def explain(name: str, function: Any, per_token: bool = False) -> Quote:
    """The quote of one function."""
    asked = Functions({"flops": function}, SETTINGS[name], BATCH, SEQ, True, per_token, take, Config)
    (quote,) = explain_functions(asked, take(SETTINGS[name], BATCH, SEQ))
    return quote
