"""FLOPs per token from the shape of a language model: the closed forms behind published utilisations, part by part.

N parameters, L layers, h width (queries of all heads), V vocabulary, T sequence length. A formula is a sum of named parts, so
two formulas differ by parts with names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

PARAMETERS, EMBEDDING, ATTENTION, AGAIN = "parameters", "input embedding", "attention", "recomputation"
BLOCKS, LOGITS, ROUTER = "blocks", "logits", "router"


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a model, 0 where not stated.

    Attributes:
        params: Parameters.
        layers: Layers.
        hidden: The width of a layer.
        vocab: Tokens of the vocabulary.
        seq: Tokens of a sequence.
        heads: Heads of a layer.
        head_dim: The width of a head, the mean of its keys and values, where all heads are not as wide as the layer.
        router: Weights that choose experts.
    """

    params: int = 0
    layers: int = 0
    hidden: int = 0
    vocab: int = 0
    seq: int = 0
    heads: int = 0
    head_dim: int = 0
    router: int = 0

    def missing_sizes(self, needs: str) -> tuple[str, ...]:
        """The sizes that a formula needs and that are not stated."""
        return tuple(name for name in needs.split() if not getattr(self, name))


@dataclass(frozen=True, slots=True)
class Numerator:
    """FLOPs per token by part. ``name`` and ``title`` are the formula's; ``source`` says who uses it; a simpler one has a
    lower ``cost``."""

    name: str
    title: str
    source: str
    parts: Mapping[str, Fraction]
    cost: int = 0

    @property
    def total(self) -> Fraction:
        """FLOPs per token."""
        return sum(self.parts.values(), Fraction(0))

    def differs(self, other: Numerator) -> dict[str, Fraction]:
        """What to add to the other, by part, to arrive here."""
        names = [*self.parts, *(name for name in other.parts if name not in self.parts)]
        found = {n: self.parts.get(n, Fraction(0)) - other.parts.get(n, Fraction(0)) for n in names}
        return {name: amount for name, amount in found.items() if amount}


@dataclass(frozen=True, slots=True)
class Form:
    """A formula before its sizes are known. ``recomputes`` says that it counts recomputed activations itself."""

    name: str
    title: str
    source: str
    needs: str
    count: Callable[[Shape], dict[str, int]]
    recomputes: bool = False
    cost: int = 0

    def of(self, shape: Shape) -> Numerator | None:
        """The formula on this shape; None if a size that it needs is not stated."""
        if shape.missing_sizes(self.needs):
            return None
        parts = {name: Fraction(amount) for name, amount in self.count(shape).items() if amount}
        return Numerator(self.name, self.title, self.source, parts, self.cost)


def _attention(s: Shape) -> int:
    """Attention of a training step on one token, whole: 4 L h T forward, twice that backward."""
    return 12 * s.layers * (s.heads * s.head_dim or s.hidden) * s.seq


def _blocks(s: Shape) -> int:
    """The weights of GPT's blocks, 12 h^2 a layer."""
    return 72 * s.layers * s.hidden**2


def _logits(s: Shape) -> int:
    return 6 * s.hidden * s.vocab


FORMS = (
    Form("palm", "6N + 12LhT", "PaLM (2204.02311, appendix B), nanoGPT, llm-foundry", "params layers hidden seq",
         lambda s: {PARAMETERS: 6 * s.params, ATTENTION: _attention(s)}),
    Form("6n", "6N", "folklore: no attention", "params", lambda s: {PARAMETERS: 6 * s.params}),
    Form("palm-causal", "6N + 6LhT", "PaLM's with causal attention", "params layers hidden seq",
         lambda s: {PARAMETERS: 6 * s.params, ATTENTION: _attention(s) // 2}),
    Form("torchtitan", "6(N - Vh) + 12LhT", "torchtitan: no input embedding", "params layers hidden vocab seq",
         lambda s: {PARAMETERS: 6 * s.params, EMBEDDING: -_logits(s), ATTENTION: _attention(s)}),
    Form("megatron-causal", "6(N - Vh) + 6LhT", "Megatron-Bridge, MaxText: causal attention, no input embedding",
         "params layers hidden vocab seq",
         lambda s: {PARAMETERS: 6 * s.params, EMBEDDING: -_logits(s), ATTENTION: _attention(s) // 2}),
    Form("megatron-router", "6(N - Vh - router) + 6LhT", "Megatron-Bridge: causal attention, no input embedding, no router",
         "params layers hidden vocab seq router",
         lambda s: {PARAMETERS: 6 * s.params, EMBEDDING: -_logits(s), ROUTER: -6 * s.router, ATTENTION: _attention(s) // 2}),
    Form("6n-no-embedding", "6(N - Vh)", "no attention, no input embedding", "params hidden vocab",
         lambda s: {PARAMETERS: 6 * s.params, EMBEDDING: -_logits(s)}, cost=1),
    Form("megatron-model", "72Lh^2(1 + T/6h + V/12Lh)", "Megatron (2205.05198, equation 7)", "layers hidden vocab seq",
         lambda s: {BLOCKS: _blocks(s), LOGITS: _logits(s), ATTENTION: _attention(s)}),
    Form("megatron-eq3", "96Lh^2(1 + T/6h + V/16Lh)", "Megatron (2104.04473, equation 3): the forward pass twice",
         "layers hidden vocab seq",
         lambda s: {BLOCKS: _blocks(s), LOGITS: _logits(s), ATTENTION: _attention(s),
                    AGAIN: (_blocks(s) + _attention(s)) // 3}, recomputes=True),
    Form("megatron-selective", "72Lh^2(1 + T/3h + V/12Lh)", "Megatron (2205.05198, equation 8): attention computed again",
         "layers hidden vocab seq",
         lambda s: {BLOCKS: _blocks(s), LOGITS: _logits(s), ATTENTION: _attention(s), AGAIN: _attention(s)},
         recomputes=True),
    Form("megatron-paper", "24Lh^2(1 + T/6h) + V head", "Megatron's count for one matrix product of 2 FLOPs, the forward pass",
         "layers hidden vocab seq",
         lambda s: {BLOCKS: _blocks(s) // 3, LOGITS: _logits(s) // 3, ATTENTION: _attention(s) // 3}, cost=2),
    Form("palm-selective", "6N + 16LhT", "PaLM's with attention computed again", "params layers hidden seq",
         lambda s: {PARAMETERS: 6 * s.params, ATTENTION: _attention(s), AGAIN: _attention(s) // 3}, recomputes=True, cost=1),
    Form("palm-256", "6N + 12L(256n)T", "PaLM's with heads of 256 that the width does not hold", "params layers heads seq",
         lambda s: {PARAMETERS: 6 * s.params, ATTENTION: 12 * s.layers * 256 * s.heads * s.seq}, cost=2),
    Form("palm-128", "6N + 12L(128n)T", "PaLM's with heads of 128 that the width does not hold", "params layers heads seq",
         lambda s: {PARAMETERS: 6 * s.params, ATTENTION: 12 * s.layers * 128 * s.heads * s.seq}, cost=2),
    Form("kaplan", "6(N - 2Vh) + 12LhT", "no tables (Kaplan 2001.08361), whole attention",
         "params layers hidden vocab seq",
         lambda s: {PARAMETERS: 6 * s.params, EMBEDDING: -2 * _logits(s), ATTENTION: _attention(s)}, cost=2),
    Form("kaplan-causal", "6(N - 2Vh) + 6LhT", "no tables at all, causal attention (Kaplan 2001.08361)",
         "params layers hidden vocab seq",
         lambda s: {PARAMETERS: 6 * s.params, EMBEDDING: -2 * _logits(s), ATTENTION: _attention(s) // 2}, cost=2),
    Form("gpt-neox", "6N + 60LhT", "GPT-NeoX: five times the attention", "params layers hidden seq",
         lambda s: {PARAMETERS: 6 * s.params, ATTENTION: 5 * _attention(s)}, cost=2),
    Form("palm-forward", "2N + 4LhT", "PaLM's, the forward pass", "params layers hidden seq",
         lambda s: {PARAMETERS: 2 * s.params, ATTENTION: _attention(s) // 3}, cost=2),
    Form("4n", "4N", "LoRA: no gradients of frozen weights", "params", lambda s: {PARAMETERS: 4 * s.params}, cost=2),
    Form("2n", "2N", "the forward pass", "params", lambda s: {PARAMETERS: 2 * s.params}, cost=2),
)  # fmt: skip
"""The closed list of formulas. In a tie the first is taken."""


def numerators(shape: Shape) -> list[Numerator]:
    """The formulas that the stated sizes allow."""
    return [made for form in FORMS if (made := form.of(shape)) is not None]


def put_first(name: str, numerators: Sequence[Numerator]) -> tuple[Numerator, ...]:
    """The formulas with the named one at the front."""
    return (*(n for n in numerators if n.name == name), *(n for n in numerators if n.name != name))
