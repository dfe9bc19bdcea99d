"""``search``: the simplest product of readings that gives a claimed utilisation, and how likely a match by chance is."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import prod

from .agreement import BEST, agreement, covered_share, significant, spans
from .printed_number import Claim, Printed
from .readings import FAR, Factor, singles
from .setup import Setup

MOST = 0.008
"""A product is no explanation if products as simple explain more than this share of random claims."""
MOST_STATED = 0.02
"""The same for what the stated figures give, without a factor."""
PAIR = 1
"""What a second factor costs."""


@dataclass(frozen=True)
class Product:
    """Stated times factors, with the peak as ``peak`` prints it; ``how`` says how it is printed."""

    stated: Printed
    peak: int
    how: str
    factors: tuple[Factor, ...]

    @property
    def cost(self) -> int:
        """Simpler products cost less."""
        return sum(f.cost for f in self.factors) + PAIR * max(0, len(self.factors) - 1)

    @cached_property
    def multiple(self) -> Fraction:
        """All factors together."""
        return prod((one.factor for one in self.factors), start=Fraction(1))

    @cached_property
    def value(self) -> Printed:
        """What the claim should be."""
        return Printed("", self.stated.value * self.multiple, self.stated.half * self.multiple)

    def agrees(self, claimed: Printed) -> str:
        """How the claim agrees with it, '' if it does not."""
        return agreement(self.value, claimed)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was found for a claim.

    Attributes:
        claim: The claim.
        setup: What it was computed from.
        explained: Whether ``best`` explains it.
        best: The product that does; otherwise the nearest one, or one that chance explains as well.
        agrees: How ``best`` agrees with the figure, one of ``agreement.BEST``; '' if it does not.
        fits: How many products agree with the claim.
        chance: The share of random claims that a product as simple explains.
        also: Other single readings that agree: a factor of 2 has several.
    """

    claim: Claim
    setup: Setup
    explained: bool
    best: Product
    agrees: str
    fits: int
    chance: float
    also: tuple[Factor, ...] = ()

    @property
    def remainder(self) -> tuple[Fraction, Fraction]:
        """Claimed over the product, as an interval: explained claims have 1 in it."""
        value, claimed = self.best.value, self.claim.figure
        return claimed.low / value.high, claimed.high / value.low

    @property
    def mfu(self) -> Fraction | None:
        """The utilisation as stated, without the factors; None without a peak."""
        if self.setup.peak is None:
            return None
        peak = self.best.peak if self.best.peak > 1 else self.setup.peak.dense
        return self.setup.utilisation_at(peak).value

    @property
    def hfu(self) -> Fraction | None:
        """The same with recomputed activations, where the setup says whether any are."""
        if self.mfu is None or self.setup.recompute not in ("none", "full"):
            return None
        return self.mfu * (Fraction(4, 3) if self.setup.recompute == "full" else 1)


@dataclass(frozen=True)
class Products:
    """Every product of a setup, the simplest first, and the same in the order of their values, which a search bisects."""

    setup: Setup
    made: tuple[Product, ...]
    singles: tuple[Factor, ...]
    _spans: dict[int, list[tuple[tuple[float, float], ...]]] = field(default_factory=dict)

    @cached_property
    def _order(self) -> list[int]:
        return sorted(range(len(self.made)), key=lambda at: self.made[at].value.value)

    @cached_property
    def _values(self) -> list[Fraction]:
        return [self.made[at].value.value for at in self._order]

    @cached_property
    def _widest(self) -> Fraction:
        """The largest half of a value's interval, over the value."""
        return max(p.value.half / p.value.value for p in self.made)

    def near(self, low: Fraction, high: Fraction) -> list[int]:
        """The places of the products whose intervals may meet this one, the simplest first."""
        first = bisect_left(self._values, low / (1 + self._widest))
        last = bisect_right(self._values, high / (1 - self._widest)) if self._widest < 1 else len(self.made)
        return sorted(self._order[first:last])

    def chance(self, claimed: Printed, place: int) -> float:
        """The share of random claims of as many digits that the product at this place, or a simpler one, agrees with."""
        if not claimed.half:
            return 0.0
        digits, middle = significant(claimed), self.made[0].stated.value
        if digits not in self._spans:
            self._spans[digits] = [tuple(spans(p.value, middle, digits)) for p in self.made]
        simpler = self._spans[digits][: place + 1 or None]
        return covered_share(span for each in simpler for span in each)

    def nearest(self, claimed: Printed) -> int:
        """The place of the product that is the nearest, where a simple one may be a little farther away."""
        middle = bisect_left(self._values, claimed.value)
        best = (Fraction(10**9), 0)
        for walk in (range(middle, len(self.made)), range(middle - 1, -1, -1)):
            for place in walk:
                quotient = claimed.value / self._values[place]
                apart = max(quotient, 1 / quotient) - 1
                if apart > best[0]:
                    break
                at = self._order[place]
                best = min(best, (apart + Fraction(self.made[at].cost, 100), at))
        return best[1]


def products(setup: Setup, share: bool) -> Products:
    """Every product of up to two factors, the simplest first; each multiple once, by its simplest reading."""
    found = singles(setup, share)
    pairs = [
        (one, other)
        for one, other in combinations(sorted(found, key=lambda f: f.cost), 2)
        if one.kind != other.kind and one.factor * other.factor != 1
    ]
    prints = setup.prints if share else ((1, ""),)
    # The zeros at the end of a throughput may be rounded digits: 9,600 tokens/s.
    peak, how = prints[0]
    rounded = Product(setup.utilisation_if_rounded(peak), peak, how, ())
    chains: list[tuple[Factor, ...]] = [(), *((one,) for one in found), *pairs]
    kept: dict[Fraction, list[Product]] = {}
    for chain in chains:
        made = [Product(setup.utilisation_at(peak), peak, how, chain) for peak, how in prints]
        before = kept.get(made[0].multiple)
        if before is None or made[0].cost < before[0].cost:
            kept[made[0].multiple] = made
    stated, *others = kept.values()
    order = (*stated, rounded, *sorted((p for group in others for p in group), key=lambda p: p.cost))
    return Products(setup, order, tuple(found))


def search(claim: Claim, setup: Setup, made: Products | None = None) -> Outcome:
    """What the claim is: the simplest product that agrees, unless products as simple agree with too many random claims.

    The products are nested by their cost, so no more than these shares of random claims are ever explained. ``made`` is the
    table of the setup, if it is known already.
    """
    made = made or products(setup, claim.kind == "share")
    figure = claim.figure
    fitting = [
        (p.cost, BEST.index(how), at)
        for at in made.near(figure.low, max(figure.high, figure.range_if_cut[1]))
        if (how := (p := made.made[at]).agrees(figure))
    ]
    if not fitting:
        near = made.made[made.nearest(figure)]
        return Outcome(claim, setup, False, near, "", 0, made.chance(figure, -1))
    _, rank, at = min(fitting)
    best = made.made[at]
    also = tuple(dict.fromkeys(one for one in made.singles if _also(one, best, figure)))
    chance = made.chance(figure, at)
    several = len({made.made[place].multiple for _, _, place in fitting})
    most = MOST if best.factors else MOST_STATED
    return Outcome(claim, setup, chance <= most, best, BEST[rank], several, chance, also)


def _also(one: Factor, best: Product, claimed: Printed) -> bool:
    """Whether this reading alone agrees, too."""
    alone = Product(best.stated, best.peak, best.how, (one,))
    return len(best.factors) == 1 and one != best.factors[0] and one.cost <= FAR and bool(alone.agrees(claimed))
