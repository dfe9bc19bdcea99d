"""FLOPs per token from the shape of a language model: the closed forms behind published utilisations, part by part.

N parameters, L layers, h width (queries of all heads), V vocabulary, T sequence length. A formula (forms.toml) is a sum of named
parts, so two formulas differ by parts with names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from ...core.user_files import read_toml


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


QUANTITIES: Mapping[str, tuple[tuple[str, ...], Callable[[Shape], int]]] = {
    "N": (("params",), lambda s: s.params),
    "Vh": (("vocab", "hidden"), lambda s: s.vocab * s.hidden),
    "LhT": (("layers", "hidden", "seq"), lambda s: s.layers * (s.heads * s.head_dim or s.hidden) * s.seq),
    "LnT": (("layers", "heads", "seq"), lambda s: s.layers * s.heads * s.seq),
    "Lh2": (("layers", "hidden"), lambda s: s.layers * s.hidden**2),
    "router": (("router",), lambda s: s.router),
}
"""What the terms of formulas are multiples of: the sizes that it needs, and its value. Attention of a training step on one token,
whole, is 12 LhT: 4 forward, twice that backward. The weights of GPT's blocks are 12 Lh2, and take 6 FLOPs each."""


@dataclass(frozen=True, slots=True)
class Form:
    """A formula before its sizes are known. ``terms`` are its parts: name, coefficient, and quantity. ``recomputes`` says that it
    counts recomputed activations itself."""

    name: str
    title: str
    source: str
    terms: tuple[tuple[str, int, str], ...]
    recomputes: bool = False
    cost: int = 0

    @property
    def needs(self) -> set[str]:
        """The sizes without which it has no value."""
        return {size for _, _, quantity in self.terms for size in QUANTITIES[quantity][0]}

    def of(self, shape: Shape) -> Numerator | None:
        """The formula on this shape; None if a size that it needs is not stated."""
        if not all(getattr(shape, size) for size in self.needs):
            return None
        parts: dict[str, Fraction] = defaultdict(Fraction)
        for part, coefficient, quantity in self.terms:
            parts[part] += coefficient * QUANTITIES[quantity][1](shape)
        return Numerator(self.name, self.title, self.source, dict(parts), self.cost)


TABLE = read_toml(Path(__file__).with_name("forms.toml"), "the table of formulas")["form"]
FORMS = tuple(Form(**{**row, "terms": tuple(map(tuple, row["terms"]))}) for row in TABLE)
"""The closed list of formulas. In a tie the first is taken."""


def numerators(shape: Shape) -> list[Numerator]:
    """The formulas that the stated sizes allow."""
    return [made for form in FORMS if (made := form.of(shape)) is not None]


def put_first(name: str, numerators: Sequence[Numerator]) -> tuple[Numerator, ...]:
    """The formulas with the named one at the front."""
    return (*(n for n in numerators if n.name == name), *(n for n in numerators if n.name != name))
